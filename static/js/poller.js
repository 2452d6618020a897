/**
 * Work done again and again, while the page is in sight: at once when it comes back into sight, and never twice at a time.
 */
export class Poller {
  #work;
  #everyMs;
  #stop = new AbortController();
  #timer;
  #isBusy = false;

  /** @param {(signal: AbortSignal) => Promise<void>} work @param {number} everyMs between its end and its next beginning */
  constructor(work, everyMs) {
    this.#work = work;
    this.#everyMs = everyMs;
    document.addEventListener("visibilitychange", () => this.#plan(0), { signal: this.#stop.signal });
    this.#plan(everyMs);
  }

  /** End it; what is under way is broken off. */
  stop() {
    clearTimeout(this.#timer);
    this.#stop.abort();
  }

  #plan(inMs) {
    clearTimeout(this.#timer);
    if (!document.hidden && !this.#stop.signal.aborted) this.#timer = setTimeout(() => this.#do(), inMs);
  }

  async #do() {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      await this.#work(this.#stop.signal);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      this.#isBusy = false;
      this.#plan(this.#everyMs);
    }
  }
}
