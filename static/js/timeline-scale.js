/** Places of a timeline and the times that they are, read from what the server drew; and the part that is shown of it. */

const MIN_PLACES = 200; // places that are shown at the closest
const STEP = 1.6; // of one zoom
const TICKS = 8; // about as many on the axis; these as on the server (conversations/rendering/timeline_scale.py)
const TICK_GAP = 0.09; // of the axis, between two ticks at least
const LAST_TICK = 0.93; // where the last one may begin, so that its words have room
const FAR_MS = 3_600_000; // from when on seconds are counted anew in each stretch
const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440];
const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, ...MINUTES.map((n) => n * 60_000)];

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
    this.#set(x + width * from, Math.max(width * (to - from), MIN_PLACES));
  }

  /** @param {number} direction 1: closer @param {number} [around] the share that stays where it is */
  zoom(direction, around = 0.5) {
    const [x, width] = this.box;
    const next = Math.min(this.#width, Math.max(MIN_PLACES, direction > 0 ? width / STEP : width * STEP));
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

  /**
   * Where the axis is marked (0 to 1) and with which time since the beginning: round times where work is drawn, from an
   * hour on since the stretch's beginning, and the ends of what is folded. `TimelineScale.ticks` of the server does the same.
   * @returns {[share: number, words: string][]}
   */
  ticks() {
    const [x, width] = this.box;
    const drawn = this.#stretches.filter(([, , from, to, isFolded]) => !isFolded && to > from);
    const longest = drawn.reduce((one, next) => (one && one[3] - one[2] >= next[3] - next[2] ? one : next), null);
    const ms = longest ? ((longest[1] - longest[0]) / (longest[3] - longest[2])) * width : 0;
    const step = STEPS_MS.find((one) => one >= ms / TICKS) ?? STEPS_MS.at(-1);
    /** @type {[number, string][]} */
    const marks = [];
    const mark = (place, words) => {
      const share = (place - x) / width;
      if (share >= 0 && share <= LAST_TICK && marks.every(([other]) => Math.abs(share - other) >= TICK_GAP)) marks.push([share, words]);
    };
    if (longest || this.#stretches.some(([, , , , isFolded]) => isFolded)) mark(0, words(0, step));
    for (const [start, end, from, to] of drawn) {
      if (to < x || from > x + width) continue;
      const seen = Math.max(start, start + ((end - start) * (x - from)) / (to - from));
      const since = start >= FAR_MS && step < 60_000 ? start : 0;
      if (since) mark(from, words(start, 1000));
      const first = Math.max(Math.ceil((seen - since) / step), since ? 1 : 0);
      const last = Math.min(Math.floor((end - since) / step), first + 10 * TICKS);
      for (let n = first; n <= last; n += 1) mark(from + ((since + n * step - start) / (end - start)) * (to - from), `${since ? "+" : ""}${words(n * step, step)}`);
    }
    for (const [, end, , to, isFolded] of this.#stretches) if (isFolded) mark(to, words(end, end < 60_000 ? 100 : 1000));
    return marks.sort(([one], [other]) => one - other);
  }

  #set(from, width) {
    this.#from = Math.max(0, Math.min(from, this.#width - width));
    this.#to = this.#from + width;
  }
}

/** Say a time as exactly as it has to be. @param {number} ms @param {number} step ms between two */
const words = (ms, step) => {
  if (ms && ms < 1000 && step < 1000) return `${Math.round(ms)} ms`;
  const digits = step < 100 ? 2 : step < 1000 ? 1 : 0;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms ? digits : 0)} s`;
  const [minutes, seconds] = [Math.floor(ms / 60_000), ms % 60_000];
  if (minutes < 60) return `${minutes} min${step < 60_000 && seconds ? ` ${(seconds / 1000).toFixed(digits)} s` : ""}`;
  return `${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
};
