/**
 * The rendered rows of a transcript, in stretches of 200, in lanes of 4, that the browser may skip (`content-visibility`). A row of a run inside
 * a call (`data-within`) is nested in the call's block (`.inner`) if that is loaded, or else a row of its own. Used by
 * `live-transcript` and `transcript-pages`.
 */
import { keepNotes, placeNotes } from "./annotations.js";
import { drawTimes } from "./clock.js";
import { render } from "./html.js";
import { separateRows } from "./row-separators.js";
import { morph } from "./morph.js";
import { isUnloaded, unloadNested } from "./nested-rows.js";
import { watchSuperseded } from "./superseded-runs.js";
import { stretchesOf } from "./visible-rows.js";

const STRETCH = 200; // rows; content-visibility on each row is slower than none (measured)
const LANES_STRETCH = 4; // rows in lanes, which cost more: so many are styled, laid out and painted in one frame (templates/lanes.html)

export class TranscriptRows {
  #root;
  #render;
  #size; // rows of a stretch
  /** @type {Map<string, Element>} */
  #groups = new Map();
  /** @type {Set<Element>} */
  #inners = new Set(); // elements with nested rows
  /** @type {WeakMap<Element, number>} */
  #nested = new WeakMap(); // stretch → rows that were nested in it since

  /**
   * @param {Element} root  contains only `.rows` elements, between the links to older and newer pages
   * @param {(rows: DocumentFragment, how: {isReset?: boolean}) => void} prepare  called with new rows before they are inserted, or replace all rows
   */
  constructor(root, prepare = () => {}) {
    this.#root = root;
    this.#size = root.matches(".lanes") ? LANES_STRETCH : STRETCH;
    this.#render = (html, how = {}) => {
      const fragment = renderRows(html);
      prepare(fragment, how);
      watchSuperseded(fragment);
      return fragment;
    };
    this.#registerGroups(root);
    this.#separateAll();
    watchSuperseded(root);
  }

  /** All rows, oldest first. */
  get all() {
    return [...this.#root.querySelectorAll(":scope > .rows > [data-seq]")];
  }

  /** How many rows there are, with the nested ones. */
  get count() {
    for (const inner of this.#inners) if (!inner.isConnected) this.#inners.delete(inner);
    return countRows([...this.#stretches, ...this.#inners]);
  }

  get first() {
    return this.#root.querySelector(":scope > .rows > [data-seq]");
  }

  get last() {
    const end = this.#stretches.at(-1)?.lastElementChild;
    return end?.matches("[data-seq]") ? end : (this.all.at(-1) ?? null); // a folded card may leave an empty stretch
  }

  /** The seq of the first row; 0 if there are no rows. */
  get firstSeq() {
    return Number(this.first?.dataset.seq ?? 0);
  }

  /** Returns the row of a group. @returns {Element | undefined} */
  find(group) {
    return this.#groups.get(group);
  }

  /** Render an event: it updates the row of its group, or is added at the end. Returns the row if it is new, or else null. */
  put(html) {
    const newer = this.#render(html).firstElementChild;
    if (!newer) return null;
    placeNotes(newer);
    const row = this.find(newer.dataset.group) ?? this.#findById(newer);
    if (row) return this.#update(row, newer);
    const inner = this.#innerFor(newer);
    if (inner) return this.#nest(inner, newer);
    if (Number(newer.dataset.seq) < this.firstSeq) return null; // belongs to an older page, which will contain it
    return this.append(newer);
  }

  /** Add a row at the end. */
  append(row) {
    const previous = this.last;
    this.#openStretch().append(row);
    this.#registerGroup(row);
    separateRows([row], previous);
    return row;
  }

  /** Insert an older page before all rows. Returns whether any of its rows is visible at the chosen level of detail. */
  prepend(html) {
    const page = this.#buildPage(html);
    const next = this.first;
    this.#nestRows(page);
    const rows = [...page.querySelectorAll(":scope > [data-seq]")];
    this.#root.querySelector(":scope > .rows").before(page);
    this.#divide(page);
    placeNotes(this.#root);
    separateRows(next ? [...rows, next] : rows);
    const isAll = this.#root.dataset.detail === "all"; // else style is computed, also of stretches that the browser skips
    return rows.some((row) => isAll || row.checkVisibility());
  }

  /** Add a newer page at the end; rows that are loaded already are updated. */
  extend(html) {
    for (const newer of [...this.#render(html).children].flatMap(extractNested)) {
      const row = this.find(newer.dataset.group) ?? this.#findById(newer);
      const inner = this.#innerFor(newer);
      if (row) this.#update(row, newer);
      else inner ? this.#nest(inner, newer) : this.append(newer);
    }
    placeNotes(this.#root);
  }

  /** Replace all rows by this page. */
  reset(html) {
    this.#stretches.slice(1).forEach((stretch) => stretch.remove());
    this.#groups.clear();
    this.#stretches[0].replaceChildren(this.#render(html, { isReset: true }));
    this.#divide(this.#stretches[0]);
    this.#registerGroups(this.#root);
    this.#separateAll();
  }

  /**
   * Remove the oldest stretches while at least `keep` rows stay; then the oldest rows within calls, while more than `keep` are left.
   * Returns the seq before which rows must be loaded again; 0: no stretch removed.
   */
  unloadOldest(keep) {
    let lastRemoved = 0;
    const nested = [];
    while (this.#canRemove(keep, 0)) {
      const [stretch] = this.#stretches;
      lastRemoved = Math.max(lastRemoved, ...this.#removeStretch(stretch));
      nested.push(...stretch.querySelectorAll(".inner > [data-seq]"));
    }
    if (lastRemoved) this.#dropDetached(), separateRows([this.first]);
    for (const row of nested) if (Number(row.dataset.seq) > lastRemoved) this.#unnest(row); // the older page will not contain it
    if (this.count > keep) this.#unloadNested();
    return lastRemoved && lastRemoved + 1;
  }

  /** Remove the newest stretches while at least `keep` rows stay. Returns the seq after which rows must be loaded again; 0: none removed. */
  unloadNewest(keep) {
    let firstRemoved = Infinity;
    while (this.#canRemove(keep, -1)) firstRemoved = Math.min(firstRemoved, ...this.#removeStretch(this.#stretches.at(-1)));
    return firstRemoved === Infinity ? 0 : firstRemoved - 1;
  }

  #canRemove(keep, end) {
    const stretch = this.#stretches.at(end);
    return this.#stretches.length > 1 && this.count - countRows([stretch, ...[...this.#inners].filter((inner) => stretch.contains(inner))]) >= keep;
  }

  #unloadNested() {
    for (const inner of this.#inners) {
      const removed = unloadNested(inner);
      for (const row of removed) this.#forgetGroups(row);
      if (removed.length) separateRows([...inner.children].filter((row) => row.matches("[data-seq]")).slice(0, 2), inner.parentElement);
    }
  }

  get #stretches() {
    return stretchesOf(this.#root);
  }

  /** Returns the last stretch, or a new one if it is full. */
  #openStretch() {
    const last = this.#stretches.at(-1);
    if (last.childElementCount + (this.#nested.get(last) ?? 0) < this.#size) return last;
    const stretch = newStretch();
    last.after(stretch);
    return stretch;
  }

  /** Divide a stretch that has too many rows. */
  #divide(stretch) {
    const rows = [...stretch.children];
    let last = stretch;
    for (let n = this.#size; n < rows.length; n += this.#size) {
      last.after(newStretch(rows.slice(n, n + this.#size)));
      last = last.nextElementSibling;
    }
  }

  #buildPage(html) {
    const page = newStretch();
    page.append(this.#render(html));
    for (const row of [...page.children]) if (this.find(row.dataset.group) ?? this.#findById(row)) row.remove();
    this.#registerGroups(page);
    for (const inner of page.querySelectorAll(".inner:not(:empty)")) separateRows([...inner.children], inner.parentElement);
    return page;
  }

  /** Returns the loaded row with the same id, or null. */
  #findById(newer) {
    const element = newer.id && document.getElementById(newer.id);
    return element && element.matches(".rows > *, .inner > *") ? element : null; // the end of a call, inside its row, has an id too
  }

  #update(row, newer) {
    const group = row.dataset.group;
    keepNotes(row, newer);
    morph(row, newer);
    if (group !== row.dataset.group) this.#registerGroup(row);
    this.#sort(row);
    separateRows([row], this.#before(row));
    return null;
  }

  /** Returns the element in which a row of a run inside a call is nested, or null if that call is not loaded. */
  #innerFor(row) {
    return this.find(row.dataset.within)?.querySelector(":scope > .inner") ?? null;
  }

  /** Returns the row, or null if it is among those that were unloaded. */
  #nest(inner, row) {
    if (isUnloaded(inner, row)) return null;
    this.#inners.add(inner);
    const stretch = inner.closest(".rows");
    this.#nested.set(stretch, (this.#nested.get(stretch) ?? 0) + 1);
    const previous = inner.lastElementChild ?? inner.parentElement;
    inner.append(row);
    this.#registerGroup(row);
    separateRows([row], previous);
    return row;
  }

  /** Nest rows whose call was not loaded until this page. */
  #nestRows(page) {
    for (const row of this.#root.querySelectorAll(":scope > .rows > [data-within]")) {
      const inner = this.#innerFor(row);
      if (!inner || !page.contains(inner)) continue;
      const [before, next] = [this.#before(row), this.#after(row)];
      if (row.previousElementSibling?.matches(".day")) row.previousElementSibling.remove();
      this.#nest(inner, row);
      if (next) separateRows([next], before);
    }
  }

  /** Make a nested row a row of its own, at the place of its seq. */
  #unnest(row) {
    this.#stretches[0].prepend(row);
    this.#registerGroup(row);
    separateRows([row]);
    this.#sort(row);
  }

  #separateAll() {
    separateRows(this.all);
    for (const inner of this.#root.querySelectorAll(".inner:not(:empty)")) separateRows([...inner.children], inner.parentElement);
  }

  /** Move a row behind those with smaller seqs: an output has its own seq, not that of its first token. */
  #sort(row) {
    const follower = this.#after(row);
    let last = null;
    for (let next = follower; next && Number(next.dataset.seq) < Number(row.dataset.seq); next = this.#after(next)) last = next;
    if (!last) return;
    const day = row.previousElementSibling?.matches(".day") ? row.previousElementSibling : null;
    const before = this.#before(row);
    day?.remove();
    last.after(row);
    separateRows([follower], before);
    const next = this.#after(row);
    if (next) separateRows([next], row);
  }

  /** Returns the next row, across stretches. */
  #after(row) {
    let at = row;
    do at = at.nextElementSibling ?? acrossStretches(at.parentElement, "nextElementSibling", "firstElementChild");
    while (at && !at.matches("[data-seq]"));
    return at;
  }

  /** Returns the previous row, across stretches; for the first nested row, its call's row. */
  #before(row) {
    let at = row;
    do at = at.previousElementSibling ?? acrossStretches(at.parentElement, "previousElementSibling", "lastElementChild");
    while (at && !at.matches("[data-seq]"));
    return at ?? row.parentElement.closest("[data-seq]");
  }

  #registerGroup(row) {
    if (row.dataset.group) this.#groups.set(row.dataset.group, row);
  }

  #registerGroups(root) {
    for (const row of root.querySelectorAll("[data-group]")) this.#registerGroup(row);
    for (const inner of root.querySelectorAll(".inner:not(:empty)")) this.#inners.add(inner);
  }

  #forgetGroups(root) {
    for (const row of [root, ...root.querySelectorAll("[data-group]")]) this.#groups.delete(row.dataset.group);
  }

  /** Forget rows that were removed by others, such as the outputs that `lane-heads` folds: groups would keep them in memory. */
  #dropDetached() {
    for (const [group, row] of this.#groups) if (!row.isConnected) this.#groups.delete(group);
  }

  /** Remove a stretch. Returns the seqs of all its rows, since the rows may not be in the order of seqs. */
  #removeStretch(stretch) {
    this.#forgetGroups(stretch);
    stretch.remove();
    return [...stretch.querySelectorAll(":scope > [data-seq]")].map((row) => Number(row.dataset.seq));
  }
}

/** Returns how many rows these elements have. @param {Element[]} lists */
const countRows = (lists) => lists.reduce((sum, { childElementCount }) => sum + childElementCount, 0);

/** Returns the element at the near end of the next or previous stretch that is not empty, or null. */
const acrossStretches = (stretch, sibling, end) => {
  let at = stretch[sibling];
  while (at?.matches(".rows") && !at[end]) at = at[sibling];
  return at?.[end] ?? null;
};

/** Create a stretch. @param {Element[]} [rows] */
const newStretch = (rows = []) => {
  const stretch = Object.assign(document.createElement("div"), { className: "rows" });
  stretch.append(...rows);
  return stretch;
};

/** Extract nested rows, each of which finds its own place. Returns them after their outer row. */
const extractNested = (row) => {
  const rows = [...row.querySelectorAll(".inner > [data-seq]")];
  rows.forEach((nested) => nested.remove());
  return [row, ...rows];
};

/** Render rows with times in the reader's zone before they are inserted: later this would cost a second layout. */
const renderRows = (html) => {
  const fragment = render(html);
  drawTimes(fragment);
  return fragment;
};
