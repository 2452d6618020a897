/** Places of a timeline and the times that they are, read from what the server drew; and the part that is shown of it. */

const LEAST = 200; // places that are shown at the closest
const STEP = 1.6; // of one zoom

/** @typedef {[start: number, end: number, x: number, xEnd: number, isFolded: boolean]} Stretch  ms since the beginning */

export class TimelineScale {
  #width = 1;
  /** @type {Stretch[]} */
  #stretches = [];
  #from = 0;
  #to = 1;

  /** Take over what a part was drawn with. Who sees all of it goes on seeing all. @param {HTMLElement} part */
  read(part) {
    const sawAll = this.isAll;
    this.#width = Number(part.dataset.width);
    this.#stretches = JSON.parse(part.dataset.scale);
    if (sawAll) this.all();
  }

  get isAll() {
    return this.#from <= 0 && this.#to >= this.#width;
  }

  get box() {
    return [this.#from, this.#to - this.#from];
  }

  all() {
    [this.#from, this.#to] = [0, this.#width];
  }

  /** Show from one share (0 to 1) of what is shown to another. */
  show(from, to) {
    const [x, width] = this.box;
    this.#set(x + width * from, Math.max(width * (to - from), LEAST));
  }

  /** @param {number} direction 1: closer @param {number} [around] the share that stays where it is */
  zoom(direction, around = 0.5) {
    const [x, width] = this.box;
    const next = Math.min(this.#width, Math.max(LEAST, direction > 0 ? width / STEP : width * STEP));
    this.#set(x + (width - next) * around, next);
  }

  /** @param {number} share of what is shown, later or (negative) earlier */
  pan(share) {
    const [x, width] = this.box;
    this.#set(x + width * share, width);
  }

  /** Bring a place in view. */
  reveal(place) {
    const [x, width] = this.box;
    if (place < x || place > x + width) this.#set(place - width / 4, width);
  }

  /** Where a place is in what is shown, 0 to 1; the middle where it is not. */
  share(place) {
    const [x, width] = this.box;
    return place >= x && place <= x + width ? (place - x) / width : 0.5;
  }

  /** Say the time since the beginning at so many even places of what is shown. */
  ticks(count) {
    const [x, width] = this.box;
    const times = Array.from({ length: count }, (_, n) => this.#time(x + (width * n) / count));
    const step = Math.min(...times.slice(1).map((time, n) => time - times[n]).filter((far) => far > 0), Infinity);
    return times.map((time) => words(time, step));
  }

  #set(from, width) {
    this.#from = Math.max(0, Math.min(from, this.#width - width));
    this.#to = this.#from + width;
  }

  #time(place) {
    const found = this.#stretches.findLast(([, , x]) => x <= place) ?? this.#stretches[0];
    if (!found) return 0;
    const [start, end, x, xEnd] = found;
    return xEnd > x ? start + ((end - start) * Math.min(1, (place - x) / (xEnd - x))) : start;
  }
}

/** @param {number} ms @param {number} step ms between two, which says how exact it has to be */
const words = (ms, step) => {
  if (ms < 1000 && step < 1000) return `${Math.round(ms)} ms`;
  const digits = step < 100 ? 2 : step < 1000 ? 1 : 0;
  if (ms < 60_000) return `${(ms / 1000).toFixed(digits)} s`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = ((ms % 60_000) / 1000).toFixed(digits);
  if (minutes < 60) return step < 60_000 ? `${minutes} min ${seconds} s` : `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};
