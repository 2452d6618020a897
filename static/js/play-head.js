/**
 * `<play-head data-at data-head data-address>`: playback of a view of the past, as it was after the event `?at=N`. Dispatches
 * `playhead:moved` {at, wait} on the document: listeners that render that moment pass their promise to `wait`, and the next
 * moment follows once all have settled. Long gaps between events are shortened during playback.
 */
import { drawTimes } from "./clock.js";
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";
import { onKey } from "./keys.js";
import { morph } from "./morph.js";

const MAX_GAP_MS = 2_000; // ms between two events, during playback
const TICK_MS = 100;

class PlayHead extends HTMLElement {
  #stop = new AbortController();
  #target = 0; // the seq to go to; 0: none
  #isSeeking = false;
  #timer = 0;
  #lastTickAt = 0; // time of the last tick, by `performance.now()`
  #unplayedMs = 0; // ms of the conversation's time that have elapsed and are not yet played

  connectedCallback() {
    const { signal } = this.#stop;
    this.#range.addEventListener("input", () => this.#seek(Number(this.#range.value)), { signal });
    this.addEventListener("click", (event) => this.#handleClick(event), { signal });
    this.addEventListener("submit", (event) => event.preventDefault(), { signal });
    const keys = { ",": () => this.#step(-1), ".": () => this.#step(1), ">": () => this.#toggle(), L: () => this.#live.click() };
    for (const [key, act] of Object.entries(keys)) signal.addEventListener("abort", onKey(key, act));
    const parameters = new URL(location.href).searchParams;
    const speed = this.querySelector(`[data-speed] > [value="${CSS.escape(parameters.get("speed"))}"]`);
    if (speed) speed.selected = true;
    if (parameters.has("play")) this.#toggle();
  }

  disconnectedCallback() {
    this.#stop.abort();
    this.#pause();
  }

  get #range() { return this.querySelector("input[type=range]"); }
  get #live() { return this.querySelector("[data-live]"); }
  get #moment() { return this.querySelector("[data-moment]"); }
  get #at() { return this.#target || Number(this.dataset.at); }
  get #head() { return Number(this.dataset.head); }

  #handleClick(event) {
    const step = event.target.closest("[data-step]");
    if (event.target.closest("[data-play]")) return this.#toggle();
    if (!step || event.metaKey || event.ctrlKey || event.shiftKey) return undefined;
    event.preventDefault();
    return this.#step(Number(step.dataset.step));
  }

  #step(step) {
    this.#pause();
    this.#seek(this.#at + step);
  }

  #toggle() {
    if (this.#timer) return this.#pause();
    if (this.#at >= this.#head) this.#seek(1);
    [this.#lastTickAt, this.#unplayedMs] = [performance.now(), 0];
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    return this.#updateButton("pause", true);
  }

  #pause() {
    clearInterval(this.#timer);
    this.#timer = 0;
    this.#updateButton("play", false);
  }

  #updateButton(symbol, isPlaying) {
    const button = this.querySelector("[data-play]");
    button.querySelector("use").setAttribute("href", `#i-${symbol}`);
    button.setAttribute("aria-pressed", isPlaying);
    button.title = isPlaying ? "Pause" : "Play";
    button.setAttribute("aria-label", button.title);
  }

  /** Advance past the events whose time has come. While a moment is being rendered, elapsed time only adds up. */
  #tick() {
    const now = performance.now();
    this.#unplayedMs += (now - this.#lastTickAt) * Number(this.querySelector("[data-speed]").value);
    this.#lastTickAt = now;
    if (this.#isSeeking) return;
    let at = Number(this.dataset.at);
    if (at >= this.#head) return this.#pause();
    for (const gap of this.#moment.dataset.gaps.split(",").filter(Boolean)) {
      const cost = Math.max(1, Math.min(Number(gap), MAX_GAP_MS));
      if (cost > this.#unplayedMs) break;
      this.#unplayedMs -= cost;
      at += 1;
    }
    if (at !== Number(this.dataset.at)) this.#seek(at);
  }

  /** Go to an event. Moments are rendered one at a time; of those requested in between, only the last one. */
  async #seek(at) {
    this.#target = Math.max(1, Math.min(this.#head, at));
    this.#range.value = this.#target;
    if (this.#isSeeking) return;
    this.#isSeeking = true;
    while (this.#target && this.isConnected) {
      const next = this.#target;
      await this.#show(next);
      if (this.#target === next) this.#target = 0;
    }
    this.#isSeeking = false;
  }

  async #show(at) {
    const renderings = [this.#render(at)];
    const wait = (promise) => renderings.push(promise);
    document.dispatchEvent(new CustomEvent("playhead:moved", { detail: { at, wait } }));
    try {
      await Promise.all(renderings);
    } catch (error) {
      this.#pause(); // the server is unreachable: stay where it was
      if (!(error instanceof RequestError)) throw error;
    }
  }

  async #render(at) {
    const fragment = render(await markup(`${this.dataset.address}?at=${at}`, { signal: this.#stop.signal }));
    drawTimes(fragment);
    const figures = fragment.querySelector("[data-figures]");
    document.querySelector(".panel [data-figures]")?.replaceWith(figures);
    morph(this.#moment, fragment.querySelector("[data-moment]"));
    this.dataset.at = at;
    this.dataset.head = this.#moment.dataset.head;
    this.#range.max = this.dataset.head;
    this.#range.value = this.#target || at;
    this.#range.setAttribute("aria-valuetext", `Event ${at} of ${this.dataset.head}`);
    this.querySelector("[data-fork]").href = `fork/?event=${at}`;
    this.#updateAddress(at);
  }

  /** Put the moment into the address, so that it can be linked and is kept in other views. */
  #updateAddress(at) {
    const address = new URL(location.href);
    address.searchParams.set("at", at);
    for (const name of ["event", "play", "speed"]) address.searchParams.delete(name);
    address.hash = "";
    history.replaceState(history.state, "", address);
  }
}
customElements.define("play-head", PlayHead);
