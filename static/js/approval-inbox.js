/**
 * `<approval-inbox>`: the questions, live by the `approvals` topic. One that was decided stays where it is, with its
 * verdict; a new one comes on top. Those that are picked are decided together, each by a request of its own.
 */
import "./json-copy.js";
import "./page-verbs.js";
import { drawTimes } from "./clock.js";
import { RequestError, json } from "./fetch.js";
import { render } from "./html.js";
import { onKey } from "./keys.js";
import { morph } from "./morph.js";
import { socket } from "./socket.js";
import { tellWaiting } from "./waiting-count.js";

class ApprovalInbox extends HTMLElement {
  #stop;
  #leave = () => {};

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.addEventListener("change", (event) => event.target.matches("[data-pick]") && this.#drawBar(), { signal });
    this.#bar.addEventListener("submit", (event) => (event.preventDefault(), this.#decideEach(event.submitter.value)), { signal });
    const keys = { x: "[data-pick]", a: "button[value^='approve:']", r: "input[name^='message:']", e: ".verbs > a" };
    for (const [key, part] of Object.entries(keys)) signal.addEventListener("abort", onKey(key, () => this.#go(key, part)));
    this.#showPicks();
    this.#leave = socket.subscribe("approvals", { render: "html" }, {
      rows: (frame) => this.#take(frame),
      down: () => (this.querySelector("[data-lost]").hidden = false),
      up: () => (this.querySelector("[data-lost]").hidden = true),
      reset: () => location.reload(),
    });
  }

  disconnectedCallback() {
    this.#leave();
    this.#stop.abort();
  }

  get #bar() { return this.querySelector("[data-bar]"); }
  get #list() { return this.querySelector("[data-questions]"); }
  get #picked() { return [...this.querySelectorAll("[data-pick]:checked")].map((pick) => pick.closest("[data-key]")); }

  #take({ rows, waiting }) {
    tellWaiting(waiting);
    let fresh = 0;
    for (const { key, status, html } of [...rows].reverse()) {
      const old = this.#list.querySelector(`[data-key="${CSS.escape(key)}"]`);
      const row = render(html).querySelector("[data-key]");
      drawTimes(row);
      if (old) morph(old, row);
      else if (this.#takes(status)) {
        this.#list.prepend(row);
        fresh += status === "pending";
      }
    }
    this.querySelector("[data-empty]").hidden = this.#list.children.length > 0;
    if (fresh) this.querySelector("[data-news]").textContent = `${fresh} new ${fresh === 1 ? "question" : "questions"}`;
    this.#showPicks();
  }

  #takes(status) {
    const { view, live } = this.dataset;
    return live !== undefined && (view === "all" || status === (view === "decided" ? "decided" : "pending"));
  }

  #showPicks() {
    if (!document.body.dataset.may.split(" ").includes("decide")) return;
    for (const pick of this.querySelectorAll("[data-picks]")) pick.hidden = false;
    this.#drawBar();
  }

  #drawBar() {
    const count = this.#picked.length;
    this.#bar.hidden = !count;
    this.querySelector("[data-picked-count]").textContent = `${count} picked`;
  }

  #go(key, part) {
    const row = document.activeElement?.closest("[data-key]") ?? this.#list.firstElementChild;
    const target = row?.querySelector(part);
    if (key === "x" || key === "e") target?.click();
    else target?.focus();
  }

  /** Several at once, each its own decision: who was late for one is told at that one. */
  async #decideEach(decision) {
    const message = this.#bar.elements.message.value;
    const outcomes = await Promise.all(this.#picked.map((row) => this.#decide(row, { decision, message })));
    const done = outcomes.filter(Boolean).length;
    const rest = outcomes.length - done;
    this.querySelector("[data-news]").textContent = `${done} decided${rest ? `, ${rest} not` : ""}`;
    this.#bar.elements.message.value = "";
    this.#drawBar();
  }

  async #decide(row, body) {
    const said = row.querySelector("[data-said]");
    try {
      await json(`/api/v1/approvals/${encodeURIComponent(row.dataset.key)}/decision`, { body });
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      if (said) said.textContent = error.message;
      return false;
    } finally {
      const pick = row.querySelector("[data-pick]");
      if (pick) pick.checked = false;
    }
    return true;
  }
}

customElements.define("approval-inbox", ApprovalInbox);
