/** Maps places of a timeline to times, as the server rendered them, and holds the range shown. */

const MIN_PLACES = 200; // in the range shown, at the highest zoom
const ZOOM_FACTOR = 1.6; // of one zoom step
// the ticks of the axis, as on the server (conversations/rendering/timeline_scale.py)
const TICKS = 8; // approximate number
const MIN_TICK_GAP = 0.09; // between two ticks, as a share of the axis
const MAX_TICK = 0.93; // position of the last tick, as a share of the axis: its label needs space
const FAR_MS = 3_600_000; // stretches that start later count seconds from their own start
const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440];
const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, ...MINUTES.map((n) => n * 60_000)];

/** @typedef {[start: number, end: number, x: number, xEnd: number, isFolded: boolean]} Stretch  start and end in ms since the timeline's start, x and xEnd in places */

export class TimelineScale {
  #width = 1;
  /** @type {Stretch[]} */
  #stretches = [];
  #from = 0;
  #to = 1;

  /** Read the scale from a part of the page. If all of the timeline was shown, all of it still is. @param {HTMLElement} part */
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

  /** Zoom to a part of the range shown. @param {number} from share (0 to 1) of that range @param {number} to likewise */
  show(from, to) {
    const [x, width] = this.box;
    this.#set(x + width * from, Math.max(width * (to - from), MIN_PLACES));
  }

  /** @param {number} direction 1: zoom in; -1: out @param {number} [around] the share of the range that stays in place */
  zoom(direction, around = 0.5) {
    const [x, width] = this.box;
    const next = Math.min(this.#width, Math.max(MIN_PLACES, direction > 0 ? width / ZOOM_FACTOR : width * ZOOM_FACTOR));
    this.#set(x + (width - next) * around, next);
  }

  /** @param {number} share of the range shown; positive: later, negative: earlier */
  pan(share) {
    const [x, width] = this.box;
    this.#set(x + width * share, width);
  }

  /** Pan so that a place is in the range shown. */
  reveal(place) {
    const [x, width] = this.box;
    if (place < x || place > x + width) this.#set(place - width / 4, width);
  }

  /** Returns a place's position in the range shown, 0 to 1; 0.5 if it is outside. */
  share(place) {
    const [x, width] = this.box;
    return place >= x && place <= x + width ? (place - x) / width : 0.5;
  }

  /**
   * Returns the ticks of the axis: positions (0 to 1), each with a time since the timeline's start. Ticks stand at round times of
   * stretches with events, after the first hour counted from the stretch's start, and at the ends of folded stretches.
   * `TimelineScale.ticks` of the server does the same.
   * @returns {[share: number, label: string][]}
   */
  ticks() {
    const [x, width] = this.box;
    const drawn = this.#stretches.filter(([, , from, to, isFolded]) => !isFolded && to > from);
    const longest = drawn.reduce((best, next) => (best && best[3] - best[2] >= next[3] - next[2] ? best : next), null);
    const rangeMs = longest ? ((longest[1] - longest[0]) / (longest[3] - longest[2])) * width : 0;
    const step = STEPS_MS.find((ms) => ms >= rangeMs / TICKS) ?? STEPS_MS.at(-1);
    /** @type {[number, string][]} */
    const ticks = [];
    const add = (place, label) => {
      const share = (place - x) / width;
      if (share >= 0 && share <= MAX_TICK && ticks.every(([other]) => Math.abs(share - other) >= MIN_TICK_GAP)) ticks.push([share, label]);
    };
    if (longest || this.#stretches.some(([, , , , isFolded]) => isFolded)) add(0, durationText(0, step));
    for (const [start, end, from, to] of drawn) {
      if (to < x || from > x + width) continue;
      const visibleStart = Math.max(start, start + ((end - start) * (x - from)) / (to - from));
      const origin = start >= FAR_MS && step < 60_000 ? start : 0;
      if (origin) add(from, durationText(start, 1000));
      const first = Math.max(Math.ceil((visibleStart - origin) / step), origin ? 1 : 0);
      const last = Math.min(Math.floor((end - origin) / step), first + 10 * TICKS);
      for (let n = first; n <= last; n += 1) add(from + ((origin + n * step - start) / (end - start)) * (to - from), `${origin ? "+" : ""}${durationText(n * step, step)}`);
    }
    for (const [, end, , to, isFolded] of this.#stretches) if (isFolded) add(to, durationText(end, end < 60_000 ? 100 : 1000));
    return ticks.sort(([share], [other]) => share - other);
  }

  #set(from, width) {
    this.#from = Math.max(0, Math.min(from, this.#width - width));
    this.#to = this.#from + width;
  }
}

/** Returns a time with the precision that its step requires. @param {number} time ms @param {number} step ms between two ticks */
const durationText = (time, step) => {
  const wholeMs = Math.round(time);
  if (step < 1000 && wholeMs > 0 && wholeMs < 1000) return `${wholeMs} ms`;
  const digits = step < 100 ? 2 : step < 1000 ? 1 : 0;
  const unit = 1000 / 10 ** digits;
  const ms = Math.round(time / unit) * unit; // before it is split
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms ? digits : 0)} s`;
  const [minutes, seconds] = [Math.floor(ms / 60_000), ms % 60_000];
  if (minutes < 60) return `${minutes} min${step < 60_000 && seconds ? ` ${(seconds / 1000).toFixed(digits)} s` : ""}`;
  return `${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
};
