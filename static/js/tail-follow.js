/** `<tail-follow>`: keeps a transcript scrolled to its end. Scrolling up pauses it; its pill then counts new rows and leads back. */
import { scrollToEvent } from "./row-position.js";
import { ScrollAnchor } from "./scroll-anchor.js";
import { watchSizes } from "./size-watch.js";
import { TailPill } from "./tail-pill.js";

const AT_TAIL = 24; // px from the end within which scrolling down resumes following

/**
 * `data-start`: the event to start at, instead of the tail; `data-has-newer`: the newest page is not shown. Dispatches
 * `tail:following` {isFollowing}, and `tail:latest` to request the newest page (both bubble).
 */
class TailFollow extends HTMLElement {
  #scroller;
  #pill;
  #isFollowing = true;
  #top = 0;
  #anchor; // for a reader who does not follow
  #stopWatching;

  connectedCallback() {
    this.#scroller = this.querySelector(".transcript");
    this.#anchor = new ScrollAnchor(this.#scroller);
    this.#pill = new TailPill(this, () => this.#requestLatest());
    this.#scroller.addEventListener("scroll", () => this.#handleScroll(), { passive: true });
    this.#scroller.addEventListener("wheel", (event) => this.#handleWheel(event), { passive: true });
    this.#scroller.addEventListener("click", (event) => this.#handleClick(event));
    document.addEventListener("visibilitychange", this.#handleVisibility);
    this.#stopWatching = watchSizes(this.#scroller, () => this.#handleResize());
    this.hasAttribute("data-paused") ? this.#pause() : this.#scrollToEnd();
    this.scrollToStart();
  }

  disconnectedCallback() {
    this.#stopWatching();
    document.removeEventListener("visibilitychange", this.#handleVisibility);
  }

  get isFollowing() { return this.#isFollowing; }

  /** Whether there are pages after the last one shown; if so, the pill leads to the newest one. */
  set hasNewer(value) {
    this.toggleAttribute("data-has-newer", value);
    this.#pill.draw();
  }

  /** Scroll to the end and follow it. */
  follow() {
    this.#setFollowing(true);
    this.#pill.clear();
    this.#pill.draw();
    this.#scrollToEnd();
  }

  /** Scroll to the top of the loaded rows and stay there. */
  scrollToTop() {
    this.#pause();
    this.#scroller.scrollTop = 0;
    this.#captureAnchor();
  }

  /** Scroll to a row and stay there. */
  scrollToRow(row) {
    this.#pause();
    row?.scrollIntoView({ block: "start" });
    this.#captureAnchor();
  }

  /** Call before rows change: updates the scroll anchor. Reads layout. */
  beforeChange() {
    if (!this.#isFollowing) this.#top = this.#anchor.update();
  }

  /** Call after rows changed: scrolls to the tail if it is followed, or else keeps the anchored row in place. Writes once. */
  afterChange(unread = { count: 0, names: [] }) {
    if (this.#isFollowing) return this.#scrollToEnd();
    this.#restoreAnchor();
    if (unread.count) this.#pill.add(unread);
    return this.#pill.draw();
  }

  /** Scroll to `data-start`; follow if all rows fit into view. Called again once rows have their final heights. */
  scrollToStart() {
    if (!this.dataset.start) return undefined;
    const { scrollHeight, clientHeight } = this.#scroller;
    if (scrollHeight - clientHeight <= 1 && !this.hasAttribute("data-has-newer")) return this.follow();
    scrollToEvent(this.#scroller, Number(this.dataset.start));
    return this.#captureAnchor();
  }

  #handleVisibility = () => !document.hidden && this.#isFollowing && this.#scrollToEnd();

  #handleScroll() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const distance = scrollHeight - scrollTop - clientHeight;
    const previousTop = this.#top;
    this.#top = scrollTop;
    if (scrollTop < previousTop && distance > 1) this.#pause();
    else if (scrollTop > previousTop && distance < AT_TAIL && !this.hasAttribute("data-has-newer")) this.follow();
    this.beforeChange();
  }

  #handleWheel({ deltaY }) { if (deltaY < 0 && this.#scroller.scrollTop > 0) this.#pause(); }

  /** The size of the transcript or of its content changed. */
  #handleResize() { this.#isFollowing ? this.#scrollToEnd() : this.#restoreAnchor(); }

  /** Pause when the reader opens a disclosure, so that it does not scroll away. */
  #handleClick(event) {
    const details = event.target.closest("summary")?.parentElement;
    if (details && !details.open) this.#pause();
  }

  #requestLatest() {
    this.#scroller.focus({ preventScroll: true });
    this.dispatchEvent(new CustomEvent("tail:latest", { bubbles: true }));
  }

  #pause() {
    this.#setFollowing(false);
    this.#pill.draw();
  }

  #setFollowing(isFollowing) {
    if (this.#isFollowing === isFollowing) return;
    this.#isFollowing = isFollowing;
    if (!isFollowing) this.#anchor.capture();
    this.toggleAttribute("data-paused", !isFollowing);
    this.dispatchEvent(new CustomEvent("tail:following", { bubbles: true, detail: { isFollowing } }));
  }

  #scrollToEnd() {
    if (document.hidden) return;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#top = this.#scroller.scrollTop;
  }

  #restoreAnchor() { this.#top = this.#anchor.restore(); }

  /** Anchor to the row that is now at the top. */
  #captureAnchor() { this.#top = this.#anchor.capture(); }
}
customElements.define("tail-follow", TailFollow);
