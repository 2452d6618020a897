/** How much of a conversation is shown: Chat, Steps or Everything. Stored in the browser; `-` and `+` change it. */
import { onKey } from "./keys.js";
import { localStore } from "./safe-storage.js";

const STORAGE_KEY = "switchboard-detail";
const EVENTS = ["transcript:drawn", "page:drawn"];
const LEVELS = ["chat", "steps", "all"]; // each includes the rows of those before it

/** Contains the radio buttons. Sets `data-detail` on the transcript, and `data-blank` while the level hides all its rows. */
class DetailLevel extends HTMLElement {
  #transcript;
  #keyRemovers = [];
  #onDrawn = () => this.#transcript.hasAttribute("data-blank") && this.#updateBlank();

  connectedCallback() {
    this.#transcript = document.querySelector(".transcript");
    this.addEventListener("change", (event) => this.#choose(event.target.value));
    this.#keyRemovers = [onKey("-", () => this.#step(-1)), onKey("+", () => this.#step(1))];
    for (const name of EVENTS) document.addEventListener(name, this.#onDrawn);
    this.#set(localStore.get(STORAGE_KEY));
  }

  disconnectedCallback() {
    this.#keyRemovers.forEach((remove) => remove());
    for (const name of EVENTS) document.removeEventListener(name, this.#onDrawn);
  }

  /** Show at least this level, without storing it. */
  reveal(level) {
    if (LEVELS.indexOf(level) > LEVELS.indexOf(this.#level)) this.#set(level);
  }

  get #level() {
    return this.querySelector(":checked").value;
  }

  #set(level) {
    const radio = this.querySelector(`[value="${CSS.escape(level ?? "")}"]`);
    if (radio) radio.checked = true;
    if (this.#transcript.dataset.detail !== this.#level) this.#transcript.dataset.detail = this.#level; // setting it again would restyle every row
    this.#updateBlank();
  }

  #step(step) {
    const level = LEVELS[LEVELS.indexOf(this.#level) + step];
    if (level) this.#choose(level);
  }

  #choose(level) {
    this.#set(level);
    localStore.set(STORAGE_KEY, level);
  }

  #updateBlank() {
    const rows = [...this.#transcript.querySelectorAll(":scope > .rows > [data-seq]")];
    this.#transcript.toggleAttribute("data-blank", !rows.some((row) => row.checkVisibility()));
  }
}
customElements.define("detail-level", DetailLevel);
