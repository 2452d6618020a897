/** The window of rows that a timeline's page holds: its room among all rows, and the places of what is drawn in it. */
import { drawTimes } from "./clock.js";
import { morph } from "./morph.js";

const NEAR = 20; // rows before the end of the window at which the next is asked for

const percent = (share) => `${(share * 100).toFixed(2)}%`;

function tick(share, words) {
  const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
  for (const [name, value] of Object.entries({ x: percent(share), y: "50%", dx: "4" })) text.setAttribute(name, value);
  text.textContent = words;
  return text;
}

/** What is as it was is not written: it would be laid out anew. */
const setBox = (svg, box) => svg && svg.getAttribute("viewBox") !== box && svg.setAttribute("viewBox", box);

function drawTicks(marks, ticks) {
  const isSame = ([share, words], n) => marks.children[n]?.getAttribute("x") === percent(share) && marks.children[n].textContent === words;
  if (marks && !(marks.childElementCount === ticks.length && ticks.every(isSame))) marks.replaceChildren(...ticks.map(([share, words]) => tick(share, words)));
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
  get #height() { return this.#element.querySelector(".timeline-rows > li")?.offsetHeight ?? 1; }

  get isAtEnd() {
    const { scroller } = this;
    return !scroller || scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < this.#height;
  }

  /** Draw a window in the place of this one; who is at the end stays there. @param {DocumentFragment} fresh */
  draw(fresh, picked) {
    const [wasAtEnd, top] = [this.isAtEnd, this.scroller?.scrollTop ?? 0];
    const part = fresh.querySelector("[data-part]");
    drawTimes(fresh);
    if (this.#isOther(part)) return this.#slide(part, picked);
    this.#scale.read(part);
    this.place(part);
    for (const row of part.querySelectorAll(".timeline-rows .span")) row.removeAttribute("aria-current");
    morph(this.part, part);
    this.settle(picked);
    if (this.scroller) this.scroller.scrollTop = wasAtEnd ? this.scroller.scrollHeight : top;
  }

  /** Whether it is another window of the same rows: nothing happened meanwhile. */
  #isOther(part) {
    const same = ["head", "total", "began"].every((name) => part.dataset[name] === this.part.dataset[name]);
    return same && part.dataset.start !== this.part.dataset.start && this.scroller !== null;
  }

  /** Take over the rows that are not here yet, and let those go that are far away: the others stay untouched. */
  #slide(part, picked) {
    const list = this.part.querySelector(".timeline-rows");
    const here = new Map([...list.children].map((row) => [row.dataset.key, row]));
    const wanted = [...part.querySelector(".timeline-rows").children].map((row) => here.get(row.dataset.key) ?? row);
    for (const row of wanted) if (!row.isConnected) this.#placeOne(row.querySelector(".track"));
    const staying = new Set(wanted);
    for (const row of here.values()) if (!staying.has(row)) row.remove();
    let at = list.firstElementChild;
    for (const row of wanted) {
      if (row === at) at = at.nextElementSibling;
      else list.insertBefore(row, at);
    }
    for (const row of list.querySelectorAll("[aria-current]")) if (row.dataset.seq !== picked) row.removeAttribute("aria-current");
    this.row(picked)?.setAttribute("aria-current", "true");
    this.part.dataset.start = part.dataset.start;
    this.#room();
  }

  #placeOne(track) {
    const [x, width] = this.#scale.box;
    setBox(track, `${x} 0 ${width} 28`);
  }

  /** Give the rows that are not here their room, and everything its place. */
  settle(picked) {
    const { part } = this;
    this.#scale.read(part);
    this.#room();
    this.row(picked)?.setAttribute("aria-current", "true");
    this.place();
  }

  #room() {
    const { part, rows } = this;
    const [start, total] = [Number(part.dataset.start), Number(part.dataset.total)];
    const room = { ".before": start, ".after": Math.max(0, total - start - rows.length) };
    for (const [name, count] of Object.entries(room)) {
      const space = part.querySelector(name);
      if (space) space.style.blockSize = `${count * this.#height}px`;
    }
  }

  /** Draw what is shown of the scale. */
  place(part = this.part) {
    const [x, width] = this.#scale.box;
    for (const track of part.querySelectorAll(".timeline-rows .track")) setBox(track, `${x} 0 ${width} 28`);
    setBox(part.querySelector(".folds"), `${x} 0 ${width} 10`);
    const ticks = this.#scale.ticks();
    drawTicks(part.querySelector(".ticks > .marks"), ticks);
    if (part === this.part) this.#rule(ticks); // not what is merged into it: its style attribute would be refused
  }

  /** Draw the lines of the axis behind the rows, which are not styled again for them. */
  #rule(ticks) {
    const line = ([share]) => `var(--mark) calc(var(--track-start) + ${share.toFixed(4)} * (100% - var(--track-beside))) 0 / 1px var(--mark-height) repeat-y`;
    const list = this.part.querySelector(".timeline-rows");
    if (list) list.style.background = ticks.map(line).join(", ");
  }

  /** The number of the row at which the next window is to begin; null while this one is enough. */
  get wanted() {
    const { part, rows, scroller } = this;
    const [start, total] = [Number(part.dataset.start), Number(part.dataset.total)];
    const first = Math.floor(scroller.scrollTop / this.#height);
    const last = first + Math.ceil(scroller.clientHeight / this.#height);
    const isEnough = (start === 0 || first >= start + NEAR) && (start + rows.length >= total || last <= start + rows.length - NEAR);
    const wanted = Math.max(0, Math.min(total - rows.length, Math.round((first + last - rows.length) / 2)));
    return isEnough || wanted === start ? null : wanted;
  }
}
