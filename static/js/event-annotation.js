/**
 * `<event-annotation>`: the form in the panel for what the reader thinks of the picked event. It is sent without leaving
 * the page; what was said comes by the socket, as for everybody. `u` and `d` press the thumbs, `N` leads to the note.
 */
import { newId } from "./drafts.js";
import { RequestError, json } from "./fetch.js";
import { onKey } from "./keys.js";

const WORDS = { up: "Thumbs up on event #", down: "Thumbs down on event #", "": "Thumb withdrawn from event #" };
const PARTS = { u: '[data-thumb="up"]', d: '[data-thumb="down"]', N: "textarea" };

const picked = () => document.querySelector('.transcript [data-seq][aria-current="true"]');
const drafts = new Map(); // notes that are not sent, by event
let awaited = null; // {seq, key}: a key that was pressed before the form of its event had come

class EventAnnotation extends HTMLElement {
  #ids = new Map(); // of what was sent, until it is known to be stored: sent again it is stored once
  #sending = new Set();

  connectedCallback() {
    this.addEventListener("submit", (event) => {
      event.preventDefault();
      if (event.submitter) this.#send(event.submitter);
    });
    this.addEventListener("keydown", (event) => this.#key(event));
    this.querySelector("textarea").value ||= drafts.get(this.dataset.seq) ?? "";
    if (awaited?.seq !== this.dataset.seq) return;
    this.press(awaited.key);
    awaited = null;
  }

  disconnectedCallback() {
    drafts.set(this.dataset.seq, this.querySelector("textarea").value);
  }

  /** Do what a key stands for. */
  press(key) {
    const part = this.querySelector(PARTS[key]);
    if (key !== "N") return part.click();
    if (!part.checkVisibility()) document.querySelector('[aria-controls="panel"]')?.click();
    return part.focus();
  }

  #key(event) {
    if (event.target.matches("textarea") && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.#send(this.querySelector("[data-add]"));
    }
  }

  async #send(button) {
    const form = this.querySelector("form");
    const text = form.elements.text.value.trim();
    const thumb = button.name === "thumb" ? button.value : null;
    const status = this.querySelector("[data-said]");
    if (thumb === null && !text) return form.elements.text.focus();
    const said = thumb === null ? { text } : { text: "", thumb };
    const words = JSON.stringify(said);
    if (this.#sending.has(words)) return undefined;
    this.#sending.add(words);
    if (!this.#ids.has(words)) this.#ids.set(words, newId());
    try {
      await json(form.getAttribute("action"), { body: { about: Number(this.dataset.seq), client_id: this.#ids.get(words), ...said } });
      this.#ids.delete(words);
      if (thumb === null) this.#sent(text);
      else this.#show(thumb);
      status.textContent = "";
      this.#tell((thumb === null ? "Note added to event #" : WORDS[thumb]).replace("#", this.dataset.seq));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      status.textContent = `Not stored. ${error.sentence}`;
      this.#tell(status.textContent);
    } finally {
      this.#sending.delete(words);
    }
    return undefined;
  }

  /** Let go of words that are stored, also where the form was left meanwhile. */
  #sent(text) {
    const field = this.querySelector("textarea");
    if (field.value.trim() === text) field.value = "";
    if (drafts.get(this.dataset.seq)?.trim() === text) drafts.delete(this.dataset.seq);
  }

  #show(thumb) {
    for (const button of this.querySelectorAll("[data-thumb]")) {
      const isPressed = button.dataset.thumb === thumb;
      button.ariaPressed = String(isPressed);
      button.value = isPressed ? "" : button.dataset.thumb;
    }
  }

  #tell(words) {
    document.querySelector("news-announcer")?.dispatchEvent(new CustomEvent("said", { bubbles: true, detail: { words } }));
  }
}
customElements.define("event-annotation", EventAnnotation);

for (const key of Object.keys(PARTS)) {
  onKey(key, () => {
    const row = picked();
    if (!row || !document.body.dataset.may.split(" ").includes("annotate")) return;
    const { seq } = row.dataset;
    const form = document.querySelector(`event-annotation[data-seq="${seq}"]`);
    if (form) form.press(key);
    else awaited = { seq, key };
  });
}
