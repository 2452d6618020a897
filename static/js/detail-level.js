/** How much of a conversation is shown: Chat, Steps or Everything. Kept between pages; `-` and `+` change it. */
import { kept } from "./kept.js";
import { onKey } from "./keys.js";

const KEPT = "switchboard-detail";
const DRAWN = ["transcript:drawn", "page:drawn"];
const LEVELS = ["chat", "steps", "all"]; // each shows its own rows and those of the ones before it

/** Holds the radios. Sets `data-detail` on the transcript, and `data-blank` when that leaves nothing to see. */
class DetailLevel extends HTMLElement {
  #transcript;
  #stops = [];
  #onDrawn = () => this.#transcript.hasAttribute("data-blank") && this.#look();

  connectedCallback() {
    this.#transcript = document.querySelector(".transcript");
    this.addEventListener("change", (event) => this.#keep(event.target.value));
    this.#stops = [onKey("-", () => this.#step(-1)), onKey("+", () => this.#step(1))];
    for (const name of DRAWN) document.addEventListener(name, this.#onDrawn);
    this.#set(kept.get(KEPT));
  }

  disconnectedCallback() {
    this.#stops.forEach((stop) => stop());
    for (const name of DRAWN) document.removeEventListener(name, this.#onDrawn);
  }

  /** Show at least this level, for now. */
  reveal(level) {
    if (LEVELS.indexOf(level) > LEVELS.indexOf(this.#level)) this.#set(level);
  }

  get #level() {
    return this.querySelector(":checked").value;
  }

  #set(level) {
    const radio = this.querySelector(`[value="${CSS.escape(level ?? "")}"]`);
    if (radio) radio.checked = true;
    if (this.#transcript.dataset.detail !== this.#level) this.#transcript.dataset.detail = this.#level; // as it was: no row is styled again
    this.#look();
  }

  #step(step) {
    const level = LEVELS[LEVELS.indexOf(this.#level) + step];
    if (level) this.#keep(level);
  }

  #keep(level) {
    this.#set(level);
    kept.set(KEPT, level);
  }

  #look() {
    const rows = [...this.#transcript.querySelectorAll(":scope > .rows > [data-seq]")];
    this.#transcript.toggleAttribute("data-blank", !rows.some((row) => row.checkVisibility()));
  }
}
customElements.define("detail-level", DetailLevel);
