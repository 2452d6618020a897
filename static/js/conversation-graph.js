/**
 * `<conversation-graph data-topic data-epoch data-src data-event>`: the graph of who messaged whom, fetched again as the
 * conversation goes on. `data-head` of the `[data-part]` within is the newest event that it includes. An edge represents
 * its newest event, or the one that was already picked in another view. Dispatches `event:picked` {row} (bubbles).
 */
import { RequestError, markup } from "./fetch.js";
import { GraphView } from "./graph-view.js";
import { render } from "./html.js";
import { LivePart } from "./live-part.js";
import { morph } from "./morph.js";

class ConversationGraph extends HTMLElement {
  #live = null;
  #view = null;
  #abort = new AbortController();
  #pickedSeq = this.dataset.event ?? "";
  #requestCount = 0;
  #renderedRequest = 0; // number of the newest request whose response was rendered
  #isWhole = false; // whether all participants are requested, or only the most active ones

  connectedCallback() {
    const { signal } = this.#abort;
    this.#view = new GraphView(this, signal);
    this.#isWhole = this.#showsAll;
    this.#live = new LivePart(this, () => this.#refresh());
    this.addEventListener("click", (event) => this.#click(event), { signal });
    this.addEventListener("focusin", ({ target }) => target.matches(".times:focus-visible") && this.#pick(target), { signal });
    const { event: seq } = this.dataset; // maybe an event that no edge represents
    if (seq) queueMicrotask(() => this.#dispatchPicked({ dataset: { seq } }));
    this.toggleAttribute("data-live", true);
  }

  disconnectedCallback() {
    this.#live.close();
    this.#abort.abort();
  }

  get #part() {
    return this.querySelector("[data-part]");
  }

  /** Whether the rendered part shows all participants. */
  get #showsAll() {
    return this.#part.hasAttribute("data-whole");
  }

  async #refresh() {
    const query = `${this.#isWhole ? "&whole=1" : ""}${this.#pickedSeq ? `&event=${this.#pickedSeq}` : ""}`;
    const requestNumber = (this.#requestCount += 1);
    const fresh = render(await markup(this.dataset.src + query, { signal: this.#abort.signal }));
    if (requestNumber < this.#renderedRequest) return; // a later request was answered first
    this.#renderedRequest = requestNumber;
    this.#view.resize(fresh);
    morph(this.#part, fresh.querySelector("[data-part]"));
    this.#view.markMatches();
  }

  #click(event) {
    const [wholeLink, row] = [event.target.closest("[data-whole-link]"), event.target.closest(".times, tbody [data-seq]")];
    if (event.metaKey || event.ctrlKey || event.shiftKey) return undefined;
    if (wholeLink) return event.preventDefault(), this.#toggleWhole(wholeLink);
    if (!row || event.target.closest("a.seq") || event.detail === 0) return undefined; // Enter follows the link of a row
    event.preventDefault();
    return this.#pick(row);
  }

  /** Switch between all participants and the most active ones. If that fails, the link says so. */
  async #toggleWhole(link) {
    this.#isWhole = !this.#showsAll;
    try {
      await this.#refresh();
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error;
      this.#isWhole = this.#showsAll;
      if (error instanceof RequestError) link.textContent = `${error.sentence} Try again`;
    }
  }

  /** Pick the event that an edge represents, and mark the edge in the picture and in the table. */
  #pick(row) {
    if (row.getAttribute("aria-current") === "true") return;
    this.#pickedSeq = row.dataset.seq;
    const edgeKey = row.dataset.key.replace(/^times /, "");
    for (const marked of this.querySelectorAll("[aria-current], [data-chosen]")) marked.removeAttribute("aria-current"), marked.removeAttribute("data-chosen");
    for (const part of this.querySelectorAll(`[data-key="${CSS.escape(edgeKey)}"], [data-key="times ${CSS.escape(edgeKey)}"]`)) {
      if (part.matches(".arc")) part.toggleAttribute("data-chosen", true);
      else part.setAttribute("aria-current", "true");
    }
    this.#dispatchPicked(row);
  }

  #dispatchPicked(row) {
    this.dispatchEvent(new CustomEvent("event:picked", { bubbles: true, detail: { row } }));
  }
}
customElements.define("conversation-graph", ConversationGraph);
