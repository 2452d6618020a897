/**
 * `<call-list>`: the newest tool calls. A frame of the `fleet` topic says that something happened; then the list is
 * asked for again. Rows change where they stand; new ones come on top only while nobody points at the list, has the
 * focus in it or has scrolled down. Till then a pill counts them.
 */
import "./utc-field.js";
import { drawTimes } from "./clock.js";
import { FilteredList } from "./filtered-list.js";
import { morph } from "./morph.js";
import { NewsPill, newRows } from "./news-pill.js";
import { openRow } from "./row-links.js";
import { socket } from "./socket.js";

const PAUSE_MS = 700; // between news and asking again
const AGAIN_MS = 3_000; // after a list that did not come
const SCROLLED = 120; // px

class CallList extends HTMLElement {
  #stop;
  #leave;
  #isPointedAt = false;
  #calls = new FilteredList(this);
  #pause;
  #pill;
  #fresh; // the newest drawing, while the list is held

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    const listen = (target, type, act) => target.addEventListener(type, act, { signal });
    listen(this, "filter", () => this.#filter());
    for (const type of ["pointerenter", "pointerleave"]) listen(this.#list, type, (event) => this.#point(event));
    listen(this.#list, "click", openRow);
    listen(this.#list, "focusout", () => setTimeout(() => this.#settle()));
    listen(window, "scroll", () => this.#settle());
    listen(document, "visibilitychange", () => this.#soon());
    this.#pill = new NewsPill(this.querySelector("[data-changed]"), () => this.#goUp(), signal);
    this.#leave = socket.subscribe("fleet", {}, {
      rows: ({ isSnapshot }) => isSnapshot || this.#soon(),
      down: () => (this.#lost.hidden = false),
      up: () => ((this.#lost.hidden = true), this.#soon()),
      reset: () => location.reload(),
    });
  }

  disconnectedCallback() {
    this.#leave();
    this.#stop.abort();
    clearTimeout(this.#pause);
  }

  get #list() { return this.querySelector("[data-list]"); }
  get #lost() { return this.querySelector("[data-lost]"); }
  get #isHeld() { return this.#isPointedAt || this.#list.contains(document.activeElement) || scrollY > SCROLLED; }
  get #isOlder() { return new URLSearchParams(location.search).has("before"); }

  #soon(inMs = PAUSE_MS) {
    if (this.#isOlder || document.hidden) return;
    this.#pause ??= setTimeout(() => ((this.#pause = undefined), this.#renew()), inMs);
  }

  async #renew() {
    if (this.#calls.hasFailed) return this.#filter(); // its rows are not there yet
    const fresh = await this.#calls.look(() => this.#soon(AGAIN_MS));
    if (!fresh) return undefined;
    this.#fresh = fresh;
    const newer = new Map(keyed(fresh));
    for (const [key, row] of keyed(this.#list)) if (newer.has(key)) morph(row, newer.get(key).cloneNode(true));
    const [figure, drawn] = [this.#list, fresh].map((part) => part.querySelector("[data-figure]"));
    if (figure && drawn) morph(figure, drawn.cloneNode(true)); // the reader's rows stay, the count goes on
    drawTimes(this.#list);
    return this.#settle();
  }

  /** The drawing that waits, in the place of the old one, unless somebody reads there. */
  #settle() {
    const here = new Set(keyed(this.#list).map(([key]) => key));
    const more = this.#fresh ? keyed(this.#fresh).filter(([key]) => !here.has(key)).length : 0;
    const isHeld = this.#isHeld;
    if (this.#fresh && !isHeld) {
      this.#list.replaceChildren(this.#fresh);
      this.#fresh = undefined;
    }
    this.#pill.show(isHeld ? more : 0, newRows(more, "call", "calls"));
  }

  #point({ type, pointerType }) {
    this.#isPointedAt = type === "pointerenter" && pointerType === "mouse";
    this.#settle();
  }

  #goUp() {
    this.#isPointedAt = false;
    document.activeElement?.blur();
    scrollTo({ top: 0 });
    this.#settle();
  }

  /** What the address says now. */
  #filter() {
    this.#fresh = undefined;
    for (const field of this.querySelectorAll("[data-query]")) field.value = location.search.slice(1);
    return this.#calls.filter((list) => this.#list.replaceChildren(list));
  }
}

/** Rows by their keys. */
const keyed = (part) => [...part.querySelectorAll("[data-key]")].map((row) => [row.dataset.key, row]);

customElements.define("call-list", CallList);
