/**
 * `<conversation-graph data-topic data-epoch data-src data-event>`: who spoke to whom, asked for again as the conversation
 * goes on. `data-head` of the part within is what it counted. An edge stands for its newest event, or for the one that
 * came selected from another view; tells `event:picked` {row}.
 */
import { markup } from "./fetch.js";
import { GraphView } from "./graph-view.js";
import { render } from "./html.js";
import { LivePart } from "./live-part.js";
import { morph } from "./morph.js";

class ConversationGraph extends HTMLElement {
  #live = null;
  #view = null;
  #stop = new AbortController();
  #event = this.dataset.event ?? "";

  connectedCallback() {
    const { signal } = this.#stop;
    this.#view = new GraphView(this, signal);
    this.#live = new LivePart(this, () => this.#renew(this.#part.hasAttribute("data-whole")));
    this.addEventListener("click", (event) => this.#click(event), { signal });
    this.addEventListener("focusin", ({ target }) => target.matches(".times:focus-visible") && this.#pick(target), { signal });
    const { event: seq } = this.dataset; // it may be one that no edge stands for
    if (seq) queueMicrotask(() => this.#tell({ dataset: { seq } }));
    this.toggleAttribute("data-live", true);
  }

  disconnectedCallback() {
    this.#live.close();
    this.#stop.abort();
  }

  get #part() {
    return this.querySelector("[data-part]");
  }

  async #renew(isWhole) {
    const query = `${isWhole ? "&whole=1" : ""}${this.#event ? `&event=${this.#event}` : ""}`;
    const fresh = render(await markup(this.dataset.src + query, { signal: this.#stop.signal }));
    this.#view.prepare(fresh);
    morph(this.#part, fresh.querySelector("[data-part]"));
    this.#view.settle();
  }

  #click(event) {
    const [whole, row] = [event.target.closest("[data-whole-link]"), event.target.closest(".times, tbody [data-seq]")];
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.detail === 0) return undefined; // Enter opens it
    if (whole) return event.preventDefault(), this.#renew(!this.#part.hasAttribute("data-whole"));
    if (!row || event.target.closest("a.seq")) return undefined;
    event.preventDefault();
    return this.#pick(row);
  }

  /** Select the event that an edge leads to; the picture and the table show the same one. */
  #pick(row) {
    if (row.getAttribute("aria-current") === "true") return;
    this.#event = row.dataset.seq;
    const key = row.dataset.key.replace(/^times /, "");
    for (const one of this.querySelectorAll("[aria-current], [data-chosen]")) one.removeAttribute("aria-current"), one.removeAttribute("data-chosen");
    for (const one of this.querySelectorAll(`[data-key="${CSS.escape(key)}"], [data-key="times ${CSS.escape(key)}"]`)) {
      if (one.matches(".arc")) one.toggleAttribute("data-chosen", true);
      else one.setAttribute("aria-current", "true");
    }
    this.#tell(row);
  }

  #tell(row) {
    this.dispatchEvent(new CustomEvent("event:picked", { bubbles: true, detail: { row } }));
  }
}
customElements.define("conversation-graph", ConversationGraph);
