/**
 * `<playback-bar data-head>`: playback of a view that shows the present. Its range leads to the view as it was after an
 * event, its link plays from the first one; while nobody holds the range it stays at the newest event.
 */
import { onKey } from "./keys.js";

const number = new Intl.NumberFormat("en-US");

class PlaybackBar extends HTMLElement {
  #stop = new AbortController();
  #isHeld = false;

  connectedCallback() {
    const { signal } = this.#stop;
    const { form } = this.#range;
    form.addEventListener("submit", (event) => event.preventDefault(), { signal });
    this.#range.addEventListener("input", () => this.#move(), { signal });
    this.#range.addEventListener("change", () => this.#go(), { signal });
    this.querySelector("[data-speed]").addEventListener("change", () => this.#pace(), { signal });
    document.addEventListener("transcript:drawn", ({ detail }) => detail.seq && this.#grow(detail.seq), { signal });
    addEventListener("pageshow", () => this.#reset(), { signal }); // back from the past: the present is shown
    const keys = { ">": () => this.querySelector("[data-play]").click(), ",": () => this.#step(-1) };
    for (const [key, act] of Object.entries(keys)) signal.addEventListener("abort", onKey(key, act));
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  get #range() { return this.querySelector("input[type=range]"); }
  get #head() { return Number(this.dataset.head); }

  #grow(seq) {
    if (seq <= this.#head) return;
    this.dataset.head = seq;
    this.#range.max = seq;
    this.querySelector("[data-of]").textContent = number.format(seq);
    if (!this.#isHeld) this.#reset();
  }

  #pace() {
    const link = this.querySelector("[data-play]");
    link.href = this.#atSpeed(new URL(link.href));
  }

  /** Give an address of the past the speed that was chosen. */
  #atSpeed(address) {
    const [chosen] = this.querySelector("[data-speed]").selectedOptions;
    if (chosen.defaultSelected) address.searchParams.delete("speed");
    else address.searchParams.set("speed", chosen.value);
    return address;
  }

  #reset() {
    this.#isHeld = false;
    this.#range.value = this.#head;
    this.#say();
  }

  #move() {
    this.#isHeld = true;
    this.#say();
  }

  #say() {
    this.querySelector("[data-at]").textContent = number.format(this.#range.value);
    this.#range.setAttribute("aria-valuetext", `Event ${this.#range.value} of ${this.#head}`);
  }

  #step(step) {
    this.#range.value = this.#head + step;
    this.#go();
  }

  #go() {
    if (Number(this.#range.value) >= this.#head) return this.#reset();
    const address = new URL(location.href);
    address.search = new URLSearchParams(new FormData(this.#range.form));
    address.hash = "";
    return location.assign(this.#atSpeed(address));
  }
}
customElements.define("playback-bar", PlaybackBar);
