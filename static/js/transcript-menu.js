/** `<transcript-menu data-file>`: the whole conversation to the clipboard, its two ends, and its results opened at wish. */
import { copy } from "./clipboard.js";
import { kept } from "./kept.js";
import { onKey } from "./keys.js";

const KEPT = "switchboard-results"; // "open" is kept
const DRAWN = ["transcript:drawn", "page:drawn"];
const MAX_CHARACTERS = 20 << 20; // characters that go to a clipboard

/** Tells, bubbling: `said` {words} at the announcer; at the transcript `tail:oldest` and `tail:latest`. */
class TranscriptMenu extends HTMLElement {
  #stop = new AbortController();
  #known = new WeakSet(); // results that were opened once: what the reader closes stays closed

  connectedCallback() {
    const { signal } = this.#stop;
    this.addEventListener("click", (event) => this.#click(event), { signal });
    this.#box?.addEventListener("change", () => this.#open(this.#box.checked), { signal });
    addEventListener("beforeprint", () => this.#note(), { signal });
    for (const name of DRAWN) document.addEventListener(name, () => this.#box?.checked && this.#unfold(), { signal });
    if (!this.#box) return;
    signal.addEventListener("abort", onKey("O", () => this.#open(!this.#box.checked)));
    if (kept.get(KEPT) === "open") this.#open(true);
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  get #box() {
    return this.querySelector("[data-open-results]");
  }

  get #results() {
    return document.querySelectorAll(".transcript details.tool");
  }

  #click({ target }) {
    const end = target.closest("[data-end]")?.dataset.end;
    const form = target.closest("[data-copy-as]")?.dataset.copyAs;
    if (end) document.querySelector(".transcript").dispatchEvent(new CustomEvent(`tail:${end}`, { bubbles: true }));
    if (form) this.#copy(form);
    if (!target.closest("label")) this.hidePopover();
  }

  #open(isOpen) {
    this.#box.checked = isOpen;
    kept.set(KEPT, isOpen ? "open" : "");
    if (isOpen) return this.#unfold();
    for (const details of this.#results) details.open = false;
    this.#known = new WeakSet();
    return undefined;
  }

  #unfold() {
    for (const details of this.#results) {
      if (this.#known.has(details)) continue;
      this.#known.add(details);
      details.open = true;
    }
  }

  /** Paper says which part of the conversation it has: what is loaded. */
  #note() {
    const transcript = document.querySelector("live-transcript");
    const note = document.querySelector("[data-print-note]");
    const { first, head, last } = transcript?.dataset ?? {};
    const end = transcript?.isLive ? head : last;
    if (note && first) note.textContent = `Events ${first} to ${end}, as loaded. Print in the menu makes a document of the whole conversation.`;
  }

  async #copy(form) {
    this.#say("Copying…");
    const text = await fetched(`${this.dataset.file}?format=${form}`);
    if (text === null) return this.#say("The server did not respond. Nothing was copied.");
    if (text.length > MAX_CHARACTERS) return this.#say("This conversation is too long for the clipboard. Download it instead.");
    return this.#say((await copy(text)) ? "Conversation copied" : "The browser refused the clipboard. Download it instead.");
  }

  #say(words) {
    document.querySelector("news-announcer").dispatchEvent(new CustomEvent("said", { bubbles: true, detail: { words } }));
  }
}

const fetched = async (address) => {
  try {
    const answer = await fetch(address, { credentials: "same-origin", redirect: "error" });
    return answer.ok ? await answer.text() : null;
  } catch {
    return null;
  }
};
customElements.define("transcript-menu", TranscriptMenu);
