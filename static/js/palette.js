/** `<command-palette>`: pages, actions, conversations and events by name, in a dialog. */
import { RequestError, json } from "./fetch.js";
import { Options } from "./options.js";
import { eventByNumber, everyPage, everywhere, ofConversation, ofHit, pageActions } from "./palette-options.js";

const PAUSE_MS = 120; // after the last letter
const MAX_CONVERSATIONS = 8;
const MAX_EVENTS = 4;
const SEARCHED = 3; // letters that are searched for in events

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
    this.#options.restart();
    const matches = ({ words: name }) => name.toLowerCase().includes(words.toLowerCase());
    this.#options.show("here", "On this page", [...eventByNumber(words), ...pageActions().filter(matches)]);
    this.#options.show("known", "Pages and actions", everyPage().filter(matches));
    this.#pause = setTimeout(() => this.#ask(words), words ? PAUSE_MS : 0);
  }

  async #ask(words) {
    this.#asking = new AbortController();
    try {
      const query = new URLSearchParams({ q: words, limit: MAX_CONVERSATIONS });
      const { items } = await json(`/api/v1/conversations?${query}`, { signal: this.#asking.signal });
      this.#options.show("found", words ? "Conversations" : "Recent conversations", items.map(ofConversation));
      this.#options.show("events", "Events", words.length < SEARCHED ? [] : await this.#search(words));
      this.#options.show("everywhere", "All conversations", [everywhere(words)]);
      this.#say("");
    } catch (error) {
      if (error instanceof RequestError) this.#say(error.sentence);
      else if (error.name !== "AbortError") throw error;
    }
  }

  async #search(words) {
    const query = new URLSearchParams({ q: words, limit: MAX_EVENTS });
    return (await json(`/api/v1/search?${query}`, { signal: this.#asking.signal })).items.map(ofHit);
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

customElements.define("command-palette", CommandPalette);
