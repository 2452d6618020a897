/** Older and newer pages of a transcript, loaded as the reader comes near. Used by `live-transcript`. */
import { json } from "./fetch.js";
import { followPlayhead } from "./playhead-follow.js";
import { socket } from "./socket.js";

/**
 * Rows in the page, what is farther away is taken out and loaded again; those while the tail is followed; how far outside
 * of the view a page is loaded. Lanes have short rows whose words are drawn as they come near (static/css/lanes.css).
 */
const SIZES = { html: { most: 2000, followed: 600, near: "900px 0px" }, lanes: { most: 300, followed: 300, near: "3000px 0px" } };
const RETRY_MS = 2_000;
const BARREN = 3; // pages; after them the link waits for a press, else a level of detail would load all history

export class TranscriptPages {
  #host;
  #rows;
  #tail;
  #links;
  #loading = 0; // the number of the load under way; 0: none
  #loads = 0;
  #sizes;
  #barren = 0; // older pages in a row of which nothing is shown
  #watch;
  #leave = () => {};
  #unwatch = null; // while the page is not live

  /**
   * @param {HTMLElement} host `data-entries` is the address of pages, with or without a query; `data-first`, `data-last` what is drawn
   * @param {import("./transcript-rows.js").TranscriptRows} rows
   * @param {HTMLElement} tail the `tail-follow` around the rows
   */
  constructor(host, rows, tail) {
    [this.#host, this.#rows, this.#tail] = [host, rows, tail];
    this.#sizes = SIZES[host.dataset.render ?? "html"];
    this.#links = { older: host.querySelector("[data-older]"), newer: host.querySelector("[data-newer]") };
    const root = host.querySelector(".transcript");
    this.#watch = new IntersectionObserver((seen) => this.#near(seen), { root, rootMargin: this.#sizes.near });
    host.addEventListener("page:wanted", ({ detail }) => this.#from(detail.seq));
    for (const [name, link] of Object.entries(this.#links)) {
      link.addEventListener("click", (event) => this.#pressed(event, name));
      this.#watch.observe(link);
    }
    if (host.dataset.at || host.hasAttribute("data-has-newer")) this.#watchRedactions();
    if (host.dataset.at) this.#leave = followPlayhead(host, "entries", () => this.newest().then(() => tail.follow()));
  }

  close() {
    this.#leave();
    this.#live();
    this.#watch.disconnect();
  }

  /** Keep the page short: at the tail while it is followed, else by leaving the tail to be loaded again. */
  trim() {
    if (this.#tail.isFollowing) this.#olderGone(this.#rows.unloadOldest(this.#sizes.followed));
    else if (this.#rows.count > this.#sizes.most) this.#newerGone(Number(this.#host.dataset.head));
  }

  /** Draw the newest page in place of everything. Answers whether it came. */
  newest() {
    return this.#load("newer", "", (page) => {
      this.#tail.hold();
      this.#rows.reset(page.html);
      this.#tail.settle();
      this.#host.dataset.first = page.first;
      this.#show("older", page.has_older);
      this.#atTail(page);
    });
  }

  /** Draw the first page in place of everything. Answers whether it came. */
  oldest() {
    return this.#after("older", 0);
  }

  get hasOlder() {
    return !this.#links.older.hidden;
  }

  /** Show the rows from an event on, wherever the reader was. */
  async #from(seq) {
    const row = this.#rows.firstSeq <= seq && this.#rows.all.find((one) => Number(one.dataset.seq) >= seq);
    if (row || (await this.#after("newer", seq - 1))) this.#tail.show(row || this.#rows.first);
  }

  /** Draw the page after an event in place of everything. Answers whether it came. */
  #after(name, seq) {
    const draw = (page) => {
      this.#rows.reset(page.html);
      this.#host.dataset.first = page.first;
      this.#show("older", page.has_older);
      if (page.has_newer) this.#newerGone(page.last);
      else this.#atTail(page);
    };
    return this.#load(name, `after=${seq}`, draw, { isUrgent: true });
  }

  #older() {
    return this.#load("older", `before=${this.#host.dataset.first}`, (page) => {
      this.#tail.hold();
      this.#barren = this.#rows.prepend(page.html) ? 0 : this.#barren + 1;
      this.#tail.settle();
      this.#host.dataset.first = page.first;
      this.#show("older", page.has_older);
      this.#newerGone(this.#rows.unloadNewest(this.#sizes.most));
    });
  }

  #newer() {
    return this.#load("newer", `after=${this.#host.dataset.last}`, (page) => {
      this.#tail.hold();
      this.#rows.extend(page.html);
      this.#olderGone(this.#rows.unloadOldest(this.#sizes.most));
      this.#tail.settle();
      this.#host.dataset.last = page.last;
      if (!page.has_newer) this.#atTail(page);
    });
  }

  #olderGone(seq) {
    if (!seq) return;
    this.#host.dataset.first = seq;
    this.#show("older", true);
  }

  #newerGone(seq) {
    if (!seq) return;
    this.#host.dataset.last = seq;
    this.#show("newer", true);
    this.#host.dispatchEvent(new CustomEvent("page:left"));
    this.#watchRedactions();
  }

  /** Look for redactions while nothing else of the record is followed: what they name may be drawn here as it was. */
  #watchRedactions() {
    const { topic, head, epoch } = this.#host.dataset;
    const again = ({ events }) => (!events || events.some(({ kind }) => kind === "event.redacted")) && this.#again();
    this.#unwatch ??= socket.subscribe(topic, { after: Number(head), epoch }, { events: again, reset: again });
  }

  #live() {
    this.#unwatch = void this.#unwatch?.() ?? null;
  }

  /** Draw the rows anew that are there, from the first on. */
  async #again() {
    const isThere = () => (this.#host.dataset.at ? this.newest() : this.#after("newer", this.#rows.firstSeq - 1));
    while (this.#unwatch && !(await isThere())) await new Promise((wait) => setTimeout(wait, RETRY_MS));
  }

  #atTail({ head, epoch }) {
    this.#show("newer", false);
    if (!this.#host.dataset.at) this.#live();
    if (!this.#host.dataset.at) this.#host.dispatchEvent(new CustomEvent("page:newest", { detail: { head, epoch } }));
  }

  /** One page at a time; either end goes before any other, and what comes late for it is not drawn. */
  async #load(name, query, draw, { isUrgent = !query } = {}) {
    if (this.#loading && !isUrgent) return false;
    const mine = (this.#loading = ++this.#loads);
    const isLoaded = await this.#fetch(name, query, (page) => mine === this.#loading && draw(page));
    if (mine !== this.#loading) return false;
    this.#loading = 0;
    if (isLoaded && this.#barren < BARREN) this.#look();
    return isLoaded;
  }

  async #fetch(name, query, draw) {
    const link = this.#links[name];
    try {
      const { entries } = this.#host.dataset;
      draw(await json(query ? `${entries}${entries.includes("?") ? "&" : "?"}${query}` : entries));
      link.textContent = link.dataset.words;
      this.#host.dispatchEvent(new CustomEvent("page:drawn", { bubbles: true }));
      return true;
    } catch (error) {
      if (error.name !== "RequestError") throw error;
      link.textContent = `${error.sentence} Try again`;
      return false;
    }
  }

  #pressed(event, name) {
    event.preventDefault();
    this.#barren = 0;
    this.#turn(name);
  }

  #near(seen) {
    for (const { isIntersecting, target } of seen)
      if (isIntersecting && !target.hidden) this.#turn(target === this.#links.older ? "older" : "newer");
  }

  #turn(name) {
    return name === "older" ? this.#older() : this.#newer();
  }

  #show(name, isThere) {
    this.#links[name].hidden = !isThere;
    if (name === "newer") this.#tail.hasNewer = isThere;
  }

  /** Ask the observer anew: a link that is still near after a page came is told of again. */
  #look() {
    for (const link of Object.values(this.#links)) {
      this.#watch.unobserve(link);
      this.#watch.observe(link);
    }
  }
}
