/** Counts what a reconnect brought back, by what was really applied. */

export class ReconnectCounter {
  #from = 0;
  #count = 0;
  #first = 0;
  #last = 0;
  #isOpen = false;

  /** The connection is back; everything up to `seq` was there before it went. */
  begin(seq) {
    this.#from = this.#last = seq;
    this.#count = this.#first = 0;
    this.#isOpen = true;
  }

  /** The connection went again before everything was there. */
  end() {
    this.#isOpen = false;
  }

  /** One event was applied; a gap counts nothing, so the rest can no longer be whole. */
  count({ seq, kind }) {
    if (!this.#isOpen || kind === "gap" || seq <= this.#from) return;
    this.#count += 1;
    this.#first ||= seq;
    this.#last = seq;
  }

  /** Everything up to `seq` is applied. Answers null when nothing was being restored. */
  finish(seq) {
    if (!this.#isOpen) return null;
    this.#isOpen = false;
    const isWhole = this.#count === seq - this.#from && this.#last === seq;
    return { count: this.#count, first: this.#first, last: this.#last, isWhole };
  }
}
