/**
 * `<audit-log>`: the audit page. It filters without a reload. The topic `audit` says that there are new entries: those
 * that match are counted in a pill, and drawn with the page's figures once somebody presses it.
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

const PAUSE_MS = 700; // between news and asking for their number
const AGAIN_MS = 3_000; // after a question that was not answered

class AuditLog extends HTMLElement {
  #stop;
  #leave;
  #entries = new FilteredList(this);
  #pill;
  #pause;
  #newest = 0; // the newest entry that was counted or drawn

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.#newest = Number(this.dataset.newest);
    this.addEventListener("filter", () => this.#entries.filter((list) => this.#draw(list)), { signal });
    this.addEventListener("click", ({ target }) => this.#press(target), { signal });
    signal.addEventListener("abort", onKey("o", () => this.#open(document.activeElement?.closest("[data-item]"))));
    this.#pill = new NewsPill(this.querySelector("[data-changed]"), () => this.#show(), signal);
    this.#leave = "older" in this.dataset ? undefined : this.#follow();
    this.querySelector("tr[aria-current]")?.scrollIntoView({ block: "center" });
  }

  disconnectedCallback() {
    this.#leave?.();
    this.#stop.abort();
    clearTimeout(this.#pause);
  }

  get #lost() { return this.querySelector("[data-lost]"); }

  #draw(list) {
    this.querySelector("[data-list]").replaceChildren(list);
    this.#pill.show(0);
  }

  #follow() {
    return socket.subscribe("audit", {}, {
      rows: ({ rows: [row] }) => row?.version > this.#newest && this.#soon(row.version),
      down: () => (this.#lost.hidden = false),
      up: () => (this.#lost.hidden = true),
      reset: () => location.reload(),
    });
  }

  #soon(newest, inMs = PAUSE_MS) {
    this.#newest = Math.max(this.#newest, newest);
    this.#pause ??= setTimeout(() => ((this.#pause = undefined), this.#count()), inMs);
  }

  /** How many entries that match the filters are newer than the newest shown. */
  async #count() {
    const address = new URL(location.href);
    const after = this.querySelector("[data-list] [data-key]")?.dataset.key ?? "0";
    for (const [name, value] of [["part", "news"], ["after", after]]) address.searchParams.set(name, value);
    try {
      const { new: count, is_cut: isCut } = await json(address, { signal: this.#stop.signal });
      this.#pill.show(count, newRows(count, "entry", "entries", isCut));
    } catch (error) {
      if (error instanceof RequestError) this.#soon(0, AGAIN_MS);
      else if (error.name !== "AbortError") throw error;
    }
  }

  /** Draw the list anew, with what is new in it, and what the page says of the whole log. */
  async #show() {
    const again = () => this.#show();
    if (!(await this.#entries.showNews((list) => this.#goUp(list), again))) return;
    const totals = await this.#entries.ask("totals", again);
    for (const fresh of totals?.querySelectorAll("[data-total]") ?? [])
      morph(this.querySelector(`[data-total="${fresh.dataset.total}"]`), fresh);
    drawTimes(this);
  }

  #goUp(list) {
    this.#draw(list);
    scrollTo({ top: 0 });
    this.querySelector("[data-list] [data-key] a")?.focus({ preventScroll: true });
  }

  /** A click anywhere in an entry, as long as it does nothing else and selects nothing. */
  #press(target) {
    if (!target.closest("a, button, input, summary, time") && getSelection().isCollapsed) this.#open(target.closest("[data-item]"));
  }

  /** Open or close the details of an entry. */
  #open(row) {
    const details = row?.querySelector("details.more");
    if (details) details.open = !details.open;
  }
}

customElements.define("audit-log", AuditLog);
followWaiting();
