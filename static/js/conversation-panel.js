/** What is known of the conversation, beside its transcript: kept fresh while events come, and the facts of the picked one. */
import { markup } from "./fetch.js";
import { render } from "./html.js";
import { morph } from "./morph.js";

const PAUSE = 2000; // ms between two looks
const SETTLED = 150; // ms that a picked event stays picked before its facts are asked for

/**
 * `data-address` answers the sections, with `?event=N` the facts of one event. Hears `transcript:drawn` and
 * `event:picked`.
 */
class ConversationPanel extends HTMLElement {
  #seq = 0;
  #timer = 0;
  #picked = 0;

  connectedCallback() {
    for (const name of ["transcript:drawn", "event:picked", "visibilitychange"]) document.addEventListener(name, this);
    this.#more?.addEventListener("click", () => this.#toggle());
    this.addEventListener("keydown", (event) => this.#key(event));
  }

  disconnectedCallback() {
    for (const name of ["transcript:drawn", "event:picked", "visibilitychange"]) document.removeEventListener(name, this);
    clearTimeout(this.#timer);
    clearTimeout(this.#picked);
  }

  handleEvent({ type, detail }) {
    if (type === "event:picked") return this.#pick(detail.row.dataset.seq, detail.isSought);
    if (type === "transcript:drawn") this.#seq = Math.max(this.#seq, detail.seq);
    return this.#plan();
  }

  get #more() {
    return document.querySelector(`[aria-controls="${this.id}"]`);
  }

  get #sections() {
    return this.querySelector("[data-sections]");
  }

  #plan() {
    const isStale = this.#seq > Number(this.#sections.dataset.head);
    if (isStale && !document.hidden) this.#timer ||= setTimeout(() => this.#look(), PAUSE);
  }

  async #look() {
    const fresh = await this.#ask("");
    this.#timer = 0;
    if (!fresh) return; // as it was: the next event looks again
    morph(this.#sections, fresh.querySelector("[data-sections]"));
    this.#plan();
  }

  #pick(seq, isSought) {
    if (isSought && this.parentElement.hasAttribute("data-open")) this.#toggle(); // what was asked for is under the panel
    clearTimeout(this.#picked);
    this.#picked = setTimeout(() => this.#facts(seq), SETTLED);
  }

  async #facts(seq) {
    const fresh = await this.#ask(`?event=${seq}`);
    if (fresh) this.querySelector("[data-picked]").replaceChildren(fresh);
  }

  async #ask(query) {
    try {
      return render(await markup(this.dataset.address + query));
    } catch (error) {
      if (error.name !== "RequestError") throw error;
      return null;
    }
  }

  #toggle() {
    const isOpen = this.parentElement.toggleAttribute("data-open");
    this.#more.setAttribute("aria-expanded", isOpen);
    if (isOpen) this.focus({ preventScroll: true });
  }

  /** Closed by Esc where it lies over the transcript. */
  #key(event) {
    if (event.key !== "Escape" || !this.parentElement.hasAttribute("data-open")) return;
    this.#toggle();
    this.#more.focus();
  }
}
customElements.define("conversation-panel", ConversationPanel);
