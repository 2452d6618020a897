/**
 * `<event-annotation>`: the form in the panel for a thumb or a note on the picked event. It is sent without leaving the
 * page; the annotation then arrives over the socket, as for everybody. `u` and `d` press the thumbs, `N` focuses the note.
 */
import { newId } from "./drafts.js";
import { noteFailure } from "./failure-note.js";
import { RequestError, json } from "./fetch.js";
import { onKey } from "./keys.js";

const CONFIRMATIONS = { up: "Thumbs up on event #", down: "Thumbs down on event #", "": "Thumb withdrawn from event #" };
const KEYS = { u: '[data-thumb="up"]', d: '[data-thumb="down"]', N: "textarea" };

const pickedRow = () => document.querySelector('.transcript [data-seq][aria-current="true"]');
const drafts = new Map(); // seq of an event → note that is not sent yet
let pendingKey = null; // {seq, key}: pressed before the form for its event was loaded; dropped when an event is picked

class EventAnnotation extends HTMLElement {
  #clientIds = new Map(); // annotation as JSON → its client id, until a response confirms that it is stored: a retry reuses it
  #sending = new Set(); // annotations as JSON

  connectedCallback() {
    this.addEventListener("submit", (event) => {
      event.preventDefault();
      if (event.submitter) this.#send(event.submitter);
    });
    this.addEventListener("keydown", (event) => this.#keydown(event));
    this.querySelector("textarea").value ||= drafts.get(this.dataset.seq) ?? "";
    if (pendingKey?.seq !== this.dataset.seq) return;
    this.press(pendingKey.key);
    pendingKey = null;
  }

  disconnectedCallback() {
    drafts.set(this.dataset.seq, this.querySelector("textarea").value);
  }

  /** Press the thumb, or focus the note, that a key stands for. */
  press(key) {
    const control = this.querySelector(KEYS[key]);
    if (key !== "N") return control.click();
    if (!control.checkVisibility()) document.querySelector('[aria-controls="panel"]')?.click();
    return control.focus();
  }

  #keydown(event) {
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
    const annotation = thumb === null ? { text } : { text: "", thumb };
    const key = JSON.stringify(annotation);
    if (this.#sending.has(key)) return undefined;
    this.#sending.add(key);
    if (!this.#clientIds.has(key)) this.#clientIds.set(key, newId());
    try {
      await json(form.getAttribute("action"), { body: { about: Number(this.dataset.seq), client_id: this.#clientIds.get(key), ...annotation } });
      this.#clientIds.delete(key);
      if (thumb === null) this.#clearNote(text);
      else this.#showThumb(thumb);
      status.textContent = "";
      announce((thumb === null ? "Note added to event #" : CONFIRMATIONS[thumb]).replace("#", this.dataset.seq));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      noteFailure(status, error, { text: `Not stored. ${error.sentence}` });
      announce(status.textContent);
    } finally {
      this.#sending.delete(key);
    }
    return undefined;
  }

  /** Clear a note that was stored, and its draft if the form was closed in the meantime. */
  #clearNote(text) {
    const field = this.querySelector("textarea");
    if (field.value.trim() === text) field.value = "";
    if (drafts.get(this.dataset.seq)?.trim() === text) drafts.delete(this.dataset.seq);
  }

  #showThumb(thumb) {
    for (const button of this.querySelectorAll("[data-thumb]")) {
      const isPressed = button.dataset.thumb === thumb;
      button.ariaPressed = String(isPressed);
      button.value = isPressed ? "" : button.dataset.thumb;
    }
  }
}
customElements.define("event-annotation", EventAnnotation);

document.addEventListener("event:picked", () => {
  if (pendingKey && pendingKey.key !== "N") announce(`Thumb not stored: event ${pendingKey.seq} was left before it had loaded.`);
  pendingKey = null;
});

function announce(text) {
  document.querySelector("news-announcer")?.dispatchEvent(new CustomEvent("said", { bubbles: true, detail: { words: text } }));
}

for (const key of Object.keys(KEYS)) {
  onKey(key, () => {
    const row = pickedRow();
    if (!row || !document.body.dataset.may.split(" ").includes("annotate")) return;
    const { seq } = row.dataset;
    const form = document.querySelector(`event-annotation[data-seq="${seq}"]`);
    if (form) form.press(key);
    else pendingKey = { seq, key };
  });
}
