/**
 * `<lane-heads>`: who has a lane, in order. Gives cards their places before they are shown, and while participants are many
 * folds the lanes to those who are active in what is in view. Without scripts the page comes with both
 * (`dashboard/pages/lanes.py`).
 */
import { LaneActivity } from "./lane-activity.js";
import { headFrom, laneOf } from "./lane-head.js";
import { CROWDED, LanePlaces, keysOf } from "./lane-places.js";
import { visibleRows } from "./visible-rows.js";

const PAUSE = 120; // ms after the last scroll or drawing at which lanes are folded anew
const NEAR = 128; // px above and below what is in view: who is there has a lane already
const HEARD = ["event:picked", "transcript:drawn", "transcript:live", "page:drawn"];

/** Stands in the `.lanes` that scroll. While the tail is followed, the newest card is brought in view sideways too. */
class LaneHeads extends HTMLElement {
  #places = new LanePlaces();
  #activity = new LaneActivity();
  #timer = 0;
  #frame = 0;
  #stop = new AbortController();

  connectedCallback() {
    const { signal } = this.#stop;
    for (const head of this.querySelectorAll(":scope > [data-key]")) this.#places.add(head.dataset.key, laneOf(head));
    this.#places.begin([...this.querySelectorAll(":scope > [data-key]")].map((head) => head.dataset.key));
    const cards = this.#cards;
    for (const card of cards) this.#know(card);
    if (cards.length) this.#activity.draw(cards);
    this.#putAll();
    for (const name of HEARD) document.addEventListener(name, this, { signal });
    this.parentElement.addEventListener("scroll", () => this.#plan(), { signal, passive: true });
  }

  disconnectedCallback() {
    this.#stop.abort();
    this.#rest();
  }

  handleEvent({ type, detail }) {
    if (this.#places.areMany && type !== "event:picked") this.#plan();
    if (type === "event:picked") return this.#aside(detail.row);
    if (type !== "page:drawn" && this.closest("tail-follow").isFollowing) this.#aside(this.#newest);
    return undefined;
  }

  /** @param {ParentNode} drawn cards that are about to enter the page */
  place(drawn) {
    const cards = [...drawn.querySelectorAll(".lane-event")].filter((card) => !this.#isFolded(card));
    for (const card of cards) this.#know(card);
    if (this.#places.areMany) this.#count();
    else if (this.#places.fold(new Set())) this.#draw(), this.#putAll(); // a newcomer's lane comes before those of the tools
    if (cards.length) this.#activity.draw(cards);
    for (const card of cards) this.#put(card);
  }

  get #cards() { return [...this.parentElement.querySelectorAll(":scope > .rows > .lane-event")]; }
  get #newest() { return this.#cards.findLast((card) => card.checkVisibility()); }

  /** An output is not drawn beside the message that says the same, whichever comes first. */
  #isFolded(card) {
    const { seq, folds } = card.dataset;
    const output = folds && document.querySelector(`.lane-event[data-seq="${folds}"]`);
    if (output) output.remove();
    const isFolded = document.querySelector(`.lane-event[data-folds="${seq}"]`) !== null;
    if (isFolded) card.remove();
    return isFolded;
  }

  #know(card) {
    const { sender, recipient } = card.dataset;
    const to = card.querySelector(".ends > .to");
    this.#add(sender, card.querySelector(".ends > .mark"), card.querySelector(".ends > .name"));
    if (recipient) this.#add(recipient, to.previousElementSibling, to);
  }

  #add(key, mark, name) {
    if (!this.#places.voice(key)) this.#places.add(key, headFrom(this.querySelector("template"), key, mark, name));
  }

  #plan() {
    if (!this.#places.areMany) return;
    this.#rest();
    this.#timer = setTimeout(() => (this.#frame = requestAnimationFrame(() => this.#fold())), PAUSE); // a scroll that goes on in that frame, however late it is, puts it off
  }

  #rest() { clearTimeout(this.#timer), cancelAnimationFrame(this.#frame); }

  /** Lanes for those who are active in what is in view. */
  #fold() {
    if (!this.checkVisibility()) return; // one column: no lanes are shown
    const scroller = this.parentElement;
    const [inView, near] = [keysOf(visibleRows(scroller)), keysOf(visibleRows(scroller, NEAR))];
    if (this.#places.suit(inView, near) || !this.#places.fold(near)) return;
    this.#draw();
    this.#putAll();
    if (this.closest("tail-follow").isFollowing) this.#aside(this.#newest);
  }

  #draw() {
    this.replaceChildren(this.querySelector("template"), ...this.#places.keys.map((key) => this.#places.voice(key).head));
    this.#count();
  }

  #count() {
    const { others, keys } = this.#places;
    const shared = this.querySelector("[data-others]") ?? this.querySelector("template").content.lastElementChild.cloneNode(true);
    shared.querySelector(".name").textContent = `${others} other${others > 1 ? "s" : ""}`;
    if (others) this.append(shared);
    else shared.remove();
    const lanes = (this.parentElement.dataset.lanes = keys.length + (others ? 1 : 0));
    this.parentElement.toggleAttribute("data-crowded", lanes > CROWDED);
    set(this.parentElement, { tools: this.#places.firstTool || "" });
  }

  #putAll() { for (const card of this.#cards) this.#put(card); }

  #put(card) {
    const { sender, recipient } = card.dataset;
    const at = this.#places.of(sender);
    const far = recipient ? this.#places.of(recipient) : at;
    set(card, far === at ? { at, far: "", way: "" } : { at, far, way: far > at ? "on" : "back" });
    for (const bar of card.querySelectorAll(":scope > .activity")) {
      const hue = this.#places.hueOf(bar.dataset.of);
      set(bar, hue ? { at: this.#places.of(bar.dataset.of), hue } : { at: this.#places.of(bar.dataset.of) });
    }
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
}

/** What is as it was is not written: it would be styled anew. */
const set = (element, values) => {
  for (const [name, value] of Object.entries(values)) if (element.dataset[name] !== String(value)) element.dataset[name] = value;
};

customElements.define("lane-heads", LaneHeads);
