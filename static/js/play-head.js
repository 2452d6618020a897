/**
 * `<play-head data-at data-head data-address>`: the moment of the past that the views of a page show, `?at=N` in its address.
 * Tells on the document: `playhead:moved` {at, wait}; who draws the moment calls `wait(promise)`, and the next one waits for
 * it. Gaps between events are shortened while it plays.
 */
import { drawTimes } from "./clock.js";
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";
import { onKey } from "./keys.js";
import { morph } from "./morph.js";

const LONGEST_GAP = 2_000; // ms of time between two events that count while it plays
const TICK = 100; // ms

class PlayHead extends HTMLElement {
  #stop = new AbortController();
  #wanted = 0; // the event to go to; 0: none
  #isMoving = false;
  #timer = 0;
  #last = 0; // when time was counted last
  #credit = 0; // ms of the conversation's time that have passed and are not played yet

  connectedCallback() {
    const { signal } = this.#stop;
    this.#range.addEventListener("input", () => this.#seek(Number(this.#range.value)), { signal });
    this.addEventListener("click", (event) => this.#click(event), { signal });
    this.addEventListener("submit", (event) => event.preventDefault(), { signal });
    const keys = { ",": () => this.#step(-1), ".": () => this.#step(1), ">": () => this.#toggle(), L: () => this.#live.click() };
    for (const [key, act] of Object.entries(keys)) signal.addEventListener("abort", onKey(key, act));
    const asked = new URL(location.href).searchParams;
    const speed = this.querySelector(`[data-speed] > [value="${CSS.escape(asked.get("speed"))}"]`);
    if (speed) speed.selected = true;
    if (asked.has("play")) this.#toggle();
  }

  disconnectedCallback() {
    this.#stop.abort();
    this.#pause();
  }

  get #range() { return this.querySelector("input[type=range]"); }
  get #live() { return this.querySelector("[data-live]"); }
  get #moment() { return this.querySelector("[data-moment]"); }
  get #at() { return this.#wanted || Number(this.dataset.at); }
  get #head() { return Number(this.dataset.head); }

  #click(event) {
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
    [this.#last, this.#credit] = [performance.now(), 0];
    this.#timer = setInterval(() => this.#tick(), TICK);
    return this.#shows("pause", true);
  }

  #pause() {
    clearInterval(this.#timer);
    this.#timer = 0;
    this.#shows("play", false);
  }

  #shows(symbol, isPlaying) {
    const button = this.querySelector("[data-play]");
    button.querySelector("use").setAttribute("href", `#i-${symbol}`);
    button.setAttribute("aria-pressed", isPlaying);
    button.title = isPlaying ? "Pause" : "Play";
    button.setAttribute("aria-label", button.title);
  }

  /** Let time pass, and go past the events that it reaches; while a moment is drawn it is saved up to one gap. */
  #tick() {
    const now = performance.now();
    this.#credit += (now - this.#last) * Number(this.querySelector("[data-speed]").value);
    this.#last = now;
    if (this.#isMoving) return;
    let at = Number(this.dataset.at);
    if (at >= this.#head) return this.#pause();
    for (const gap of this.#moment.dataset.gaps.split(",").filter(Boolean)) {
      const cost = Math.max(1, Math.min(Number(gap), LONGEST_GAP));
      if (cost > this.#credit) break;
      this.#credit -= cost;
      at += 1;
    }
    if (at !== Number(this.dataset.at)) this.#seek(at);
  }

  /** One moment is drawn at a time; of those wanted meanwhile the last one. */
  async #seek(at) {
    this.#wanted = Math.max(1, Math.min(this.#head, at));
    this.#range.value = this.#wanted;
    if (this.#isMoving) return;
    this.#isMoving = true;
    while (this.#wanted && this.isConnected) {
      const next = this.#wanted;
      await this.#go(next);
      if (this.#wanted === next) this.#wanted = 0;
    }
    this.#isMoving = false;
  }

  async #go(at) {
    const drawn = [this.#draw(at)];
    const wait = (promise) => drawn.push(promise);
    document.dispatchEvent(new CustomEvent("playhead:moved", { detail: { at, wait } }));
    try {
      await Promise.all(drawn);
    } catch (error) {
      this.#pause(); // the server is away: it stands where it was
      if (!(error instanceof RequestError)) throw error;
    }
  }

  async #draw(at) {
    const fresh = render(await markup(`${this.dataset.address}?at=${at}`, { signal: this.#stop.signal }));
    drawTimes(fresh);
    const figures = fresh.querySelector("[data-figures]");
    document.querySelector(".panel [data-figures]")?.replaceWith(figures);
    morph(this.#moment, fresh.querySelector("[data-moment]"));
    this.dataset.at = at;
    this.dataset.head = this.#moment.dataset.head;
    this.#range.max = this.dataset.head;
    this.#range.value = this.#wanted || at;
    this.#range.setAttribute("aria-valuetext", `Event ${at} of ${this.dataset.head}`);
    this.querySelector("[data-fork]").href = `fork/?event=${at}`;
    this.#address(at);
  }

  /** The moment can be linked, and goes along to the other views. */
  #address(at) {
    const address = new URL(location.href);
    address.searchParams.set("at", at);
    for (const name of ["event", "play", "speed"]) address.searchParams.delete(name);
    address.hash = "";
    history.replaceState(history.state, "", address);
  }
}
customElements.define("play-head", PlayHead);
