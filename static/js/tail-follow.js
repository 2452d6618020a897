/** Follow the tail; any upward scroll pauses; the pill counts what arrived meanwhile and goes back down. */
import { ReaderPlace } from "./reader-place.js";
import { scrollToEvent } from "./row-position.js";
import { watchSizes } from "./size-watch.js";
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
  #place; // of a reader who does not follow
  #unwatch;

  connectedCallback() {
    this.#scroller = this.querySelector(".transcript");
    this.#place = new ReaderPlace(this.#scroller);
    this.#pill = new TailPill(this, () => this.#ask());
    this.#scroller.addEventListener("scroll", () => this.#look(), { passive: true });
    this.#scroller.addEventListener("wheel", (event) => this.#wheel(event), { passive: true });
    this.#scroller.addEventListener("click", (event) => this.#pressed(event));
    document.addEventListener("visibilitychange", this.#seen);
    this.#unwatch = watchSizes(this.#scroller, () => this.#resized());
    this.hasAttribute("data-paused") ? this.#pause() : this.#down();
    this.begin();
  }

  disconnectedCallback() {
    this.#unwatch();
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
    this.#scroller.scrollTop = 0;
    this.#stay();
  }

  /** Go to a row and stay there. */
  show(row) {
    this.#pause();
    row?.scrollIntoView({ block: "start" });
    this.#stay();
  }

  /** Before rows change: remember what the reader looks at. Reads layout. */
  hold() {
    if (!this.#isFollowing) this.#top = this.#place.note();
  }

  /** After rows changed: stay at the tail, or keep what the reader looks at where it was. Writes once. */
  settle(news = { count: 0, names: [] }) {
    if (this.#isFollowing) return this.#down();
    this.#keep();
    if (news.count) this.#pill.add(news);
    return this.#pill.draw();
  }

  /** Go to where it begins; what is in sight as a whole is followed. Asked for again when rows have their final heights. */
  begin() {
    if (!this.dataset.start) return undefined;
    const { scrollHeight, clientHeight } = this.#scroller;
    if (scrollHeight - clientHeight <= 1 && !this.hasAttribute("data-has-newer")) return this.follow();
    scrollToEvent(this.#scroller, Number(this.dataset.start));
    return this.#stay();
  }

  #seen = () => !document.hidden && this.#isFollowing && this.#down();

  #look() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const left = scrollHeight - scrollTop - clientHeight;
    const wasAt = this.#top;
    this.#top = scrollTop;
    if (scrollTop < wasAt && left > 1) this.#pause();
    else if (scrollTop > wasAt && left < AT_TAIL && !this.hasAttribute("data-has-newer")) this.follow();
    this.hold();
  }

  #wheel({ deltaY }) { if (deltaY < 0 && this.#scroller.scrollTop > 0) this.#pause(); }

  /** What stands over the transcript came or went, or rows changed: the reader's rows stay where they are on the screen. */
  #resized() { this.#isFollowing ? this.#down() : this.#keep(); }

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
    if (!isFollowing) this.#place.begin();
    this.toggleAttribute("data-paused", !isFollowing);
    this.dispatchEvent(new CustomEvent("tail:following", { bubbles: true, detail: { isFollowing } }));
  }

  #down() {
    if (document.hidden) return;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#top = this.#scroller.scrollTop;
  }

  #keep() { this.#top = this.#place.keep(); }

  /** What is in view now is what the reader looks at. */
  #stay() { this.#top = this.#place.begin(); }
}
customElements.define("tail-follow", TailFollow);
