/**
 * The drawn rows of a transcript, in stretches of 200 that the browser may skip. Used by `live-transcript`.
 * What happened inside a call (`data-within`) stands in the call's block (`.inner`) when that is drawn, else by itself.
 */
import { keepNotes, placeNotes } from "./annotations.js";
import { drawTimes } from "./clock.js";
import { render } from "./html.js";
import { separateRows } from "./row-separators.js";
import { morph } from "./morph.js";
import { stretchesOf } from "./visible-rows.js";

const STRETCH = 200; // rows; content-visibility on each row is slower than none (measured)

export class TranscriptRows {
  #root;
  #draw;
  /** @type {Map<string, Element>} */
  #groups = new Map();

  /**
   * @param {Element} root holds `.rows` elements only, between the two links to further pages
   * @param {(drawn: DocumentFragment) => void} dress what else rows need before they go in
   */
  constructor(root, dress = () => {}) {
    this.#root = root;
    this.#draw = (html) => {
      const drawn = draw(html);
      dress(drawn);
      return drawn;
    };
    this.#register(root);
    this.#joinAll();
  }

  /** All rows, oldest first. */
  get all() {
    return [...this.#root.querySelectorAll(":scope > .rows > [data-seq]")];
  }

  get count() {
    return this.#stretches.reduce((sum, stretch) => sum + stretch.childElementCount, 0);
  }

  get first() {
    return this.#root.querySelector(":scope > .rows > [data-seq]");
  }

  get last() {
    return this.#stretches.at(-1)?.lastElementChild ?? null;
  }

  /** The oldest seq that is drawn; 0 when nothing is. */
  get firstSeq() {
    return Number(this.first?.dataset.seq ?? 0);
  }

  /** The block of a group. @returns {Element | undefined} */
  find(group) {
    return this.#groups.get(group);
  }

  /** Draw one event: in place of its group's block, else at the end. Answers the row when it is a new one. */
  put(html) {
    const fresh = this.#draw(html).firstElementChild;
    if (!fresh) return null;
    placeNotes(fresh);
    const old = this.find(fresh.dataset.group) ?? this.#same(fresh);
    if (old) return this.#replace(old, fresh);
    const inner = this.#innerFor(fresh);
    if (inner) return this.#nest(inner, fresh);
    if (Number(fresh.dataset.seq) < this.firstSeq) return null; // its place is in an older page, drawn when that is loaded
    return this.append(fresh);
  }

  /** Add a row at the end. */
  append(row) {
    const previous = this.last;
    this.#tail().append(row);
    this.#remember(row);
    separateRows([row], previous);
    return row;
  }

  /** Draw an older page before everything. Answers whether anything of it can be seen at the level of detail chosen. */
  prepend(html) {
    const page = this.#page(html);
    const next = this.first;
    this.#adopt(page);
    this.#root.querySelector(":scope > .rows").before(page);
    placeNotes(this.#root);
    const rows = [...page.querySelectorAll(":scope > [data-seq]")];
    separateRows(next ? [...rows, next] : rows);
    return rows.some((row) => row.checkVisibility());
  }

  /** Draw a newer page: rows that are there already take their newer drawing. */
  extend(html) {
    for (const fresh of [...this.#draw(html).children].flatMap(taken)) {
      const old = this.find(fresh.dataset.group) ?? this.#same(fresh);
      const inner = this.#innerFor(fresh);
      if (old) this.#replace(old, fresh);
      else inner ? this.#nest(inner, fresh) : this.append(fresh);
    }
    placeNotes(this.#root);
  }

  /** Draw this page and nothing else. */
  reset(html) {
    this.#stretches.slice(1).forEach((stretch) => stretch.remove());
    this.#groups.clear();
    this.#stretches[0].replaceChildren(this.#draw(html));
    this.#register(this.#root);
    this.#joinAll();
  }

  /** Take the oldest stretches out while `keep` rows stay. Answers the seq before which history must be loaded; 0: none. */
  unloadOldest(keep) {
    let gone = 0;
    const later = [];
    while (this.#has(keep, 0)) {
      const [stretch] = this.#stretches;
      gone = Math.max(gone, ...this.#forget(stretch));
      later.push(...stretch.querySelectorAll(".inner > [data-seq]"));
    }
    if (gone) separateRows([this.first]);
    for (const row of later) if (Number(row.dataset.seq) > gone) this.#stand(row); // the older page will not have it
    return gone && gone + 1;
  }

  /** Take the newest stretches out while `keep` rows stay. Answers the seq after which history must be loaded; 0: none. */
  unloadNewest(keep) {
    let gone = Infinity;
    while (this.#has(keep, -1)) gone = Math.min(gone, ...this.#forget(this.#stretches.at(-1)));
    return gone === Infinity ? 0 : gone - 1;
  }

  #has(keep, end) {
    return this.#stretches.length > 1 && this.count - this.#stretches.at(end).childElementCount >= keep;
  }

  get #stretches() {
    return stretchesOf(this.#root);
  }

  #tail() {
    const last = this.#stretches.at(-1);
    if (last.childElementCount < STRETCH) return last;
    const stretch = Object.assign(document.createElement("div"), { className: "rows" });
    last.after(stretch);
    return stretch;
  }

  #page(html) {
    const page = Object.assign(document.createElement("div"), { className: "rows" });
    page.append(this.#draw(html));
    for (const row of [...page.children]) if (this.find(row.dataset.group) ?? this.#same(row)) row.remove();
    this.#register(page);
    for (const inner of page.querySelectorAll(".inner:not(:empty)")) separateRows([...inner.children], inner.parentElement);
    return page;
  }

  #same(fresh) {
    const found = fresh.id && document.getElementById(fresh.id);
    return found && found.matches(".rows > *, .inner > *") ? found : null; // the end of a call has an id too, inside its row
  }

  #replace(old, fresh) {
    const group = old.dataset.group;
    keepNotes(old, fresh);
    morph(old, fresh);
    if (group !== old.dataset.group) this.#remember(old);
    this.#settle(old);
    separateRows([old], this.#before(old));
    return null;
  }

  /** Where a row belongs that is of a run inside a call: in the block of that call, when it is drawn. */
  #innerFor(row) {
    return this.find(row.dataset.within)?.querySelector(":scope > .inner") ?? null;
  }

  #nest(inner, row) {
    const previous = inner.lastElementChild ?? inner.parentElement;
    inner.append(row);
    this.#remember(row);
    separateRows([row], previous);
    return row;
  }

  /** Take rows in that stood by themselves, since the block of their call was on the page that now comes. */
  #adopt(page) {
    for (const row of this.#root.querySelectorAll(":scope > .rows > [data-within]")) {
      const inner = this.#innerFor(row);
      if (!inner || !page.contains(inner)) continue;
      const [before, next] = [this.#before(row), this.#after(row)];
      if (row.previousElementSibling?.matches(".day")) row.previousElementSibling.remove();
      this.#nest(inner, row);
      if (next) separateRows([next], before);
    }
  }

  /** Have a row stand by itself, where its seq puts it. */
  #stand(row) {
    this.#stretches[0].prepend(row);
    this.#remember(row);
    separateRows([row]);
    this.#settle(row);
  }

  #joinAll() {
    separateRows(this.all);
    for (const inner of this.#root.querySelectorAll(".inner:not(:empty)")) separateRows([...inner.children], inner.parentElement);
  }

  /** Put a row behind those of smaller seqs: an output has its own place in the record, not that of its first token. */
  #settle(row) {
    const left = this.#after(row);
    let last = null;
    for (let next = left; next && Number(next.dataset.seq) < Number(row.dataset.seq); next = this.#after(next)) last = next;
    if (!last) return;
    const day = row.previousElementSibling?.matches(".day") ? row.previousElementSibling : null;
    const before = this.#before(row);
    day?.remove();
    last.after(row);
    separateRows([left], before);
    const next = this.#after(row);
    if (next) separateRows([next], row);
  }

  /** The row after this one, across stretches. */
  #after(row) {
    let at = row;
    do at = at.nextElementSibling ?? at.parentElement.nextElementSibling?.firstElementChild ?? null;
    while (at && !at.matches("[data-seq]"));
    return at;
  }

  /** The row before this one, across stretches; the block around the first one inside it. */
  #before(row) {
    let at = row;
    do at = at.previousElementSibling ?? at.parentElement.previousElementSibling?.lastElementChild ?? null;
    while (at && !at.matches("[data-seq]"));
    return at ?? row.parentElement.closest("[data-seq]");
  }

  #remember(row) {
    if (row.dataset.group) this.#groups.set(row.dataset.group, row);
  }

  #register(root) {
    for (const row of root.querySelectorAll("[data-group]")) this.#remember(row);
  }

  /** An output stands where its turn began, so seqs are not in order: all of them are answered. */
  #forget(stretch) {
    for (const row of stretch.querySelectorAll("[data-group]")) this.#groups.delete(row.dataset.group);
    stretch.remove();
    return [...stretch.querySelectorAll(":scope > [data-seq]")].map((row) => Number(row.dataset.seq));
  }
}

/** A row and those that stand in it, outermost first: each finds its own place. */
const taken = (row) => {
  const rows = [...row.querySelectorAll(".inner > [data-seq]")];
  rows.forEach((one) => one.remove());
  return [row, ...rows];
};

/** Times in the reader's zone before the rows go in: written later they would cost a second layout. */
const draw = (html) => {
  const drawn = render(html);
  drawTimes(drawn);
  return drawn;
};
