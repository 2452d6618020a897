/** The panel beside a transcript: facts about the conversation, updated with its state, and about the picked event. */
import { FailureStrip } from "./failure-strip.js";
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";
import { morph } from "./morph.js";

const EVENTS = ["standing:drawn", "event:picked"];
const PICK_DELAY = 150; // ms that an event stays picked before its facts are fetched

/**
 * `data-address` with `?event=N` responds with the facts about one event. Listens to `standing:drawn` and `event:picked`.
 */
class ConversationPanel extends HTMLElement {
  #pickTimer = 0;
  #pickedSeq = "";
  #abort = new AbortController();
  #strip;

  connectedCallback() {
    const { signal } = this.#abort;
    this.#strip = new FailureStrip(this.querySelector("[data-facts-failed]"), () => this.#showFacts(this.#pickedSeq), signal);
    for (const name of EVENTS) document.addEventListener(name, this);
    this.#toggleButton?.addEventListener("click", () => this.#toggle());
    this.addEventListener("keydown", (event) => this.#keydown(event));
  }

  disconnectedCallback() {
    for (const name of EVENTS) document.removeEventListener(name, this);
    clearTimeout(this.#pickTimer);
    this.#abort.abort();
  }

  handleEvent({ type, detail }) {
    if (type === "event:picked") return this.#pick(detail.row.dataset.seq, detail.isSought);
    const sections = detail.fresh.querySelector("[data-sections]");
    if (sections) morph(this.querySelector("[data-sections]"), sections);
    return undefined;
  }

  get #toggleButton() {
    return document.querySelector(`[aria-controls="${this.id}"]`);
  }

  #pick(seq, isSought) {
    if (isSought && this.parentElement.hasAttribute("data-open")) this.#toggle(); // the panel covers what the reader went to
    this.#pickedSeq = seq;
    clearTimeout(this.#pickTimer);
    this.#pickTimer = setTimeout(() => this.#showFacts(seq), PICK_DELAY);
  }

  get #facts() { return this.querySelector("[data-picked]"); }

  async #showFacts(seq) {
    try {
      const facts = render(await markup(`${this.dataset.address}?event=${seq}`, { signal: this.#abort.signal }));
      if (seq !== this.#pickedSeq) return;
      this.#strip.hide(this);
      if (!this.#isWritingAbout(seq)) this.#facts.replaceChildren(facts);
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error;
      if (error instanceof RequestError && seq === this.#pickedSeq) this.#showFailure(seq, error);
    }
  }

  /** Remove the facts if they are about another event: their links redact and fork that one. */
  #showFailure(seq, error) {
    if (this.#facts.querySelector("[data-facts]")?.dataset.facts === seq) return;
    this.#facts.replaceChildren();
    this.#strip.show(`Event ${seq} could not be loaded. ${error.sentence}`);
  }

  /** Whether the focus is already in the form for notes on this event: the page is loaded with it before the event is picked. */
  #isWritingAbout(seq) {
    return this.querySelector("[data-picked] event-annotation:focus-within")?.dataset.seq === seq;
  }

  #toggle() {
    const isOpen = this.parentElement.toggleAttribute("data-open");
    this.#toggleButton.setAttribute("aria-expanded", isOpen);
    if (isOpen) this.focus({ preventScroll: true });
  }

  /** Close the panel on Esc where it lies over the transcript. */
  #keydown(event) {
    if (event.key !== "Escape" || !this.parentElement.hasAttribute("data-open")) return;
    this.#toggle();
    this.#toggleButton.focus();
  }
}
customElements.define("conversation-panel", ConversationPanel);
