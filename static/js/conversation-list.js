/**
 * `<conversation-list>`: the list of conversations, live through the `fleet` topic. Rows are updated in place, but reordered
 * only while nobody points at the list, has the focus in it or has scrolled down; until then a pill counts what would move.
 */
import { FragmentLoader } from "./fragment-loader.js";
import { LazyBulkActions } from "./lazy-bulk-actions.js";
import { notAppliedText } from "./list-filter.js";
import { ConversationRows } from "./conversation-rows.js";
import { onKey } from "./keys.js";
import { NewsPill } from "./news-pill.js";
import { socket } from "./socket.js";
import { tellWaiting } from "./waiting-count.js";

const REFETCH_DELAY_MS = 500; // after a change that may alter the filtered list
const RETRY_MS = 3_000; // after a failed fetch
const SCROLL_THRESHOLD = 120; // px; a page scrolled further counts as being read
const ORDER_MS = 2_000; // between two attempts to reorder
const REFETCH_MS = 60_000; // between two fetches of the whole list: frames do not report removed conversations

class ConversationList extends HTMLElement {
  #abort;
  #unsubscribe;
  #rows;
  #isHovered = false;
  #loader = new FragmentLoader();
  #isRequestedByUser = false; // whether a changed filter caused the fetch under way
  #refetchTimer;
  #pill;

  connectedCallback() {
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    this.#rows = new ConversationRows(this.#list);
    const listen = (target, type, listener) => target.addEventListener(type, listener, { signal });
    if (new LazyBulkActions(this, signal).isAllowed) signal.addEventListener("abort", onKey("x", toggleBox));
    listen(this, "filter", () => this.#refetch({ isRequestedByUser: true }));
    listen(this.#list, "pointerenter", (event) => (this.#isHovered = event.pointerType === "mouse"));
    listen(this.#list, "pointerleave", () => ((this.#isHovered = false), this.#reorder()));
    listen(this.#list, "focusout", () => setTimeout(() => this.#reorder()));
    listen(window, "scroll", () => this.#reorder());
    listen(window, "pageshow", (event) => event.persisted && this.#rows.refreshSeen());
    listen(document, "visibilitychange", () => document.hidden || this.#rows.refreshSeen());
    this.#pill = new NewsPill(this.querySelector("[data-changed]"), () => this.#scrollUp(), signal);
    const timers = [
      setInterval(() => (this.#rows.expireActivity(), this.#reorder()), ORDER_MS),
      setInterval(() => document.hidden || this.#isBeingRead || this.#refetch(), REFETCH_MS),
    ];
    signal.addEventListener("abort", () => timers.forEach(clearInterval));
    this.#unsubscribe = socket.subscribe("fleet", { render: "html" }, {
      rows: (frame) => this.#receive(frame),
      down: () => this.#showLost(true),
      up: () => this.#showLost(false),
      reset: () => location.reload(),
    });
  }

  disconnectedCallback() {
    this.#unsubscribe();
    this.#abort.abort();
    clearTimeout(this.#refetchTimer);
  }

  get #filter() { return this.querySelector("list-filter"); }
  get #list() { return this.querySelector("[data-list]"); }
  get #acceptsNew() { return !this.#hasFilter && !this.#hasParameter("before"); }
  get #hasFilter() { return this.#hasParameter("q") || this.#hasParameter("participant") || this.#hasParameter("state"); }
  get #isBeingRead() {
    return this.#isHovered || this.#list.contains(document.activeElement) || scrollY > SCROLL_THRESHOLD;
  }

  #receive({ rows, isSnapshot, ...standing }) {
    tellWaiting(standing);
    const mayBeOutdated = this.#rows.update(rows, { acceptsNew: this.#acceptsNew, isSnapshot });
    if (mayBeOutdated && this.#hasFilter) this.#refetchSoon();
    this.#reorder();
  }

  #hasParameter(name) {
    return Boolean(new URLSearchParams(location.search).get(name));
  }

  #reorder() {
    const moves = this.#isBeingRead ? this.#rows.pendingMoves : 0;
    if (!this.#isBeingRead) this.#rows.reorder();
    this.#pill.show(moves, `${moves} updated`);
  }

  #scrollUp() {
    this.#isHovered = false;
    document.activeElement?.blur();
    scrollTo({ top: 0 });
    this.#rows.reorder();
    this.#pill.show(0);
  }

  #refetchSoon(delayMs = REFETCH_DELAY_MS) {
    this.#refetchTimer ??= setTimeout(() => {
      this.#refetchTimer = undefined;
      if (this.#isBeingRead) this.#refetchSoon();
      else this.#refetch();
    }, delayMs);
  }

  /** Fetch the whole list. Unless the user requested it by a filter, it is not rendered while the list is being read. */
  async #refetch({ isRequestedByUser = false } = {}) {
    clearTimeout(this.#refetchTimer);
    this.#refetchTimer = undefined;
    this.#isRequestedByUser ||= isRequestedByUser;
    const list = await this.#loader.load("list", (error) => this.#handleFailure(error));
    if (!list || !this.isConnected) return undefined;
    if (this.#isBeingRead && !this.#isRequestedByUser) return this.#refetchSoon();
    this.#isRequestedByUser = false;
    this.#rows.replace(list, { acceptsNew: this.#acceptsNew });
    this.#reorder();
    return this.#filter?.settle();
  }

  #handleFailure(error) {
    if (this.#isRequestedByUser) this.#filter?.fail(notAppliedText(error));
    else if (error.isTemporary) this.#refetchSoon(RETRY_MS);
  }

  #showLost(isLost) {
    this.querySelector(":scope > [data-lost]").hidden = !isLost; // the first steps have a strip of their own
  }
}

const toggleBox = () => document.activeElement?.closest("[data-item]")?.querySelector(".pick input")?.click();

customElements.define("conversation-list", ConversationList);
