/**
 * `<lane-heads>`: who has a lane, in order. Gives cards their places, and a new voice a lane of its own, before they are
 * shown. Without scripts the page comes with both (`dashboard/pages/lanes.py`).
 */
import { LaneActivity } from "./lane-activity.js";

const MOST = 40; // lanes; who comes later shares the last one

/** Stands in the `.lanes` that scroll. While the tail is followed, the newest card is brought in view sideways too. */
class LaneHeads extends HTMLElement {
  /** @type {Map<string, number>} */
  #places = new Map();
  #activity = new LaneActivity();

  connectedCallback() {
    for (const head of this.querySelectorAll(":scope > [data-key]")) this.#places.set(head.dataset.key, this.#places.size + 1);
    this.#dress([...this.parentElement.querySelectorAll(":scope > .rows > .lane-event")]);
    for (const name of ["event:picked", "transcript:drawn", "transcript:live"]) document.addEventListener(name, this);
  }

  disconnectedCallback() {
    for (const name of ["event:picked", "transcript:drawn", "transcript:live"]) document.removeEventListener(name, this);
  }

  handleEvent({ type, detail }) {
    if (type === "event:picked") return this.#aside(detail.row);
    if (this.closest("tail-follow").isFollowing) this.#aside(this.#newest);
    return undefined;
  }

  /** @param {ParentNode} drawn cards that are about to enter the page */
  place(drawn) {
    const cards = [...drawn.querySelectorAll(".lane-event")].filter((card) => !this.#isFolded(card));
    for (const card of cards) this.#put(card);
    this.#dress(cards);
  }

  /** An output is not drawn beside the message that says the same, whichever comes first. */
  #isFolded(card) {
    const { seq, folds } = card.dataset;
    const output = folds && document.querySelector(`.lane-event[data-seq="${folds}"]`);
    if (output) output.remove();
    const isFolded = document.querySelector(`.lane-event[data-folds="${seq}"]`) !== null;
    if (isFolded) card.remove();
    return isFolded;
  }

  #dress(cards) {
    if (cards.length) this.#activity.draw(cards, (lane) => this.children[lane]?.dataset.hue);
  }

  get #newest() {
    return [...this.parentElement.querySelectorAll(":scope > .rows > .lane-event")].findLast((card) => card.checkVisibility());
  }

  /** Scroll sideways, no further than needed to see a card beside the times. */
  #aside(row) {
    const card = row?.querySelector(".lane-card")?.getBoundingClientRect();
    if (!card) return;
    const view = this.parentElement.getBoundingClientRect();
    const start = view.left + row.querySelector("time").offsetWidth;
    if (card.left < start) this.parentElement.scrollLeft -= start - card.left;
    else if (card.right > view.right) this.parentElement.scrollLeft += card.right - view.right;
  }

  #put(card) {
    const { sender, recipient } = card.dataset;
    const at = this.#place(sender, card.querySelector(".ends > .mark"), card.querySelector(".ends > .name"));
    const to = card.querySelector(".ends > .to");
    const far = recipient ? this.#place(recipient, to.previousElementSibling, to) : at;
    const way = far > at ? "on" : "back";
    Object.assign(card.dataset, far === at ? { at, far: "", way: "" } : { at, far, way });
  }

  #place(key, mark, name) {
    if (!this.#places.has(key)) this.#add(key, mark, name);
    return Math.min(this.#places.get(key), MOST);
  }

  #add(key, mark, name) {
    this.#places.set(key, this.#places.size + 1);
    if (this.#places.size > MOST) return this.#share();
    const head = this.querySelector("template").content.firstElementChild.cloneNode(true);
    const symbol = mark.cloneNode(true);
    symbol.removeAttribute("data-size");
    head.querySelector(".mark").replaceWith(symbol);
    head.querySelector(".name").textContent = head.title = name.title;
    Object.assign(head.dataset, { key }, mark.dataset.hue ? { hue: mark.dataset.hue } : {});
    this.append(head);
    this.parentElement.dataset.lanes = this.#places.size;
    return undefined;
  }

  /** There are more voices than lanes: the last one is for all the others. */
  #share() {
    const last = this.lastElementChild;
    const name = Object.assign(document.createElement("b"), { className: "name", textContent: "Others" });
    last.replaceChildren(name);
    for (const one of ["title", "data-key", "data-hue"]) last.removeAttribute(one);
  }
}
customElements.define("lane-heads", LaneHeads);
