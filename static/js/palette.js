/** `<command-palette>`: pages, actions and conversations by name, in a dialog. */
import { swapTimes } from "./clock.js";
import { RequestError, json } from "./fetch.js";
import { Options } from "./options.js";
import { choose, theme } from "./theme.js";

const PAUSE_MS = 120; // after the last letter
const MAX_CONVERSATIONS = 8; // conversations

class CommandPalette extends HTMLElement {
  #stop;
  #asking;
  #pause;
  #dialog;
  #input;
  #options;

  connectedCallback() {
    this.#dialog = this.querySelector("dialog");
    this.#input = this.querySelector("input");
    this.#options = new Options(this.#input, this.querySelector("[role=listbox]"), this.querySelector("template"));
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    addEventListener("keydown", (event) => isCall(event) && this.#toggle(event), { signal });
    addEventListener("click", (event) => event.target.closest?.("[data-action='palette']") && this.#toggle(event), { signal });
    this.#input.addEventListener("input", () => this.#find(), { signal });
    this.#input.addEventListener("keydown", (event) => this.#options.key(event), { signal });
    this.#dialog.addEventListener("click", (event) => this.#click(event), { signal });
    this.#dialog.addEventListener("close", () => this.#forget(), { signal });
  }

  disconnectedCallback() {
    this.#stop.abort();
    this.#forget();
  }

  #toggle(event) {
    event.preventDefault();
    if (this.#dialog.open) return this.#dialog.close();
    if (document.querySelector("dialog[open]")) return undefined;
    this.#input.value = "";
    this.#options.clear();
    this.#dialog.showModal();
    return this.#find();
  }

  #click(event) {
    if (this.#options.click(event) || event.target === this.#dialog) this.#dialog.close();
  }

  /** Draw what the page knows at once, the conversations when they come. */
  #find() {
    const words = this.#input.value.trim();
    this.#forget();
    this.#options.show("known", "Pages and actions", known().filter((one) => one.words.toLowerCase().includes(words.toLowerCase())));
    this.#pause = setTimeout(() => this.#ask(words), words ? PAUSE_MS : 0);
  }

  async #ask(words) {
    this.#asking = new AbortController();
    try {
      const query = new URLSearchParams({ q: words, limit: MAX_CONVERSATIONS });
      const { items } = await json(`/api/v1/conversations?${query}`, { signal: this.#asking.signal });
      this.#options.show("found", words ? "Conversations" : "Recent conversations", items.map(ofConversation));
      this.#options.show("everywhere", "All conversations", [everywhere(words)]);
      this.#say("");
    } catch (error) {
      if (error instanceof RequestError) this.#say(error.sentence);
      else if (error.name !== "AbortError") throw error;
    }
  }

  #forget() {
    clearTimeout(this.#pause);
    this.#asking?.abort();
  }

  #say(words) {
    this.querySelector("[role=status]").textContent = words;
  }
}

const isCall = (event) =>
  (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k";

const everywhere = (words) => ({
  symbol: "search",
  words: words ? `Search everywhere for “${words}”` : "Search everywhere",
  note: words ? "messages, calls, errors" : "",
  href: `/search/${words ? `?${new URLSearchParams({ q: words })}` : ""}`,
});

const ofConversation = ({ title, conversation_id: id, url }) => ({
  symbol: "talk",
  words: title || id,
  note: title ? id : "",
  href: url,
});

/** @returns {import("./options.js").Option[]} what this page can do, whoever asks */
function known() {
  const links = new Map([...document.querySelectorAll(".menu > a, .nav > a")].map((link) => [link.href, link]));
  return [
    ...[...links.values()].map((link) => ({ symbol: "right", words: wordsOf(link), note: waitingOf(link), href: link.href })),
    ...["system", "light", "dark"]
      .filter((name) => name !== theme())
      .map((name) => ({ symbol: "theme", words: `Theme: ${name}`, act: () => choose(name) })),
    { symbol: "clock", words: "Toggle relative and clock times", act: swapTimes },
    { symbol: "list", words: "Keyboard shortcuts", note: "", act: () => setTimeout(() => press("[data-action='help']")) },
    { symbol: "x", words: "Sign out", act: () => document.querySelector(".menu > form").requestSubmit() },
  ];
}

/** The words of a link without the number beside them. */
const wordsOf = (link) => [...link.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join("").trim();

/** What waits behind a link, "" where nothing does. */
function waitingOf(link) {
  const count = link.querySelector(".count:not([hidden]) > :last-child");
  return count ? `${count.textContent} waiting` : "";
}

const press = (selector) => document.querySelector(selector)?.click();

customElements.define("command-palette", CommandPalette);
