/**
 * `<conversation-list>`: the rows, live by the `fleet` topic. A row changes where it stands; it moves to the top only
 * while nobody points at the list, has the focus in it or has scrolled down. Till then a pill counts what would move.
 */
import "./list-filter.js";
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";
import { ConversationRows } from "./conversation-rows.js";
import { onKey } from "./keys.js";
import { NewsPill } from "./news-pill.js";
import { socket } from "./socket.js";
import { tellWaiting } from "./waiting-count.js";

const PAUSE_MS = 500; // between a change that may concern the filter and asking again
const SCROLLED = 120; // px
const CALM_MS = 2_000;
const WHOLE_MS = 60_000; // the whole list again: frames do not tell what was removed

class ConversationList extends HTMLElement {
  #stop;
  #leave;
  #rows;
  #isPointedAt = false;
  #asking;
  #isWanted = false; // what is asked for, by another filter
  #pause;
  #pill;

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.#rows = new ConversationRows(this.#list);
    const listen = (target, type, act) => target.addEventListener(type, act, { signal });
    listen(this.#list, "change", () => this.#steer());
    if (this.querySelector("[data-bulk]")) signal.addEventListener("abort", onKey("x", tick));
    listen(this, "filter", () => this.#refetch({ isWanted: true }));
    listen(this.#list, "pointerenter", (event) => (this.#isPointedAt = event.pointerType === "mouse"));
    listen(this.#list, "pointerleave", () => ((this.#isPointedAt = false), this.#settle()));
    listen(this.#list, "focusout", () => setTimeout(() => this.#settle()));
    listen(window, "scroll", () => this.#settle());
    listen(window, "pageshow", (event) => event.persisted && this.#rows.learnSeen());
    listen(document, "visibilitychange", () => document.hidden || this.#rows.learnSeen());
    this.#pill = new NewsPill(this.querySelector("[data-changed]"), () => this.#goUp(), signal);
    const timers = [
      setInterval(() => (this.#rows.calm(), this.#settle()), CALM_MS),
      setInterval(() => document.hidden || this.#isHeld || this.#refetch(), WHOLE_MS),
    ];
    signal.addEventListener("abort", () => timers.forEach(clearInterval));
    this.#leave = socket.subscribe("fleet", { render: "html" }, {
      rows: (frame) => this.#take(frame),
      down: () => this.#lose(true),
      up: () => this.#lose(false),
      reset: () => location.reload(),
    });
  }

  disconnectedCallback() {
    this.#leave();
    this.#stop.abort();
    this.#asking?.abort();
    clearTimeout(this.#pause);
  }

  get #filter() { return this.querySelector("list-filter"); }
  get #list() { return this.querySelector("[data-list]"); }
  get #takesNew() { return !this.#hasFilter && !this.#has("before"); }
  get #hasFilter() { return this.#has("q") || this.#has("participant") || this.#has("state"); }
  get #isHeld() {
    return this.#isPointedAt || this.#list.contains(document.activeElement) || scrollY > SCROLLED;
  }

  #take({ rows, isSnapshot, ...standing }) {
    tellWaiting(standing);
    const isMissing = this.#rows.take(rows, { takesNew: this.#takesNew, isLive: !isSnapshot });
    if (isMissing && this.#hasFilter) this.#refetchSoon();
    this.#settle();
  }

  /** The verbs over a selection come with the first box that is ticked. */
  async #steer() {
    const place = this.querySelector("[data-bulk]");
    if (!place || place.childElementCount || place.ariaBusy) return;
    place.ariaBusy = "true";
    try {
      const [drawn] = await Promise.all([markup("/?part=bulk"), import("./bulk-actions.js")]);
      place.replaceChildren(render(drawn));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
    } finally {
      place.ariaBusy = null;
    }
  }

  #has(name) {
    return Boolean(new URLSearchParams(location.search).get(name));
  }

  #settle() {
    const moves = this.#isHeld ? this.#rows.waiting : 0;
    if (!this.#isHeld) this.#rows.settle();
    this.#pill.show(moves, `${moves} updated`);
  }

  #goUp() {
    this.#isPointedAt = false;
    document.activeElement?.blur();
    scrollTo({ top: 0 });
    this.#rows.settle();
    this.#pill.show(0);
  }

  #refetchSoon() {
    this.#pause ??= setTimeout(() => {
      this.#pause = undefined;
      if (this.#isHeld) this.#refetchSoon();
      else this.#refetch();
    }, PAUSE_MS);
  }

  /** Ask for the whole list. What nobody wished for is not drawn while somebody points at the list or has the focus in it. */
  async #refetch({ isWanted = false } = {}) {
    clearTimeout(this.#pause);
    this.#pause = undefined;
    this.#isWanted ||= isWanted;
    this.#asking?.abort();
    this.#asking = new AbortController();
    const address = new URL(location.href);
    address.searchParams.set("part", "list");
    try {
      const drawn = render(await markup(address, { signal: this.#asking.signal }));
      if (this.#isHeld && !this.#isWanted) return this.#refetchSoon();
      this.#isWanted = false;
      this.#rows.replace(drawn, { takesNew: this.#takesNew });
      this.#settle();
      this.#filter?.settle();
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error;
      if (this.#isWanted && error instanceof RequestError) this.#filter?.fail(error);
    }
    return undefined;
  }

  #lose(isLost) {
    this.querySelector("[data-lost]").hidden = !isLost;
  }
}

const tick = () => document.activeElement?.closest("[data-item]")?.querySelector(".pick input")?.click();

customElements.define("conversation-list", ConversationList);
