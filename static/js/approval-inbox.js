/**
 * `<approval-inbox>`: the questions, live by the `approvals` topic. One that was decided stays where it is, with its
 * verdict; of those that wait a new one comes last, else on top, and so does one that is escalated. Those that are picked are decided together.
 */
import "./json-copy.js";
import "./inline-actions.js";
import { drawTimes } from "./clock.js";
import { decideAll } from "./bulk-decisions.js";
import { render } from "./html.js";
import { onKey } from "./keys.js";
import { morph } from "./morph.js";
import { socket } from "./socket.js";
import { tellWaiting } from "./waiting-count.js";

class ApprovalInbox extends HTMLElement {
  #stop;
  #leave = () => {};
  #deciding; // the question whose button was pressed last

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.addEventListener("change", (event) => event.target.matches("[data-pick]") && this.#drawBar(), { signal });
    const note = ({ submitter }) => (this.#deciding = submitter?.closest("[data-key]")?.dataset.key);
    document.addEventListener("submit", note, { signal, capture: true });
    this.#bar.addEventListener("submit", (event) => (event.preventDefault(), this.#decideAll(event.submitter.value)), { signal });
    const keys = { x: "[data-pick]", a: "button[value^='approve:']", r: "input[name^='message:']", e: "[data-change]", w: "[data-always]" };
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

  #take({ rows, ...standing }) {
    tellWaiting(standing);
    let fresh = 0;
    for (const { key, status, html, escalated } of [...rows].reverse()) {
      const old = this.#list.querySelector(`[data-key="${CSS.escape(key)}"]`);
      const row = render(html).querySelector("[data-key]");
      drawTimes(row);
      if (old) {
        const next = key === this.#deciding && isDecided(old, row) && !hasFocusElsewhere(old) ? nextOpen(old) : null;
        const isFresh = escalated && !("escalated" in old.dataset);
        morph(old, row);
        next?.querySelector("[data-pick], a")?.focus(); // whoever decides by keyboard goes on with the next one
        if (isFresh && !old.contains(document.activeElement)) this.#list.prepend(old);
        fresh += Boolean(isFresh);
      }
      else if (this.#takes(status)) {
        if (this.dataset.view) this.#list.prepend(row);
        else this.#list.append(row); // the oldest is decided first
        fresh += status === "pending";
      }
    }
    this.querySelector("[data-empty]").hidden = this.#list.children.length > 0;
    if (fresh) this.querySelector("[data-news]").textContent = `${fresh} new ${fresh === 1 ? "approval request" : "approval requests"}`;
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
    this.querySelector("[data-picked-count]").textContent = `${count} selected`;
  }

  #go(key, part) {
    const row = document.activeElement?.closest("[data-key]") ?? this.#list.firstElementChild;
    const target = row?.querySelector(part);
    if ("xew".includes(key)) target?.click();
    else target?.focus();
  }

  async #decideAll(decision) {
    const words = await decideAll(this.#bar, this.#picked, this.querySelector("[data-outcomes]"), decision);
    if (words) this.querySelector("[data-news]").textContent = words;
    this.#drawBar();
  }
}

/** Whether something else has the focus: a pressed button loses it while it is disabled. */
const hasFocusElsewhere = (row) => document.activeElement !== document.body && !row.contains(document.activeElement);
const isOpen = (row) => row.dataset.status === "pending";
const isDecided = (old, row) => isOpen(old) && !isOpen(row);

/** The question after this one that waits, else the first that does. */
function nextOpen(row) {
  const rows = [...row.parentElement.children];
  const here = rows.indexOf(row);
  return [...rows.slice(here + 1), ...rows.slice(0, here)].find(isOpen) ?? null;
}

customElements.define("approval-inbox", ApprovalInbox);
