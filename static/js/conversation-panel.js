/** What is known of the conversation, beside its transcript: drawn anew with its state, and the facts of the picked event. */
import { markup } from "./fetch.js";
import { render } from "./html.js";
import { morph } from "./morph.js";

const HEARD = ["standing:drawn", "event:picked"];
const SETTLED = 150; // ms that a picked event stays picked before its facts are asked for

/**
 * `data-address` with `?event=N` answers the facts of one event. Hears `standing:drawn` and `event:picked`.
 */
class ConversationPanel extends HTMLElement {
  #picked = 0;
  #wanted = ""; // the seq of the event that is picked

  connectedCallback() {
    for (const name of HEARD) document.addEventListener(name, this);
    this.#more?.addEventListener("click", () => this.#toggle());
    this.addEventListener("keydown", (event) => this.#key(event));
  }

  disconnectedCallback() {
    for (const name of HEARD) document.removeEventListener(name, this);
    clearTimeout(this.#picked);
  }

  handleEvent({ type, detail }) {
    if (type === "event:picked") return this.#pick(detail.row.dataset.seq, detail.isSought);
    const sections = detail.fresh.querySelector("[data-sections]");
    if (sections) morph(this.querySelector("[data-sections]"), sections);
    return undefined;
  }

  get #more() {
    return document.querySelector(`[aria-controls="${this.id}"]`);
  }

  #pick(seq, isSought) {
    if (isSought && this.parentElement.hasAttribute("data-open")) this.#toggle(); // what was asked for is under the panel
    this.#wanted = seq;
    clearTimeout(this.#picked);
    this.#picked = setTimeout(() => this.#facts(seq), SETTLED);
  }

  async #facts(seq) {
    const fresh = await this.#ask(`?event=${seq}`);
    if (fresh && seq === this.#wanted && !this.#isWritingAbout(seq)) this.querySelector("[data-picked]").replaceChildren(fresh);
  }

  /** Whether somebody is in the form for notes on an event: the page came with it, then its script picks the event. */
  #isWritingAbout(seq) {
    return this.querySelector("[data-picked] event-annotation:focus-within")?.dataset.seq === seq;
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
