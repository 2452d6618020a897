/**
 * `<playback-bar data-head>`: starts playback from a view of the present. Its range input opens the view as it was after an
 * event, its link plays from the first event. Unless it is being dragged, the range stays at the newest event.
 */
import { onKey } from "./keys.js";
import { visit } from "./plain-links.js";
import { keepSpeed } from "./playback-speed.js";

const number = new Intl.NumberFormat("en-US");

class PlaybackBar extends HTMLElement {
  #stop = new AbortController();
  #isDragged = false;

  connectedCallback() {
    const { signal } = this.#stop;
    const { form } = this.#range;
    form.addEventListener("submit", (event) => event.preventDefault(), { signal });
    this.#range.addEventListener("input", () => this.#drag(), { signal });
    this.#range.addEventListener("change", () => this.#open(), { signal });
    const speed = this.querySelector("[data-speed]");
    keepSpeed(speed, null, signal);
    this.#updateLink();
    speed.addEventListener("change", () => this.#updateLink(), { signal });
    document.addEventListener("transcript:drawn", ({ detail }) => detail.seq && this.#updateHead(detail.seq), { signal });
    addEventListener("pageshow", () => this.#reset(), { signal }); // also after going back from a view of the past
    const keys = { ">": () => this.querySelector("[data-play]").click(), ",": () => this.#step(-1) };
    for (const [key, act] of Object.entries(keys)) signal.addEventListener("abort", onKey(key, act));
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  get #range() { return this.querySelector("input[type=range]"); }
  get #head() { return Number(this.dataset.head); }

  #updateHead(seq) {
    if (seq <= this.#head) return;
    this.dataset.head = seq;
    this.#range.max = seq;
    this.querySelector("[data-of]").textContent = number.format(seq);
    if (!this.#isDragged) this.#reset();
  }

  #updateLink() {
    const link = this.querySelector("[data-play]");
    link.href = this.#withSpeed(new URL(link.href));
  }

  /** Set the selected speed in an address. Returns the address. */
  #withSpeed(address) {
    const [selected] = this.querySelector("[data-speed]").selectedOptions;
    if (selected.defaultSelected) address.searchParams.delete("speed");
    else address.searchParams.set("speed", selected.value);
    return address;
  }

  #reset() {
    this.#isDragged = false;
    this.#range.value = this.#head;
    this.#updateLabel();
  }

  #drag() {
    this.#isDragged = true;
    this.#updateLabel();
  }

  #updateLabel() {
    this.querySelector("[data-at]").textContent = number.format(this.#range.value);
    this.#range.setAttribute("aria-valuetext", `Event ${this.#range.value} of ${this.#head}`);
  }

  #step(step) {
    this.#range.value = this.#head + step;
    this.#open();
  }

  #open() {
    if (Number(this.#range.value) >= this.#head) return this.#reset();
    const address = new URL(location.href);
    address.search = new URLSearchParams(new FormData(this.#range.form));
    address.hash = "";
    return visit(this.#withSpeed(address));
  }
}
customElements.define("playback-bar", PlaybackBar);
