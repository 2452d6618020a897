/**
 * `<transcript-outline data-address>`: turns, agents, approvals and failures, in the panel beside a transcript. Shown at wish,
 * which is kept; marks where the reader is, and is drawn anew as the conversation goes on.
 */
import { RequestError, markup } from "./fetch.js";
import { focusNow } from "./focus-kept.js";
import { render } from "./html.js";
import { kept } from "./kept.js";
import { onKey } from "./keys.js";
import { topRow } from "./row-position.js";

const KEPT = "switchboard-outline"; // "open" is kept
const PAUSE = 2000; // ms between two drawings while events come
const HEARD = ["transcript:drawn", "page:drawn", "event:picked"];

class TranscriptOutline extends HTMLElement {
  #stop = new AbortController();
  #timer = 0;
  #frame = 0;
  #seq = 0; // the newest event that was told of
  #asked = 0; // how many drawings were asked for

  connectedCallback() {
    const { signal } = this.#stop;
    this.#scroller?.addEventListener("scroll", () => this.#plan(), { signal, passive: true });
    for (const name of HEARD) document.addEventListener(name, (event) => this.#heard(event), { signal });
    this.addEventListener("click", (event) => this.#click(event), { signal });
    for (const button of this.#switch) button.addEventListener("click", () => this.#show(button.value === "outline"), { signal });
    signal.addEventListener("abort", onKey("h", () => this.#toggle()));
    if (kept.get(KEPT) === "open") this.#show(true);
  }

  disconnectedCallback() {
    this.#stop.abort();
    clearTimeout(this.#timer);
    cancelAnimationFrame(this.#frame);
  }

  get #scroller() { return document.querySelector(".transcript"); }
  get #switch() { return document.querySelectorAll(".panel-switch button"); }
  get #page() { return this.querySelector("[data-outline-page]"); }
  get #links() { return [...this.querySelectorAll("[data-outline]")]; }

  /** The event at the upper edge of the transcript, or the one that is picked where there is none. */
  get #here() {
    const row = (this.#scroller && topRow(this.#scroller)) ?? document.querySelector('.column [aria-current="true"][data-seq]');
    return Number(row?.dataset.seq ?? 0);
  }

  #heard({ type, detail }) {
    if (type === "transcript:drawn") this.#seq = Math.max(this.#seq, detail.seq);
    this.#plan();
    const isBehind = !this.hidden && this.#page && this.#seq > Number(this.#page.dataset.head);
    if (isBehind && !document.hidden) this.#timer ||= setTimeout(() => this.#renew(), PAUSE);
  }

  #plan() {
    if (!this.hidden) this.#frame ||= requestAnimationFrame(() => this.#mark());
  }

  /** Mark the last line at or above the upper edge. */
  #mark() {
    this.#frame = 0;
    const here = this.#here;
    const line = here ? (this.#links.findLast((link) => Number(link.dataset.outline) <= here) ?? this.#links[0]) : null;
    const old = this.querySelector("[aria-current]");
    if (!line || old === line) return;
    old?.removeAttribute("aria-current");
    line.setAttribute("aria-current", "location");
    if (!this.contains(document.activeElement)) line.scrollIntoView({ block: "nearest" });
  }

  async #toggle() {
    const isShown = this.hidden;
    const panel = this.closest(".panel");
    const isStillHere = focusNow(this);
    await this.#show(isShown);
    if (isShown && !panel.checkVisibility()) document.querySelector(`[aria-controls="${panel.id}"]`).click();
    if (isShown && isStillHere()) (this.querySelector("[aria-current]") ?? this.#links[0])?.focus();
  }

  async #show(isShown) {
    this.hidden = !isShown;
    this.closest(".panel").toggleAttribute("data-outlined", isShown);
    for (const button of this.#switch) button.setAttribute("aria-pressed", (button.value === "outline") === isShown);
    kept.set(KEPT, isShown ? "open" : "");
    if (isShown && !this.#page) await this.#draw(this.#here ? `event=${this.#here}` : "");
    this.#plan();
  }

  async #renew() {
    this.#timer = 0;
    const { start } = this.#page?.dataset ?? {};
    if (this.#page.querySelector("[data-after]") === null) await this.#draw(Number(start) ? `after=${Number(start) - 1}` : "");
    else this.#page.dataset.head = this.#seq; // what came is on a later page
  }

  async #click(event) {
    const further = event.target.closest("[data-before], [data-after]");
    const link = event.target.closest("[data-outline]");
    if (link) return this.#seek(event, link);
    if (!further) return undefined;
    const { before, after } = further.dataset;
    const isStillHere = focusNow(this);
    await this.#draw(before ? `before=${before}` : `after=${after}`);
    return isStillHere() && this.#links.at(before ? -1 : 0)?.focus();
  }

  /** What is drawn is gone to; anything else is a page of its own. */
  #seek(event, link) {
    for (const one of this.#links) one.removeAttribute("aria-current");
    link.setAttribute("aria-current", "location");
    const view = new URLSearchParams(location.search).get("view");
    if (view && view !== "transcript") link.href = `?view=${encodeURIComponent(view)}&event=${link.dataset.outline}#e${link.dataset.outline}`;
  }

  async #draw(query) {
    const number = (this.#asked += 1);
    try {
      const drawn = await markup(`${this.dataset.address}?${query}`, { signal: this.#stop.signal });
      if (number === this.#asked) this.replaceChildren(render(drawn));
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error; // as it was
    }
    this.#plan();
  }
}
customElements.define("transcript-outline", TranscriptOutline);
