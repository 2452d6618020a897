/**
 * `<transcript-outline data-address>`: turns, agents, approvals and failures, in the panel beside a transcript. It is toggled by
 * the reader, stores that choice, marks the reader's position, and is fetched again as the conversation goes on.
 */
import { FailureStrip } from "./failure-strip.js";
import { RequestError, markup } from "./fetch.js";
import { rememberFocus } from "./focus-memory.js";
import { onKey } from "./keys.js";
import { drawPage } from "./outline-page.js";
import { readerSeq } from "./row-position.js";
import { localStore } from "./safe-storage.js";

const STORAGE_KEY = "switchboard-outline"; // "open" if it is shown
const PAUSE_MS = 2_000; // between two requests while events arrive
const TRIGGERS = ["transcript:drawn", "page:drawn", "event:picked", "record:redacted", "visibilitychange"];

class TranscriptOutline extends HTMLElement {
  #stop = new AbortController();
  #refreshTimer = 0;
  #markFrame = 0;
  #newestSeq = 0; // of the events received by the transcript
  #requests = 0; // number of requests so far
  #query = ""; // of the latest request
  #strip;

  connectedCallback() {
    const { signal } = this.#stop;
    this.#strip = new FailureStrip(document.querySelector("[data-outline-failed]"), () => this.#fetch(this.#query), signal);
    this.#scroller?.addEventListener("scroll", () => this.#scheduleMark(), { signal, passive: true });
    for (const name of TRIGGERS) document.addEventListener(name, (event) => this.#handleChange(event), { signal });
    this.addEventListener("click", (event) => this.#handleClick(event), { signal });
    for (const button of this.#switchButtons) button.addEventListener("click", () => this.#show(button.value === "outline"), { signal });
    signal.addEventListener("abort", onKey("h", () => this.#toggle()));
    if (localStore.get(STORAGE_KEY) === "open") this.#show(true);
  }

  disconnectedCallback() {
    this.#stop.abort();
    clearTimeout(this.#refreshTimer);
    cancelAnimationFrame(this.#markFrame);
  }

  get #scroller() { return document.querySelector(".transcript"); }
  get #switchButtons() { return document.querySelectorAll(".panel-switch button"); }
  get #page() { return this.querySelector("[data-outline-page]"); }
  get #links() { return [...this.querySelectorAll("[data-outline]")]; }
  #scheduleMark() { if (!this.hidden) this.#markFrame ||= requestAnimationFrame(() => this.#mark()); }

  #handleChange({ type, detail }) {
    if (type === "record:redacted") return this.#discardRedacted();
    if (type === "transcript:drawn") this.#newestSeq = Math.max(this.#newestSeq, detail.seq);
    this.#scheduleMark();
    return this.#refreshSoon();
  }

  /** Fetch the page again if events have come since and it can be seen; else once it can be. */
  #refreshSoon() {
    const isBehind = this.#page && this.#newestSeq > Number(this.#page.dataset.head);
    if (isBehind && !this.hidden && !document.hidden) this.#refreshTimer ||= setTimeout(() => this.#refresh(), PAUSE_MS);
  }

  /** Mark the last entry at or before the reader's position. */
  #mark() {
    this.#markFrame = 0;
    const position = readerSeq(this.#scroller);
    const entry = position ? (this.#links.findLast((link) => Number(link.dataset.outline) <= position) ?? this.#links[0]) : null;
    const previous = this.querySelector("[aria-current]");
    if (!entry || previous === entry) return;
    previous?.removeAttribute("aria-current");
    entry.setAttribute("aria-current", "location");
    if (!this.contains(document.activeElement)) entry.scrollIntoView({ block: "nearest" });
  }

  async #toggle() {
    const [isShown, panel, hasFocus] = [this.hidden, this.closest(".panel"), rememberFocus(this)];
    await this.#show(isShown);
    if (isShown && !panel.checkVisibility()) document.querySelector(`[aria-controls="${panel.id}"]`).click();
    if (isShown && hasFocus()) (this.querySelector("[aria-current]") ?? this.#links[0])?.focus();
  }

  async #show(isShown) {
    this.hidden = !isShown;
    this.closest(".panel").toggleAttribute("data-outlined", isShown);
    for (const button of this.#switchButtons) button.setAttribute("aria-pressed", (button.value === "outline") === isShown);
    localStore.set(STORAGE_KEY, isShown ? "open" : "");
    if (!isShown) this.#strip.hide(this.closest(".panel"));
    const position = readerSeq(this.#scroller);
    if (isShown && !this.#page) await this.#fetch(position ? `event=${position}` : "");
    this.#refreshSoon();
    this.#scheduleMark();
  }

  /** Remove the page, which may show redacted events, and fetch it again if the outline is shown. */
  #discardRedacted() {
    const query = this.#page ? this.#pageQuery : this.#query;
    this.#requests += 1; // a response under way may show them
    this.replaceChildren();
    if (!this.hidden) this.#fetch(query);
  }

  /** The query of the page that is shown. */
  get #pageQuery() { return Number(this.#page?.dataset.start) ? `after=${Number(this.#page.dataset.start) - 1}` : ""; }

  async #refresh() {
    this.#refreshTimer = 0;
    if (!this.#page) return; // it is being fetched
    if (this.#page.querySelector("[data-after]") === null) await this.#fetch(this.#pageQuery);
    else this.#page.dataset.head = this.#newestSeq; // the new events are on a later page
  }

  async #handleClick(event) {
    const pageLink = event.target.closest("[data-before], [data-after]");
    const link = event.target.closest("[data-outline]");
    if (link) return this.#follow(event, link);
    if (!pageLink) return undefined;
    const [{ before, after }, hasFocus] = [pageLink.dataset, rememberFocus(this)];
    await this.#fetch(before ? `before=${before}` : `after=${after}`);
    return hasFocus() && this.#links.at(before ? -1 : 0)?.focus();
  }

  /** Mark the link that is followed, and let it keep the current view. */
  #follow(event, link) {
    for (const other of this.#links) other.removeAttribute("aria-current");
    link.setAttribute("aria-current", "location");
    const view = new URLSearchParams(location.search).get("view");
    if (view && view !== "transcript") link.href = `?view=${encodeURIComponent(view)}&event=${link.dataset.outline}#e${link.dataset.outline}`;
  }

  async #fetch(query) {
    const [number, newestSeq] = [(this.#requests += 1), this.#newestSeq];
    this.#query = query;
    try {
      const html = await markup(`${this.dataset.address}?${query}`, { signal: this.#stop.signal });
      if (number !== this.#requests) return;
      drawPage(this, html);
      this.#strip.hide(this.#links[0] ?? this.closest(".panel"));
      this.#scheduleMark();
      if (this.#newestSeq > newestSeq) this.#refreshSoon();
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error;
      if (error instanceof RequestError && number === this.#requests && !this.hidden) this.#strip.show(`The outline could not be loaded. ${error.sentence}`);
    }
  }
}
customElements.define("transcript-outline", TranscriptOutline);
