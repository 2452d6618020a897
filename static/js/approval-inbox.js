/**
 * `<approval-inbox>`: the requests in a list, live by the `approvals` topic, and beside it one of them. Of those that wait a
 * new one comes last, else on top, and so does one that is escalated; one that was decided leaves for "Just decided", with
 * who decided. Those that are picked are decided together.
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
  #wanted = ""; // the key of the card that was asked for last

  connectedCallback() {
    this.#stop = new AbortController();
    this.#rows = new ApprovalRows(this);
    const { signal } = this.#stop;
    this.addEventListener("click", (event) => this.#click(event), { signal });
    this.addEventListener("decision:made", (event) => (event.preventDefault(), this.#goOn(event.detail.key)), { signal });
    this.#bulk = new BulkDecisions(this, this.#rows, (words) => this.#say(words), signal);
    addEventListener("popstate", () => this.#follow(), { signal });
    const step = (by) => () => this.#show(this.#rows.step(this.#here, by)); // the focus stays in the list
    const keys = { j: step(1), k: step(-1), n: () => this.#goToNext(), x: () => this.#rows.find(this.#here)?.querySelector("[data-pick]")?.click() };
    for (const [key, act] of Object.entries(keys)) signal.addEventListener("abort", onKey(key, act));
    this.#rows.mark(this.#shown);
    signal.addEventListener("abort", socket.subscribe("approvals", { render: "html" }, {
      rows: (frame) => this.#take(frame),
      down: () => (this.querySelector("[data-lost]").hidden = false),
      up: () => (this.querySelector("[data-lost]").hidden = true),
      reset: () => location.reload(), missed: () => location.reload(),
    }));
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  get #place() { return this.querySelector("[data-card]"); }
  get #card() { return this.#place.querySelector(".question"); }
  get #shown() { return this.#card?.dataset.key ?? ""; }
  /** The key of the row that has the focus, else of the one that is shown. */
  get #here() { return document.activeElement?.closest(".ask")?.dataset.key ?? this.#shown; }

  #take({ rows, ...standing }) {
    tellWaiting(standing);
    const fresh = this.#rows.take(rows);
    if (fresh) this.#say(`${fresh} new ${fresh === 1 ? "approval request" : "approval requests"}`);
    this.#cards.settle(rows);
    if (rows.some(({ key, status }) => key === this.#shown && status !== this.#card.dataset.status)) this.#redraw();
    if (!this.#card && this.#rows.first) this.#show(this.#rows.first.dataset.key);
    this.#rows.mark(this.#shown);
    this.#bulk.show();
  }

  #click(event) {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const key = event.target.closest(".ask")?.dataset.key;
    const back = event.target.closest("[data-back]");
    if (back) {
      event.preventDefault();
      history.pushState(null, "", back.href);
      this.#close();
    } else if (key && !event.target.closest("label, time")) {
      event.preventDefault();
      this.#open(key);
    }
  }

  /** Show a request because somebody asked for it. */
  async #open(key) {
    if (location.href !== this.#rows.address(key)) history.pushState(null, "", this.#rows.address(key));
    if (await this.#show(key)) this.#focus();
  }

  /** The request that is shown, from elsewhere on the page; from it or the list the next one. */
  #goToNext() {
    if (this.#card?.dataset.status === "pending" && !this.contains(document.activeElement)) this.#focus();
    else this.#goOn(this.#here);
  }

  /** After a decision: the next one that waits, else stay with the verdict. */
  async #goOn(key) {
    const next = this.#rows.next(key)?.dataset.key;
    if (next && (await this.#show(next))) history.replaceState(null, "", this.#rows.address(next));
    this.#focus();
  }

  #focus() {
    this.setAttribute("data-open", "");
    this.#place.querySelector(".approval")?.focus();
  }

  #close() {
    this.removeAttribute("data-open");
    (this.#rows.find(this.#shown) ?? this.#rows.first)?.querySelector("a").focus();
  }

  async #follow() { // Back or Forward
    const row = this.#rows.all.find((other) => other.querySelector("a").pathname === location.pathname);
    if (!row) this.#close();
    else if (await this.#show(row.dataset.key)) this.#focus();
  }

  async #show(key) {
    if (!key) return false;
    this.#wanted = key;
    if (key === this.#shown && this.#card.dataset.status === "pending") return true;
    const card = await this.#loaded(key);
    if (!card || this.#wanted !== key) return false;
    this.#cards.keep(this.#card);
    this.#place.replaceChildren(card);
    this.#rows.mark(key);
    return true;
  }

  /** Draw the card anew: it was decided. Whichever is wanted meanwhile takes its place all the same. */
  async #redraw() {
    const key = this.#shown;
    const card = await this.#loaded(key);
    if (card && key === this.#shown) morph(this.#card, card);
  }

  async #loaded(key) {
    const row = this.#rows.find(key);
    try {
      return await this.#cards.load(key, row?.querySelector("a").href ?? location.pathname, this.#stop.signal);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      if (row) row.querySelector("[data-said]").textContent = error.sentence;
      return null;
    }
  }

  #say(words) {
    this.querySelector("[data-news]").textContent = words;
  }
}

customElements.define("approval-inbox", ApprovalInbox);
