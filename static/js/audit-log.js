/**
 * `<audit-log>`: the audit page. Filters are applied without a reload. The topic `audit` reports new entries: a pill counts
 * those that match the filters, and pressing it shows them and updates the figures above the list.
 */
import "./chain-check.js";
import "./copy-field.js";
import "./utc-field.js";
import { drawTimes } from "./clock.js";
import { RequestError, json } from "./fetch.js";
import { FilteredList } from "./filtered-list.js";
import { onKey } from "./keys.js";
import { morph } from "./morph.js";
import { NewsPill, newRows } from "./news-pill.js";
import { socket } from "./socket.js";
import { followWaiting } from "./waiting-count.js";

const COUNT_DELAY_MS = 700; // from a frame to the request for the number of new entries
const RETRY_MS = 3_000; // after a failed request

class AuditLog extends HTMLElement {
  #stop;
  #unsubscribe;
  #entries = new FilteredList(this);
  #pill;
  #countTimer;
  #newestSeq = 0; // of the entries that were rendered or reported by a frame

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.#newestSeq = Number(this.dataset.newest);
    this.addEventListener("filter", () => this.#applyFilter(), { signal });
    this.addEventListener("click", ({ target }) => this.#handleClick(target), { signal });
    signal.addEventListener("abort", onKey("o", () => this.#toggleDetails(document.activeElement?.closest("[data-item]"))));
    this.#pill = new NewsPill(this.querySelector("[data-changed]"), () => this.#showNews(), signal);
    if (!("older" in this.dataset)) this.#unsubscribe = this.#subscribe();
    this.querySelector("tr[aria-current]")?.scrollIntoView({ block: "center" });
  }

  disconnectedCallback() {
    this.#unsubscribe?.();
    this.#stop.abort();
    clearTimeout(this.#countTimer);
  }

  get #connectionLost() { return this.querySelector("[data-lost]"); }

  /** Show the newest entries that match, live from now on. */
  #applyFilter() {
    this.#unsubscribe ??= this.#subscribe();
    return this.#entries.applyFilter((list) => this.#replaceList(list));
  }

  #replaceList(list) {
    this.querySelector("[data-list]").replaceChildren(list);
    this.#pill.show(0);
  }

  #subscribe() {
    return socket.subscribe("audit", {}, {
      rows: ({ rows: [row] }) => row?.version > this.#newestSeq && this.#countSoon(row.version),
      down: () => (this.#connectionLost.hidden = false),
      up: () => (this.#connectionLost.hidden = true),
      reset: () => location.reload(),
    });
  }

  #countSoon(newestSeq, delayMs = COUNT_DELAY_MS) {
    this.#newestSeq = Math.max(this.#newestSeq, newestSeq);
    this.#countTimer ??= setTimeout(() => ((this.#countTimer = undefined), this.#count()), delayMs);
  }

  /** Fetch how many entries match the filters and are newer than the newest one in the list. */
  async #count() {
    const address = this.#newsAddress;
    try {
      const { new: count, is_cut: isCut } = await json(address, { signal: this.#stop.signal });
      if (address !== this.#newsAddress) return this.#countSoon(0); // another list is shown by now
      this.#pill.show(count, newRows(count, "entry", "entries", isCut));
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error;
      if (error.isTemporary) this.#countSoon(0, RETRY_MS);
    }
    return undefined;
  }

  get #newsAddress() {
    const url = new URL(location.href);
    const after = this.querySelector("[data-list] [data-key]")?.dataset.key ?? "0";
    for (const [name, value] of [["part", "news"], ["after", after]]) url.searchParams.set(name, value);
    return url.href;
  }

  /** Render the list with its new entries, then the figures about the whole log. */
  async #showNews() {
    const retry = () => this.#showNews();
    if (!(await this.#entries.showNews((list) => this.#showFromTop(list), retry))) return;
    const totals = await this.#entries.fetchPart("totals", retry);
    for (const total of totals?.querySelectorAll("[data-total]") ?? [])
      morph(this.querySelector(`[data-total="${total.dataset.total}"]`), total);
    drawTimes(this);
  }

  #showFromTop(list) {
    this.#replaceList(list);
    scrollTo({ top: 0 });
    this.querySelector("[data-list] [data-key] a")?.focus({ preventScroll: true });
  }

  /** A click anywhere in an entry opens it, unless it has an effect of its own or ends a text selection. */
  #handleClick(target) {
    if (!target.closest("a, button, input, summary, time") && getSelection().isCollapsed) this.#toggleDetails(target.closest("[data-item]"));
  }

  #toggleDetails(row) {
    const details = row?.querySelector("details.more");
    if (details) details.open = !details.open;
  }
}

customElements.define("audit-log", AuditLog);
followWaiting();
