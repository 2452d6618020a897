/**
 * Repeats an asynchronous task while the page is visible, and at once when it becomes visible again; runs never overlap. Used
 * by `polling-part` and `deferred-part`.
 */
export class Poller {
  #task;
  #intervalMs;
  #stop = new AbortController();
  #timer;
  #isRunning = false;

  /** @param {(signal: AbortSignal) => Promise<void>} task @param {number} intervalMs from the end of a run to the next one */
  constructor(task, intervalMs) {
    this.#task = task;
    this.#intervalMs = intervalMs;
    document.addEventListener("visibilitychange", () => this.#schedule(0), { signal: this.#stop.signal });
    this.#schedule(intervalMs);
  }

  /** Stop for good; a run in progress is aborted. */
  stop() {
    clearTimeout(this.#timer);
    this.#stop.abort();
  }

  #schedule(delayMs) {
    clearTimeout(this.#timer);
    if (!document.hidden && !this.#stop.signal.aborted) this.#timer = setTimeout(() => this.#run(), delayMs);
  }

  async #run() {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      await this.#task(this.#stop.signal);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      this.#isRunning = false;
      this.#schedule(this.#intervalMs);
    }
  }
}
