/** Follow the tail; any upward scroll pauses; the pill counts what arrived meanwhile and goes back down. */
import { scrollToEvent, topRow } from "./row-position.js";
import { TailPill } from "./tail-pill.js";

const AT_TAIL = 24; // px from the end, scrolling down, that count as having arrived

/**
 * `data-start`: the event at which to begin, instead of the tail. Tells, bubbling: `tail:following` {isFollowing} and
 * `tail:latest` (the newest page is asked for).
 */
class TailFollow extends HTMLElement {
  #scroller;
  #pill;
  #isFollowing = true;
  #top = 0;
  #anchor = null;
  #edge = 0; // px, where the scroller's upper edge is on the screen
  #size = new ResizeObserver(() => this.#resized());

  connectedCallback() {
    this.#scroller = this.querySelector(".transcript");
    this.#pill = new TailPill(this, () => this.#ask());
    this.#scroller.addEventListener("scroll", () => this.#look(), { passive: true });
    this.#scroller.addEventListener("wheel", (event) => this.#wheel(event), { passive: true });
    this.#scroller.addEventListener("click", (event) => this.#pressed(event));
    document.addEventListener("visibilitychange", this.#seen);
    this.#edge = this.#scroller.getBoundingClientRect().top;
    this.#size.observe(this.#scroller);
    this.hasAttribute("data-paused") ? this.#pause() : this.#down();
    this.begin();
  }

  disconnectedCallback() {
    this.#size.disconnect();
    document.removeEventListener("visibilitychange", this.#seen);
  }

  get isFollowing() { return this.#isFollowing; }

  /** Whether the newest page is drawn; if not, the pill leads there. */
  set hasNewer(value) {
    this.toggleAttribute("data-has-newer", value);
    this.#pill.draw();
  }

  /** Go to the end of what is drawn and stay there. */
  follow() {
    this.#set(true);
    this.#pill.clear();
    this.#pill.draw();
    this.#down();
  }

  /** Go to the beginning of what is drawn and stay there. */
  top() {
    this.#pause();
    this.#scroller.scrollTop = this.#top = 0;
  }

  /** Go to a row and stay there. */
  show(row) {
    this.#pause();
    row?.scrollIntoView({ block: "start" });
    this.#top = this.#scroller.scrollTop;
  }

  /** Before rows change: remember what the reader looks at. Reads layout. */
  hold() {
    const row = this.#isFollowing ? null : topRow(this.#scroller);
    this.#anchor = row && { row, y: row.getBoundingClientRect().top };
  }

  /** After rows changed: stay at the tail, or keep what the reader looks at where it was. Writes once. */
  settle(news = { count: 0, names: [] }) {
    if (this.#isFollowing) return this.#down();
    if (this.#anchor?.row.isConnected) this.#keep(this.#anchor);
    if (news.count) this.#pill.add(news);
    return this.#pill.draw();
  }

  /** Go to where it begins; what is in sight as a whole is followed. Asked for again when rows have their final heights. */
  begin() {
    if (!this.dataset.start) return undefined;
    const { scrollHeight, clientHeight } = this.#scroller;
    if (scrollHeight - clientHeight <= 1 && !this.hasAttribute("data-has-newer")) return this.follow();
    scrollToEvent(this.#scroller, Number(this.dataset.start));
    this.#top = this.#scroller.scrollTop;
    return undefined;
  }

  #seen = () => !document.hidden && this.#isFollowing && this.#down();

  #look() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const left = scrollHeight - scrollTop - clientHeight;
    const wasAt = this.#top;
    this.#top = scrollTop;
    if (scrollTop < wasAt && left > 1) this.#pause();
    else if (scrollTop > wasAt && left < AT_TAIL && !this.hasAttribute("data-has-newer")) this.follow();
  }

  #wheel({ deltaY }) { if (deltaY < 0 && this.#scroller.scrollTop > 0) this.#pause(); }

  /** What stands over the transcript came or went: the reader's rows stay where they are on the screen. */
  #resized() {
    const { top: edge } = this.#scroller.getBoundingClientRect();
    if (this.#isFollowing) this.#down();
    else this.#scrollBy(edge - this.#edge);
    this.#edge = edge;
  }

  /** A reader who opens something reads it: it does not run away. */
  #pressed(event) {
    const details = event.target.closest("summary")?.parentElement;
    if (details && !details.open) this.#pause();
  }

  #ask() {
    this.#scroller.focus({ preventScroll: true });
    this.dispatchEvent(new CustomEvent("tail:latest", { bubbles: true }));
  }

  #pause() {
    this.#set(false);
    this.#pill.draw();
  }

  #set(isFollowing) {
    if (this.#isFollowing === isFollowing) return;
    this.#isFollowing = isFollowing;
    this.toggleAttribute("data-paused", !isFollowing);
    this.dispatchEvent(new CustomEvent("tail:following", { bubbles: true, detail: { isFollowing } }));
  }

  #down() {
    if (document.hidden) return;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#top = this.#scroller.scrollTop;
  }

  #keep({ row, y }, moved = row.getBoundingClientRect().top - y) {
    if (Math.abs(moved) >= 0.5) this.#scrollBy(moved);
  }

  #scrollBy(px) {
    this.#scroller.scrollTop += px;
    this.#top = this.#scroller.scrollTop;
  }
}
customElements.define("tail-follow", TailFollow);
