/** Plays back a conversation's past: advances the playhead as the conversation's time elapses. */
const MAX_GAP_MS = 2_000; // ms between two events, during playback
const TICK_MS = 100;

export class PastPlayer {
  #head;
  #seek;
  #updateButton;
  #timer = 0;
  #lastTickAt = 0; // time of the last tick, by `performance.now()`
  #unplayedMs = 0; // ms of the conversation's time that have elapsed and are not yet played

  /**
   * @param {{at: number, head: number, gaps: number[], speed: number, isSeeking: boolean}} head  the playhead, read at each tick
   * @param {(at: number) => void} seek  goes to an event
   * @param {(isPlaying: boolean) => void} updateButton
   */
  constructor(head, seek, updateButton) {
    [this.#head, this.#seek, this.#updateButton] = [head, seek, updateButton];
  }

  toggle() {
    if (this.#timer) return this.pause();
    if (this.#head.at >= this.#head.head) this.#seek(1);
    [this.#lastTickAt, this.#unplayedMs] = [performance.now(), 0];
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    return this.#updateButton(true);
  }

  pause() {
    clearInterval(this.#timer);
    this.#timer = 0;
    this.#updateButton(false);
  }

  /** Advance past the events whose time has come. While a moment is being rendered, elapsed time only adds up. */
  #tick() {
    const now = performance.now();
    this.#unplayedMs += (now - this.#lastTickAt) * this.#head.speed;
    this.#lastTickAt = now;
    if (this.#head.isSeeking) return undefined;
    let { at } = this.#head;
    const before = at;
    if (at >= this.#head.head) return this.pause();
    for (const gap of this.#head.gaps) {
      const cost = Math.max(1, Math.min(gap, MAX_GAP_MS));
      if (cost > this.#unplayedMs) break;
      this.#unplayedMs -= cost;
      at += 1;
    }
    return at === before ? undefined : this.#seek(at);
  }
}
