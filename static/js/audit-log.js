/**
 * The audit page: `<audit-log>` filters without a reload and counts the entries that were made meanwhile,
 * `<chain-check>` verifies the chain piece by piece.
 */
import "./copy-field.js";
import "./list-filter.js";
import "./utc-field.js";
import { RequestError, json, markup } from "./fetch.js";
import { render } from "./html.js";
import { keepingFocus } from "./keep-focus.js";
import { onKey } from "./keys.js";
import { FragmentLoader } from "./fragment-loader.js";
import { NewsPill } from "./news-pill.js";
import { Poller } from "./poller.js";
import { followWaiting } from "./waiting-count.js";

const EVERY_MS = 3_000; // between two questions for what is new

class AuditLog extends HTMLElement {
  #stop;
  #parts = new FragmentLoader();
  #news;
  #pill;

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.addEventListener("filter", () => this.#filter(), { signal });
    this.addEventListener("click", ({ target }) => this.#press(target), { signal });
    signal.addEventListener("abort", onKey("o", () => this.#open(document.activeElement?.closest("[data-item]"))));
    this.#pill = new NewsPill(this.querySelector("[data-changed]"), () => this.#show(), signal);
    if (!("older" in this.dataset)) this.#news = new Poller((stopped) => this.#look(stopped), EVERY_MS);
    this.querySelector("tr[aria-current]")?.scrollIntoView({ block: "center" });
  }

  disconnectedCallback() {
    this.#stop.abort();
    this.#news?.stop();
  }

  get #chosen() { return new URLSearchParams(new FormData(this.querySelector("[data-filter]"))).toString(); }

  /** What the address says now: the rows, and where else the filter stands. */
  async #filter() {
    for (const link of this.querySelectorAll("[data-export]")) link.search = location.search;
    const asked = this.#chosen;
    const list = await this.#parts.ask("list");
    if (list) this.#draw(list);
    const facets = list && (await this.#parts.ask("facets"));
    if (facets && this.#chosen === asked) keepingFocus(this.querySelector("[data-facets]"), facets); // else more was chosen
  }

  #draw(list) {
    this.querySelector("[data-list]").replaceChildren(list);
    this.#pill.show(0);
  }

  /** How many entries that match the filters are newer than the newest shown. */
  async #look(signal) {
    const address = new URL(location.href);
    const after = this.querySelector("[data-list] [data-key]")?.dataset.key ?? "0";
    for (const [name, value] of [["part", "news"], ["after", after]]) address.searchParams.set(name, value);
    try {
      const { new: count, is_cut: isCut } = await json(address, { signal });
      this.querySelector("[data-lost]").hidden = true;
      this.#pill.show(count, `${count}${isCut ? " or more" : ""} new ${count === 1 ? "entry" : "entries"}`);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.querySelector("[data-lost]").hidden = false;
    }
  }

  /** Draw the list anew, with what is new in it. */
  async #show() {
    const list = await this.#parts.ask("list");
    if (!list) return;
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

class ChainCheck extends HTMLElement {
  #stop;

  connectedCallback() {
    this.#stop = new AbortController();
    this.addEventListener("click", (event) => this.#begin(event), { signal: this.#stop.signal });
    this.#goOn();
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  get #checked() { return this.querySelector("[data-checked]"); }

  #begin(event) {
    const link = event.target.closest("[data-verify], [data-next]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (!this.#checked.ariaBusy || this.#checked.ariaBusy === "false") this.#walk(link.href);
  }

  /** On a page that was opened in the middle of a walk. */
  #goOn() {
    const next = this.#checked.querySelector("[data-next]");
    if (next) this.#walk(next.href);
  }

  /** Piece after piece till the end; only that is read out. */
  async #walk(address) {
    const place = this.#checked;
    place.ariaBusy = "true";
    try {
      for (let next = address; next; next = place.querySelector("[data-next]")?.href) {
        const asked = new URL(next);
        asked.searchParams.set("part", "state");
        place.replaceChildren(render(await markup(asked, { signal: this.#stop.signal })));
      }
    } catch (error) {
      if (error instanceof RequestError) place.append(`${error.sentence} Try again.`);
      else if (error.name !== "AbortError") throw error;
    } finally {
      place.ariaBusy = "false";
    }
  }
}

customElements.define("audit-log", AuditLog);
customElements.define("chain-check", ChainCheck);
followWaiting();
