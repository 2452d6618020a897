/** `<transcript-menu data-file>`: the menu to copy the whole conversation, go to its start or end, and open all results. */
import { copyFetched } from "./clipboard.js";
import { markup } from "./fetch.js";
import { onKey } from "./keys.js";
import { localStore } from "./safe-storage.js";

const STORAGE_KEY = "switchboard-results"; // "open" if results are to be opened
const TRIGGERS = ["transcript:drawn", "page:drawn"];
const MAX_CHARACTERS = 20 << 20; // of a text that is copied to the clipboard

/** Dispatches `said` {words} on the announcer, and `tail:oldest` and `tail:latest` on the transcript (all bubble). */
class TranscriptMenu extends HTMLElement {
  #stop = new AbortController();
  #opened = new WeakSet(); // results that were opened once; those that the reader closes stay closed

  connectedCallback() {
    const { signal } = this.#stop;
    this.addEventListener("click", (event) => this.#handleClick(event), { signal });
    this.#checkbox?.addEventListener("change", () => this.#setOpen(this.#checkbox.checked), { signal });
    addEventListener("beforeprint", () => this.#updatePrintNote(), { signal });
    for (const name of TRIGGERS) document.addEventListener(name, () => this.#checkbox?.checked && this.#openResults(), { signal });
    if (!this.#checkbox) return;
    signal.addEventListener("abort", onKey("O", () => this.#setOpen(!this.#checkbox.checked)));
    if (localStore.get(STORAGE_KEY) === "open") this.#setOpen(true);
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  get #checkbox() {
    return this.querySelector("[data-open-results]");
  }

  get #results() {
    return document.querySelectorAll(".transcript details.tool");
  }

  #handleClick({ target }) {
    const end = target.closest("[data-end]")?.dataset.end;
    const format = target.closest("[data-copy-as]")?.dataset.copyAs;
    if (end) document.querySelector(".transcript").dispatchEvent(new CustomEvent(`tail:${end}`, { bubbles: true }));
    if (format) this.#copy(format);
    if (!target.closest("label")) this.hidePopover();
  }

  #setOpen(isOpen) {
    this.#checkbox.checked = isOpen;
    localStore.set(STORAGE_KEY, isOpen ? "open" : "");
    if (isOpen) return this.#openResults();
    for (const details of this.#results) details.open = false;
    this.#opened = new WeakSet();
    return undefined;
  }

  #openResults() {
    for (const details of this.#results) {
      if (this.#opened.has(details)) continue;
      this.#opened.add(details);
      details.open = true;
    }
  }

  /** Before printing, note which events are loaded, since only these are printed. */
  #updatePrintNote() {
    const transcript = document.querySelector("live-transcript");
    const note = document.querySelector("[data-print-note]");
    const { first, head, last } = transcript?.dataset ?? {};
    const end = transcript?.isSubscribed ? head : last;
    if (note && first) note.textContent = `Events ${first} to ${end}, as loaded. Print in the menu makes a document of the whole conversation.`;
  }

  async #copy(format) {
    this.#announce("Copying…");
    const fetching = markup(`${this.dataset.file}?format=${format}`).catch(() => null);
    const copying = copyFetched(fetching.then(requireCopyable));
    const text = await fetching;
    if (text === null) return this.#announce("The server did not respond. Nothing was copied.");
    if (!isCopyable(text)) return this.#announce("This conversation is too long for the clipboard. Download it instead.");
    return this.#announce((await copying) ? "Conversation copied" : "The browser refused the clipboard. Download it instead.");
  }

  #announce(message) {
    document.querySelector("news-announcer").dispatchEvent(new CustomEvent("said", { bubbles: true, detail: { words: message } }));
  }
}

const isCopyable = (text) => text !== null && text.length <= MAX_CHARACTERS;

const requireCopyable = (text) => {
  if (!isCopyable(text)) throw new Error("static/js/transcript-menu.js: expected a text that fits the clipboard");
  return text;
};

customElements.define("transcript-menu", TranscriptMenu);
