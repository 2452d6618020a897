/**
 * `<approval-inbox>`: the list of approval requests, live through the `approvals` topic, beside the card of one. New requests
 * go to the end of the waiting ones (in other views to the top), escalated ones to the top, decided ones to "Just decided".
 * Selected requests are decided together.
 */
import "./json-copy.js";
import "./inline-actions.js";
import "./decision-form.js";
import { ApprovalRows } from "./approval-rows.js";
import { BulkDecisions } from "./bulk-decisions.js";
import { onKey } from "./keys.js";
import { RequestPane } from "./request-pane.js";
import { socket } from "./socket.js";
import { tellWaiting } from "./waiting-count.js";

class ApprovalInbox extends HTMLElement {
  #stop;
  #rows;
  #pane;
  #bulk;

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.#rows = new ApprovalRows(this);
    this.#pane = new RequestPane(this.querySelector("[data-card]"), this.#rows, signal);
    this.#bulk = new BulkDecisions(this, this.#rows, (text) => this.#announce(text), signal);
    this.#rows.mark(this.#pane.key);
    this.addEventListener("click", (event) => this.#handleClick(event), { signal });
    this.addEventListener("decision:made", (event) => this.#handleDecision(event), { signal });
    addEventListener("popstate", () => this.#handlePopstate(), { signal });
    for (const [key, act] of Object.entries(this.#keys)) signal.addEventListener("abort", onKey(key, act));
    signal.addEventListener("abort", this.#subscribe());
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  /** The key of the row that has the focus, or else of the request that is shown. */
  get #currentKey() { return document.activeElement?.closest(".ask")?.dataset.key ?? this.#pane.key; }
  get #connectionLost() { return this.querySelector("[data-lost]"); }

  get #keys() {
    const step = (offset) => () => this.#pane.show(this.#rows.step(this.#currentKey, offset)); // the focus stays in the list
    return {
      j: step(1),
      k: step(-1),
      n: () => this.#goToNext(),
      x: () => this.#rows.find(this.#currentKey)?.querySelector("[data-pick]")?.click(),
    };
  }

  #subscribe() {
    return socket.subscribe("approvals", { render: "html" }, {
      rows: (frame) => this.#receive(frame),
      down: () => (this.#connectionLost.hidden = false),
      up: () => (this.#connectionLost.hidden = true),
      reset: () => location.reload(),
      missed: () => location.reload(),
    });
  }

  #receive({ rows, ...standing }) {
    tellWaiting(standing);
    const newCount = this.#rows.take(rows);
    if (newCount) this.#announce(`${newCount} new ${newCount === 1 ? "approval request" : "approval requests"}`);
    this.#pane.update(rows);
    if (!this.#pane.key && this.#rows.first) this.#pane.show(this.#rows.first.dataset.key);
    this.#rows.mark(this.#pane.key);
    this.#bulk.show();
  }

  #handleClick(event) {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const key = event.target.closest(".ask")?.dataset.key;
    const backLink = event.target.closest("[data-back]");
    if (backLink) {
      event.preventDefault();
      history.pushState(null, "", backLink.href);
      this.#close();
    } else if (key && !event.target.closest("label, time")) {
      event.preventDefault();
      this.#open(key);
    }
  }

  /** Show a request that was clicked, and focus it. */
  async #open(key) {
    if (location.href !== this.#rows.address(key)) history.pushState(null, "", this.#rows.address(key));
    if (await this.#pane.show(key)) this.#focus();
  }

  /** Focus the shown request if it is pending and the focus is outside the inbox; otherwise show the next request. */
  #goToNext() {
    if (this.#pane.isPending && !this.contains(document.activeElement)) this.#focus();
    else this.#showNextAfter(this.#currentKey);
  }

  #handleDecision(event) {
    event.preventDefault();
    this.#showNextAfter(event.detail.key);
  }

  /** Show and focus the next pending request. If there is none, the decided one stays. */
  async #showNextAfter(key) {
    const next = this.#rows.next(key)?.dataset.key;
    if (next && (await this.#pane.show(next))) history.replaceState(null, "", this.#rows.address(next));
    this.#focus();
  }

  #focus() {
    this.setAttribute("data-open", "");
    this.#pane.focus();
  }

  #close() {
    this.removeAttribute("data-open");
    (this.#rows.find(this.#pane.key) ?? this.#rows.first)?.querySelector("a").focus();
  }

  async #handlePopstate() {
    const row = this.#rows.all.find((other) => other.querySelector("a").pathname === location.pathname);
    if (!row) this.#close();
    else if (await this.#pane.show(row.dataset.key)) this.#focus();
  }

  /** Write into the page's live region. @param {string} text */
  #announce(text) {
    this.querySelector("[data-news]").textContent = text;
  }
}

customElements.define("approval-inbox", ApprovalInbox);
