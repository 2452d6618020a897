/** Loads older and newer pages of a transcript as the reader scrolls near them, and unloads distant rows. */
import { json } from "./fetch.js";
import { followPlayhead } from "./playhead-follow.js";
import { dispatchRedacted, watchRedactions } from "./redaction-watch.js";
import { topRow } from "./row-position.js";

/**
 * `maxRows`: rows in the page before distant ones are unloaded; `maxFollowed`: the same while the tail is followed; `margin`:
 * how far outside the viewport a page is loaded. Lanes have short rows, whose text is rendered near the viewport
 * (static/css/lanes.css).
 */
const SIZES = {
  html: { maxRows: 2000, maxFollowed: 600, margin: "900px 0px" },
  lanes: { maxRows: 300, maxFollowed: 300, margin: "3000px 0px" },
};
const RETRY_MS = 2_000;
const pause = () => new Promise((resolve) => setTimeout(resolve, RETRY_MS)); // before a retry
const MAX_EMPTY_PAGES = 3; // loaded in a row; then the link must be pressed, or a level of detail that hides most rows would load all history

export class TranscriptPages {
  #host;
  #rows;
  #tail;
  #links;
  #loading = 0; // the number of the load in progress; 0: none
  #loads = 0;
  #sizes;
  #emptyPages = 0; // older pages in a row without a visible row
  #observer;
  #unfollowPlayhead = () => {};
  #unwatchRedactions = null; // a function while the transcript is not live
  #error = null; // of the latest load, if it failed

  /**
   * @param {HTMLElement} host `data-entries` is the address of pages, with or without a query; `data-first`, `data-last` the seqs shown
   * @param {import("./transcript-rows.js").TranscriptRows} rows
   * @param {HTMLElement} tail the `tail-follow` around the rows
   */
  constructor(host, rows, tail) {
    [this.#host, this.#rows, this.#tail] = [host, rows, tail];
    this.#sizes = SIZES[host.dataset.render ?? "html"];
    this.#links = { older: host.querySelector("[data-older]"), newer: host.querySelector("[data-newer]") };
    const root = host.querySelector(".transcript");
    this.#observer = new IntersectionObserver((entries) => this.#handleIntersection(entries), { root, rootMargin: this.#sizes.margin });
    host.addEventListener("page:wanted", ({ detail }) => this.#showFrom(detail.seq));
    for (const [name, link] of Object.entries(this.#links)) {
      link.addEventListener("click", (event) => this.#handleClick(event, name));
      this.#observer.observe(link);
    }
    if (host.hasAttribute("data-has-newer")) this.#watchRedactions();
    if (host.dataset.at) this.#unfollowPlayhead = followPlayhead(host, "entries", (move) => this.#showMoment(move));
  }

  close() {
    this.#unfollowPlayhead();
    this.#stopWatching();
    this.#observer.disconnect();
  }

  /** Unload rows beyond the limit: the oldest while the tail is followed; else the tail is left, and loaded again when needed. */
  trim() {
    if (this.#tail.isFollowing) this.#markOlder(this.#rows.unloadOldest(this.#sizes.maxFollowed));
    else if (this.#rows.count > this.#sizes.maxRows) this.#markNewer(Number(this.#host.dataset.head));
  }

  /** Replace all rows by the newest page. Returns whether it was loaded. */
  showNewest() {
    return this.#load("newer", "", (page) => {
      this.#tail.beforeChange();
      this.#rows.reset(page.html);
      this.#tail.afterChange();
      this.#host.dataset.first = page.first;
      this.#showLink("older", page.has_older);
      this.#reachTail(page);
    });
  }

  /** Replace all rows by the newest page, with as many requests as it takes. A load by the reader in the meantime replaces it. */
  async reloadNewest() {
    while (this.#host.isConnected && !(await this.showNewest()) && this.#error?.isTemporary) await pause();
  }

  /** Replace all rows by the page from the first row in view on, for a reader who does not follow the tail. */
  async reloadFromView() {
    const { seq } = topRow(this.#host.querySelector(".transcript"))?.dataset ?? { seq: 1 };
    while (this.#host.isConnected && !(await this.#showAfter("newer", seq - 1)) && this.#error?.isTemporary) await pause();
  }

  /** Render the moment at the playhead, from its end on if it is another one. Throws `RequestError`. */
  async #showMoment({ isSameMoment }) {
    const isLoaded = await this.showNewest();
    if (!isLoaded && this.#error) throw this.#error;
    if (isLoaded && !isSameMoment) this.#tail.follow();
  }

  /** Replace all rows by the first page. Returns whether it was loaded. */
  showOldest() {
    return this.#showAfter("older", 0);
  }

  get hasOlder() {
    return !this.#links.older.hidden;
  }

  /** Show the rows from an event on, from anywhere in the conversation. */
  async #showFrom(seq) {
    const row = this.#rows.firstSeq <= seq && this.#rows.all.find(({ dataset }) => Number(dataset.seq) >= seq);
    if (row || (await this.#showAfter("newer", seq - 1))) this.#tail.scrollToRow(row || this.#rows.first);
  }

  /** Replace all rows by the page after an event. Returns whether it was loaded. */
  #showAfter(name, seq) {
    const draw = (page) => {
      this.#rows.reset(page.html);
      this.#host.dataset.first = page.first;
      this.#showLink("older", page.has_older);
      if (page.has_newer) this.#markNewer(page.last);
      else this.#reachTail(page);
    };
    return this.#load(name, `after=${seq}`, draw, { isUrgent: true });
  }

  #loadOlder() {
    const { first } = this.#host.dataset;
    return this.#load("older", `before=${first}`, (page) => {
      if (this.#host.dataset.first !== first) return; // `trim` has unloaded the rows that the page adjoins
      this.#tail.beforeChange();
      this.#emptyPages = this.#rows.prepend(page.html) ? 0 : this.#emptyPages + 1;
      this.#tail.afterChange();
      this.#host.dataset.first = page.first;
      this.#showLink("older", page.has_older);
      this.#markNewer(this.#rows.unloadNewest(this.#sizes.maxRows));
    });
  }

  #loadNewer() {
    return this.#load("newer", `after=${this.#host.dataset.last}`, (page) => {
      this.#tail.beforeChange();
      this.#rows.extend(page.html);
      this.#markOlder(this.#rows.unloadOldest(this.#sizes.maxRows));
      this.#tail.afterChange();
      this.#host.dataset.last = page.last;
      if (!page.has_newer) this.#reachTail(page);
    });
  }

  #markOlder(seq) {
    if (!seq) return;
    this.#host.dataset.first = seq;
    this.#showLink("older", true);
  }

  #markNewer(seq) {
    if (!seq) return;
    this.#host.dataset.last = seq;
    this.#showLink("newer", true);
    this.#host.dispatchEvent(new CustomEvent("page:left"));
    this.#watchRedactions();
  }

  /** Watch for redactions while the transcript is not live: redacted events may be shown here as they were. In the past, `play-head` watches. */
  #watchRedactions() {
    const { topic, head, epoch, at } = this.#host.dataset;
    if (at) return;
    this.#unwatchRedactions ??= watchRedactions({ topic, after: head, epoch }, () => {
      dispatchRedacted();
      this.#reload();
    });
  }

  #stopWatching() {
    this.#unwatchRedactions = void this.#unwatchRedactions?.() ?? null;
  }

  /** Reload the rows shown, from the first on. */
  async #reload() {
    const load = () => this.#showAfter("newer", this.#rows.firstSeq - 1);
    while (this.#unwatchRedactions && !(await load()) && this.#error?.isTemporary) await pause();
  }

  #reachTail({ head, epoch }) {
    this.#showLink("newer", false);
    if (!this.#host.dataset.at) this.#stopWatching();
    if (!this.#host.dataset.at) this.#host.dispatchEvent(new CustomEvent("page:newest", { detail: { head, epoch } }));
  }

  /** Load one page at a time. Urgent loads, such as those of either end, take precedence; outdated responses are dropped. */
  async #load(name, query, draw, { isUrgent = !query } = {}) {
    if (this.#loading && !isUrgent) return false;
    const number = (this.#loading = ++this.#loads);
    this.#error = null;
    const error = await this.#fetch(name, query, (page) => number === this.#loading && draw(page));
    if (number !== this.#loading) return false;
    [this.#loading, this.#error] = [0, error];
    if (!error && this.#emptyPages < MAX_EMPTY_PAGES) this.#observeAgain();
    return !error;
  }

  /** Returns the `RequestError` if the page could not be fetched, else null. */
  async #fetch(name, query, draw) {
    const link = this.#links[name];
    try {
      const { entries } = this.#host.dataset;
      draw(await json(query ? `${entries}${entries.includes("?") ? "&" : "?"}${query}` : entries));
      link.textContent = link.dataset.words;
      this.#host.dispatchEvent(new CustomEvent("page:drawn", { bubbles: true }));
      return null;
    } catch (error) {
      if (error.name !== "RequestError") throw error;
      link.textContent = `${error.sentence} Try again`;
      return error;
    }
  }

  #handleClick(event, name) {
    event.preventDefault();
    this.#emptyPages = 0;
    this.#loadPage(name);
  }

  #handleIntersection(entries) {
    for (const { isIntersecting, target } of entries)
      if (isIntersecting && !target.hidden) this.#loadPage(target === this.#links.older ? "older" : "newer");
  }

  #loadPage(name) {
    return name === "older" ? this.#loadOlder() : this.#loadNewer();
  }

  #showLink(name, isShown) {
    this.#links[name].hidden = !isShown;
    if (name === "newer") this.#tail.hasNewer = isShown;
  }

  /** Observe the links again, so that a link still near after a page was loaded triggers another load. */
  #observeAgain() {
    for (const link of Object.values(this.#links)) {
      this.#observer.unobserve(link);
      this.#observer.observe(link);
    }
  }
}
