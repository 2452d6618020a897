/** The loaded window of a timeline's rows: its position among all rows, and its rendering at the current scale. */
import { drawTimes } from "./clock.js";
import { morph } from "./morph.js";

const PRELOAD_ROWS = 20; // rows from the end of the window at which the next one is requested

const percent = (share) => `${(share * 100).toFixed(2)}%`;

function tickElement(share, label) {
  const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
  for (const [name, value] of Object.entries({ x: percent(share), y: "50%", dx: "4" })) text.setAttribute(name, value);
  text.textContent = label;
  return text;
}

/** Set a viewBox; an unchanged one is not written, since each write causes a layout. */
const setBox = (svg, box) => svg && svg.getAttribute("viewBox") !== box && svg.setAttribute("viewBox", box);

function drawTicks(marks, ticks) {
  const isSame = ([share, label], n) => marks.children[n]?.getAttribute("x") === percent(share) && marks.children[n].textContent === label;
  if (marks && !(marks.childElementCount === ticks.length && ticks.every(isSame))) marks.replaceChildren(...ticks.map(([share, label]) => tickElement(share, label)));
}

export class TimelineWindow {
  #element;
  #scale;

  /** @param {HTMLElement} element @param {import("./timeline-scale.js").TimelineScale} scale */
  constructor(element, scale) {
    this.#element = element;
    this.#scale = scale;
  }

  get part() { return this.#element.querySelector("[data-part]"); }
  get scroller() { return this.#element.querySelector(".waterfall-scroll"); }
  get rows() { return [...this.#element.querySelectorAll(".timeline-rows .span")]; }
  row(seq) { return seq ? this.#element.querySelector(`.timeline-rows [data-seq="${CSS.escape(seq)}"]`) : null; }
  get #rowHeight() { return this.#element.querySelector(".timeline-rows > li")?.offsetHeight ?? 1; }

  get isAtEnd() {
    const { scroller } = this;
    return !scroller || scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < this.#rowHeight;
  }

  /** Render a window in place of the current one. A reader at the end stays there. @param {DocumentFragment} fragment @param {string} picked the selected row's seq */
  draw(fragment, picked) {
    const [wasAtEnd, top] = [this.isAtEnd, this.scroller?.scrollTop ?? 0];
    const part = fragment.querySelector("[data-part]");
    drawTimes(fragment);
    if (this.#isOtherWindow(part)) return this.#slide(part, picked);
    this.#scale.read(part);
    this.place(part);
    for (const row of part.querySelectorAll(".timeline-rows .span")) row.removeAttribute("aria-current");
    morph(this.part, part);
    this.settle(picked);
    if (this.scroller) this.scroller.scrollTop = wasAtEnd ? this.scroller.scrollHeight : top;
  }

  /** Whether a part is another window of the same rows, without new events. */
  #isOtherWindow(part) {
    const same = ["head", "total", "began"].every((name) => part.dataset[name] === this.part.dataset[name]);
    return same && part.dataset.start !== this.part.dataset.start && this.scroller !== null;
  }

  /** Move to another window of the same rows: add and remove rows at the ends, the others stay untouched. */
  #slide(part, picked) {
    const list = this.part.querySelector(".timeline-rows");
    const loaded = new Map([...list.children].map((row) => [row.dataset.key, row]));
    const wanted = [...part.querySelector(".timeline-rows").children].map((row) => loaded.get(row.dataset.key) ?? row);
    for (const row of wanted) if (!row.isConnected) this.#placeTrack(row.querySelector(".track"));
    const remaining = new Set(wanted);
    for (const row of loaded.values()) if (!remaining.has(row)) row.remove();
    let current = list.firstElementChild;
    for (const row of wanted) {
      if (row === current) current = current.nextElementSibling;
      else list.insertBefore(row, current);
    }
    for (const row of list.querySelectorAll("[aria-current]")) if (row.dataset.seq !== picked) row.removeAttribute("aria-current");
    this.row(picked)?.setAttribute("aria-current", "true");
    this.part.dataset.start = part.dataset.start;
    this.#reserveSpace();
  }

  #placeTrack(track) {
    const [x, width] = this.#scale.box;
    setBox(track, `${x} 0 ${width} 28`);
  }

  /** Apply the scale of the part, reserve the space of rows that are not loaded, and mark the selected row. */
  settle(picked) {
    const { part } = this;
    this.#scale.read(part);
    this.#reserveSpace();
    this.row(picked)?.setAttribute("aria-current", "true");
    this.place();
  }

  #reserveSpace() {
    const { part, rows } = this;
    const [start, total] = [Number(part.dataset.start), Number(part.dataset.total)];
    const missing = { ".before": start, ".after": Math.max(0, total - start - rows.length) };
    for (const [name, count] of Object.entries(missing)) {
      const space = part.querySelector(name);
      if (space) space.style.blockSize = `${count * this.#rowHeight}px`;
    }
  }

  /** Render rows and axis at the range shown. */
  place(part = this.part) {
    const [x, width] = this.#scale.box;
    for (const track of part.querySelectorAll(".timeline-rows .track")) setBox(track, `${x} 0 ${width} 28`);
    setBox(part.querySelector(".folds"), `${x} 0 ${width} 10`);
    const ticks = this.#scale.ticks();
    drawTicks(part.querySelector(".ticks > .marks"), ticks);
    if (part === this.part) this.#drawLines(ticks); // not before `part` is merged: the content security policy refuses its style attribute
  }

  /** Draw the axis's lines as the list's background: rows need no style recalculation. */
  #drawLines(ticks) {
    const line = ([share]) => `var(--mark) calc(var(--track-start) + ${share.toFixed(4)} * (100% - var(--track-beside))) 0 / 1px var(--mark-height) repeat-y`;
    const list = this.part.querySelector(".timeline-rows");
    if (list) list.style.background = ticks.map(line).join(", ");
  }

  /** The index of the row at which the next window is to start; null if the current one suffices. */
  get wanted() {
    const { part, rows, scroller } = this;
    const [start, total] = [Number(part.dataset.start), Number(part.dataset.total)];
    const first = Math.floor(scroller.scrollTop / this.#rowHeight);
    const last = first + Math.ceil(scroller.clientHeight / this.#rowHeight);
    const isEnough = (start === 0 || first >= start + PRELOAD_ROWS) && (start + rows.length >= total || last <= start + rows.length - PRELOAD_ROWS);
    const wanted = Math.max(0, Math.min(total - rows.length, Math.round((first + last - rows.length) / 2)));
    return isEnough || wanted === start ? null : wanted;
  }
}
