/** Counts the missed events that a reconnect restored, as they are applied. */

export class ReconnectCounter {
  #baseSeq = 0;
  #count = 0;
  #firstSeq = 0;
  #lastSeq = 0;
  #isCounting = false;

  get isCounting() { return this.#isCounting; }

  /** Start counting: the connection is back, and everything up to `seq` had been received before. */
  begin(seq) {
    this.#baseSeq = this.#lastSeq = seq;
    this.#count = this.#firstSeq = 0;
    this.#isCounting = true;
  }

  /** Stop counting: the connection was lost again before everything was restored. */
  end() {
    this.#isCounting = false;
  }

  /** Count an applied event. A gap is not counted, so the result is then not whole. */
  count({ seq, kind }) {
    if (!this.#isCounting || kind === "gap" || seq <= this.#baseSeq) return;
    this.#count += 1;
    this.#firstSeq ||= seq;
    this.#lastSeq = seq;
  }

  /** Everything up to `seq` is applied. Returns the result, or null if nothing was being restored. */
  finish(seq) {
    if (!this.#isCounting) return null;
    this.#isCounting = false;
    const isWhole = this.#count === seq - this.#baseSeq && this.#lastSeq === seq;
    return { count: this.#count, first: this.#firstSeq, last: this.#lastSeq, isWhole };
  }
}
