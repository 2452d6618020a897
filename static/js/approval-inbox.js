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
import { RequestError } from "./fetch.js";
import { onKey } from "./keys.js";
import { morph } from "./morph.js";
import { RequestCards } from "./request-cards.js";
import { socket } from "./socket.js";
import { tellWaiting } from "./waiting-count.js";

class ApprovalInbox extends HTMLElement {
  #stop;
  #rows;
  #bulk;
  #cards = new RequestCards();
  #requestedKey = ""; // of the card that was requested last

  connectedCallback() {
    this.#stop = new AbortController();
    this.#rows = new ApprovalRows(this);
    const { signal } = this.#stop;
    this.addEventListener("click", (event) => this.#handleClick(event), { signal });
    this.addEventListener("decision:made", (event) => (event.preventDefault(), this.#showNextAfter(event.detail.key)), { signal });
    this.#bulk = new BulkDecisions(this, this.#rows, (text) => this.#announce(text), signal);
    addEventListener("popstate", () => this.#handlePopstate(), { signal });
    const step = (offset) => () => this.#show(this.#rows.step(this.#currentKey, offset)); // the focus stays in the list
    const keys = { j: step(1), k: step(-1), n: () => this.#goToNext(), x: () => this.#rows.find(this.#currentKey)?.querySelector("[data-pick]")?.click() };
    for (const [key, act] of Object.entries(keys)) signal.addEventListener("abort", onKey(key, act));
    this.#rows.mark(this.#shownKey);
    signal.addEventListener("abort", socket.subscribe("approvals", { render: "html" }, {
      rows: (frame) => this.#receive(frame),
      down: () => (this.querySelector("[data-lost]").hidden = false),
      up: () => (this.querySelector("[data-lost]").hidden = true),
      reset: () => location.reload(), missed: () => location.reload(),
    }));
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  get #cardContainer() { return this.querySelector("[data-card]"); }
  get #card() { return this.#cardContainer.querySelector(".question"); }
  get #shownKey() { return this.#card?.dataset.key ?? ""; }
  /** The key of the row that has the focus, or else of the card that is shown. */
  get #currentKey() { return document.activeElement?.closest(".ask")?.dataset.key ?? this.#shownKey; }

  #receive({ rows, ...standing }) {
    tellWaiting(standing);
    const newCount = this.#rows.take(rows);
    if (newCount) this.#announce(`${newCount} new ${newCount === 1 ? "approval request" : "approval requests"}`);
    this.#cards.settle(rows);
    if (rows.some(({ key, status }) => key === this.#shownKey && status !== this.#card.dataset.status)) this.#refreshCard();
    if (!this.#card && this.#rows.first) this.#show(this.#rows.first.dataset.key);
    this.#rows.mark(this.#shownKey);
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
    if (await this.#show(key)) this.#focus();
  }

  /** Focus the shown card if it is pending and the focus is outside the inbox; otherwise show the next request. */
  #goToNext() {
    if (this.#card?.dataset.status === "pending" && !this.contains(document.activeElement)) this.#focus();
    else this.#showNextAfter(this.#currentKey);
  }

  /** Show and focus the next pending request. If there is none, the decided one stays. */
  async #showNextAfter(key) {
    const next = this.#rows.next(key)?.dataset.key;
    if (next && (await this.#show(next))) history.replaceState(null, "", this.#rows.address(next));
    this.#focus();
  }

  #focus() {
    this.setAttribute("data-open", "");
    this.#cardContainer.querySelector(".approval")?.focus();
  }

  #close() {
    this.removeAttribute("data-open");
    (this.#rows.find(this.#shownKey) ?? this.#rows.first)?.querySelector("a").focus();
  }

  async #handlePopstate() {
    const row = this.#rows.all.find((other) => other.querySelector("a").pathname === location.pathname);
    if (!row) this.#close();
    else if (await this.#show(row.dataset.key)) this.#focus();
  }

  async #show(key) {
    if (!key) return false;
    this.#requestedKey = key;
    if (key === this.#shownKey && this.#card.dataset.status === "pending") return true;
    const card = await this.#load(key);
    if (!card || this.#requestedKey !== key) return false;
    this.#cards.keep(this.#card);
    this.#cardContainer.replaceChildren(card);
    this.#rows.mark(key);
    return true;
  }

  /** Update the card after its request changed, unless another card was shown in the meantime. */
  async #refreshCard() {
    const key = this.#shownKey;
    const card = await this.#load(key);
    if (card && key === this.#shownKey) morph(this.#card, card);
  }

  async #load(key) {
    const row = this.#rows.find(key);
    try {
      return await this.#cards.load(key, row?.querySelector("a").href ?? location.pathname, this.#stop.signal);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      if (row) row.querySelector("[data-said]").textContent = error.sentence;
      return null;
    }
  }

  #announce(text) {
    this.querySelector("[data-news]").textContent = text;
  }
}

customElements.define("approval-inbox", ApprovalInbox);
