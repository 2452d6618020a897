/**
 * `<play-head data-at data-head data-address data-topic data-after data-epoch>`: playback of a view of the past, as it was after
 * the event `?at=N`. Dispatches `playhead:moved` {at, wait, isSameMoment} on the document: listeners that render that moment pass
 * their promise to `wait`, and the next moment follows once all have settled. After a redaction, the moment is rendered again
 * (`isSameMoment`). Long gaps between events are shortened during playback.
 */
import { drawTimes } from "./clock.js";
import { FailureStrip } from "./failure-strip.js";
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";
import { onKey } from "./keys.js";
import { morph } from "./morph.js";
import { PastPlayer } from "./past-player.js";
import { keepSpeed } from "./playback-speed.js";
import { dispatchRedacted, watchRedactions } from "./redaction-watch.js";

const RETRY_MS = 2_000; // after a failed request following a redaction

class PlayHead extends HTMLElement {
  #stop = new AbortController();
  #player = new PastPlayer(this, (at) => this.#seek(at), (isPlaying) => this.#updateButton(isPlaying));
  #strip;
  #target = 0; // the seq to go to; 0: none
  #isSeeking = false;
  #isStale = false; // whether the moment shows redacted events as they were
  #retryTimer = 0;

  connectedCallback() {
    const { signal } = this.#stop;
    this.#strip = new FailureStrip(this.querySelector("[data-moment-failed]"), () => this.#seek(Number(this.#range.value)), signal);
    this.#range.addEventListener("input", () => this.#seek(Number(this.#range.value)), { signal });
    this.addEventListener("click", (event) => this.#handleClick(event), { signal });
    this.addEventListener("submit", (event) => event.preventDefault(), { signal });
    const keys = { ",": () => this.#step(-1), ".": () => this.#step(1), ">": () => this.#player.toggle(), L: () => this.#live.click() };
    for (const [key, act] of Object.entries(keys)) signal.addEventListener("abort", onKey(key, act));
    signal.addEventListener("abort", watchRedactions(this.dataset, () => (dispatchRedacted(), this.#renderAgain())));
    const parameters = new URL(location.href).searchParams;
    keepSpeed(this.querySelector("[data-speed]"), parameters.get("speed"), signal);
    if (parameters.has("play")) this.#player.toggle();
  }

  disconnectedCallback() {
    this.#stop.abort();
    this.#player.pause();
    clearTimeout(this.#retryTimer);
  }

  get at() { return Number(this.dataset.at); }
  get head() { return Number(this.dataset.head); }
  get speed() { return Number(this.querySelector("[data-speed]").value); }
  get isSeeking() { return this.#isSeeking; }

  /** Times between the next events, in ms. */
  get gaps() { return this.#moment.dataset.gaps.split(",").filter(Boolean).map(Number); }

  get #range() { return this.querySelector("input[type=range]"); }
  get #live() { return this.querySelector("[data-live]"); }
  get #moment() { return this.querySelector("[data-moment]"); }

  #handleClick(event) {
    const step = event.target.closest("[data-step]");
    if (event.target.closest("[data-play]")) return this.#player.toggle();
    if (!step || event.metaKey || event.ctrlKey || event.shiftKey) return undefined;
    event.preventDefault();
    return this.#step(Number(step.dataset.step));
  }

  #step(step) {
    this.#player.pause();
    this.#seek((this.#target || this.at) + step);
  }

  #updateButton(isPlaying) {
    const button = this.querySelector("[data-play]");
    button.querySelector("use").setAttribute("href", isPlaying ? "#i-pause" : "#i-play");
    button.setAttribute("aria-pressed", isPlaying);
    button.title = isPlaying ? "Pause" : "Play";
    button.setAttribute("aria-label", button.title);
  }

  /** Render the moment again after a redaction, or the one that the reader tried to go to. */
  #renderAgain() {
    this.#isStale = true;
    this.#seek(Number(this.#range.value));
  }

  /** Go to an event. Moments are rendered one at a time; of those requested in between, only the last one. */
  async #seek(at) {
    this.#target = Math.max(1, Math.min(this.head, at));
    this.#range.value = this.#target;
    if (this.#isSeeking) return;
    this.#isSeeking = true;
    try {
      while ((this.#target || this.#isStale) && this.isConnected) {
        const next = this.#target || this.at;
        await this.#show(next);
        if (this.#target === next) this.#target = 0;
      }
    } finally {
      this.#isSeeking = false;
    }
  }

  /** Render all parts, and wait for each even if one fails: otherwise an older moment could be rendered over a newer one. */
  async #show(at) {
    const isSameMoment = this.#isStale && at === this.at;
    const wasStale = this.#isStale;
    this.#isStale = false; // set again by a redaction during the request
    const renderings = [this.#render(at)];
    const wait = (promise) => renderings.push(promise);
    document.dispatchEvent(new CustomEvent("playhead:moved", { detail: { at, wait, isSameMoment } }));
    const results = await Promise.allSettled(renderings);
    const errors = results.filter(({ status }) => status === "rejected").map(({ reason }) => reason);
    if (!errors.length) return this.#strip.hide(this.#range);
    if (wasStale && this.isConnected && errors.some(({ isTemporary }) => isTemporary)) this.#retryTimer = setTimeout(() => this.#renderAgain(), RETRY_MS);
    return this.#showFailure(at, errors[0]);
  }

  #showFailure(at, error) {
    this.#player.pause();
    if (error.name === "AbortError") return;
    if (!(error instanceof RequestError)) throw error;
    this.#strip.show(`Event ${at} could not be shown. ${error.sentence}`);
  }

  async #render(at) {
    const fragment = render(await markup(`${this.dataset.address}?at=${at}`, { signal: this.#stop.signal }));
    drawTimes(fragment);
    const figures = fragment.querySelector("[data-figures]");
    document.querySelector(".panel [data-figures]")?.replaceWith(figures);
    morph(this.#moment, fragment.querySelector("[data-moment]"));
    if (at !== this.at) this.#updateAddress(at);
    this.dataset.at = at;
    this.dataset.head = this.#moment.dataset.head;
    this.#range.max = this.dataset.head;
    this.#range.value = this.#target || at;
    this.#range.setAttribute("aria-valuetext", `Event ${at} of ${this.dataset.head}`);
    this.querySelector("[data-fork]").href = `fork/?event=${at}`;
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
