/**
 * `<lane-heads>`: the heads of a conversation's lanes, in order. Assigns cards to lanes before they are shown. With many
 * participants, only those active in the visible rows have lanes of their own. Without scripts, the server does both
 * (`dashboard/pages/lanes.py`).
 */
import { LaneActivity } from "./lane-activity.js";
import { headFrom, laneOf } from "./lane-head.js";
import { CROWDED, LanePlaces, keysOf } from "./lane-places.js";
import { visibleRows } from "./visible-rows.js";

const FOLD_DELAY = 120; // ms from the last scroll or rendering until lanes are reassigned
const NEAR_PX = 128; // px above and below the viewport within which participants have a lane already
const TRIGGERS = ["event:picked", "transcript:drawn", "transcript:live", "page:drawn", "connection:gap"];

/** Child of the scrolling `.lanes`. While the tail is followed, the newest card is also scrolled into view horizontally. */
class LaneHeads extends HTMLElement {
  #places = new LanePlaces();
  #activity = new LaneActivity();
  #foldTimer = 0;
  #foldFrame = 0;
  #stop = new AbortController();

  connectedCallback() {
    const { signal } = this.#stop;
    for (const head of this.querySelectorAll(":scope > [data-key]")) this.#places.add(head.dataset.key, laneOf(head));
    this.#places.assign([...this.querySelectorAll(":scope > [data-key]")].map((head) => head.dataset.key));
    const cards = this.#cards;
    for (const card of cards) this.#addParticipants(card);
    this.#activity.draw(cards);
    this.#placeAll();
    for (const name of TRIGGERS) document.addEventListener(name, this, { signal });
    this.parentElement.addEventListener("scroll", () => this.#scheduleFold(), { signal, passive: true });
  }

  disconnectedCallback() {
    this.#stop.abort();
    this.#cancelFold();
  }

  handleEvent({ type, detail }) {
    if (this.#places.hasMany && type !== "event:picked") this.#scheduleFold();
    if (type === "connection:gap") this.#activity.forget();
    else if (type === "event:picked") this.#scrollSideways(detail.row);
    else if (type !== "page:drawn" && this.closest("tail-follow").isFollowing) this.#scrollSideways(this.#newest);
  }

  /** Assigns lanes and draws bars. @param {ParentNode} fragment contains cards that are about to enter the page, or to replace all that are there */
  place(fragment, { isReset = false } = {}) {
    if (isReset) this.#activity.reset();
    const cards = [...fragment.querySelectorAll(".lane-event")].filter((card) => !this.#isFolded(card));
    for (const card of cards) this.#addParticipants(card);
    if (this.#places.hasMany) this.#updateLaneCount();
    else if (this.#places.fold(new Set())) this.#drawHeads(), this.#placeAll(); // a new participant's lane comes before those of the tools
    this.#activity.draw(cards);
    for (const card of cards) this.#placeCard(card);
  }

  get #cards() { return [...this.parentElement.querySelectorAll(":scope > .rows > .lane-event")]; }
  get #newest() { return this.#cards.findLast((card) => card.checkVisibility()); }

  /** Whether an output is left out because a message with the same text is shown, whichever of the two comes first. */
  #isFolded(card) {
    const { seq, folds } = card.dataset;
    const output = folds && rowOf(folds);
    if (output && output.dataset.seq === folds) output.remove();
    const isFolded = rowOf(seq)?.dataset.folds === seq;
    if (isFolded) card.remove();
    return isFolded;
  }

  #addParticipants(card) {
    const { sender, recipient } = card.dataset;
    const to = card.querySelector(".ends > .to");
    this.#addParticipant(sender, card.querySelector(".ends > .mark"), card.querySelector(".ends > .name"));
    if (recipient) this.#addParticipant(recipient, to.previousElementSibling, to);
  }

  #addParticipant(key, mark, name) {
    if (!this.#places.participant(key)) this.#places.add(key, headFrom(this.querySelector("template"), key, mark, name));
  }

  #scheduleFold() {
    if (!this.#places.hasMany) return;
    this.#cancelFold();
    // in a frame of its own: a scroll event in that frame, however late, postpones it again
    this.#foldTimer = setTimeout(() => (this.#foldFrame = requestAnimationFrame(() => this.#fold())), FOLD_DELAY);
  }

  #cancelFold() { clearTimeout(this.#foldTimer), cancelAnimationFrame(this.#foldFrame); }

  /** Give lanes to those who are active in the visible rows. */
  #fold() {
    if (!this.checkVisibility()) return; // narrow window: one column, no lanes
    const scroller = this.parentElement;
    const [inView, near] = [keysOf(visibleRows(scroller)), keysOf(visibleRows(scroller, NEAR_PX))];
    if (this.#places.fits(inView, near) || !this.#places.fold(near)) return;
    this.#drawHeads();
    this.#placeAll();
    if (this.closest("tail-follow").isFollowing) this.#scrollSideways(this.#newest);
  }

  #drawHeads() {
    this.replaceChildren(this.querySelector("template"), ...this.#places.keys.map((key) => this.#places.participant(key).head));
    this.#updateLaneCount();
  }

  #updateLaneCount() {
    const { others, keys } = this.#places;
    const shared = this.querySelector("[data-others]") ?? this.querySelector("template").content.lastElementChild.cloneNode(true);
    shared.querySelector(".name").textContent = `${others} other${others > 1 ? "s" : ""}`;
    if (others) this.append(shared);
    else shared.remove();
    const lanes = (this.parentElement.dataset.lanes = keys.length + (others ? 1 : 0));
    this.parentElement.toggleAttribute("data-crowded", lanes > CROWDED);
    setData(this.parentElement, { tools: this.#places.firstTool || "" });
  }

  #placeAll() { for (const card of this.#cards) this.#placeCard(card); }

  #placeCard(card) {
    const { sender, recipient } = card.dataset;
    const at = this.#places.of(sender);
    const far = recipient ? this.#places.of(recipient) : at;
    setData(card, far === at ? { at, far: "", way: "" } : { at, far, way: far > at ? "on" : "back" });
    for (const bar of card.querySelectorAll(":scope > .activity")) {
      const hue = this.#places.hueOf(bar.dataset.of);
      setData(bar, hue ? { at: this.#places.of(bar.dataset.of), hue } : { at: this.#places.of(bar.dataset.of) });
    }
  }

  /** Scroll horizontally, no further than needed to show a card beside the times. */
  #scrollSideways(row) {
    const card = row?.querySelector(".lane-card")?.getBoundingClientRect();
    if (!card) return;
    const view = this.parentElement.getBoundingClientRect();
    const start = view.left + row.querySelector("time").offsetWidth;
    if (card.left < start) this.parentElement.scrollLeft -= start - card.left;
    else if (card.right > view.right) this.parentElement.scrollLeft += card.right - view.right;
  }
}

/** Returns the card that has an event's id, its own or one inside it that folds the event. By id: a search by attributes for each card visits all others. */
const rowOf = (seq) => document.getElementById(`e${seq}`)?.closest(".lane-event");

/** Set data attributes; unchanged ones are not written, since each write causes a style recalculation. */
const setData = (element, values) => {
  for (const [name, value] of Object.entries(values)) if (element.dataset[name] !== String(value)) element.dataset[name] = value;
};

customElements.define("lane-heads", LaneHeads);
