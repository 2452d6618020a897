/**
 * `<decision-form data-address>`: the form that decides a pending approval request, in a transcript and on the approvals page.
 * The response updates the request's block (`.approval`) around it: with the decision, or with errors beside the fields.
 * Dispatches `decision:made` {key} (bubbles, cancelable); unless it is canceled, the focus moves to the next request of the page.
 */
import "./decision-keys.js";
import { drawTimes } from "./clock.js";
import { report } from "./decision-report.js";
import { editSummary, markEdits, undoEdits } from "./edited-fields.js";
import { RequestError, markup, submit } from "./fetch.js";
import { focusNow } from "./focus-kept.js";
import { render } from "./html.js";
import { composes } from "./keys.js";
import { morph } from "./morph.js";
import { nextOpen } from "./open-requests.js";
import { serverNow } from "./server-time.js";

const TICK_MS = 1_000; // between two updates of the bar that shows the remaining time
const URGENT_PERCENT = 20; // of the time until the deadline

class DecisionForm extends HTMLElement {
  #stop;
  #block;
  #tickTimer = 0;
  #isSending = false;
  #isDecidedHere = false;
  #hasFocus = false; // whether the focus is in the form, or left it for no other element

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.#block = this.closest(".approval");
    this.addEventListener("submit", (event) => this.#submit(event), { signal });
    this.addEventListener("keydown", rejectByEnter, { signal });
    this.addEventListener("input", () => this.#updateEdits(), { signal });
    this.addEventListener("click", ({ target }) => target.closest("[data-undo]") && this.#undo(), { signal });
    this.addEventListener("focusin", () => (this.#hasFocus = true), { signal });
    this.addEventListener("focusout", ({ relatedTarget }) => relatedTarget && (this.#hasFocus = this.contains(relatedTarget)), { signal });
    this.#tickTimer = setInterval(() => this.#updateTimeLeft(), TICK_MS);
    this.querySelector(".terms") ? this.#update() : this.#load();
  }

  disconnectedCallback() {
    this.#stop.abort();
    clearInterval(this.#tickTimer);
    queueMicrotask(() => !this.isConnected && this.#block.isConnected && !this.#isDecidedHere && this.#reportOtherDecision());
  }

  async #load() {
    try {
      const content = render(await markup(`${this.dataset.address}?part=form`, { signal: this.#stop.signal }));
      if (!content.childElementCount) return; // already decided: its event will follow
      drawTimes(content);
      this.replaceChildren(content);
      this.#update();
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error; // the link to the request remains
    }
  }

  #update() {
    this.#updateEdits();
    this.#updateTimeLeft();
  }

  #updateEdits() {
    const { edited, all } = markEdits(this);
    const [plain, withEdits] = ["approve", "fields"].map((value) => this.querySelector(`button[value=${value}]`));
    if (!plain || !withEdits) return;
    this.toggleAttribute("data-edited", edited > 0); // the style sheet shows the other button
    plain.hidden = edited > 0;
    this.querySelector("[data-undo]").hidden = !edited;
    this.querySelector("[data-edit-count]").textContent = editSummary(edited, all);
  }

  #undo() {
    undoEdits(this);
    this.#updateEdits();
    this.querySelector("[data-was]").focus();
  }

  #submit(event) {
    event.preventDefault();
    if (event.submitter && !this.#isSending) this.#send(event.target, event.submitter);
  }

  async #send(form, button) {
    this.#isSending = true; // the button is not disabled: it would lose the focus
    this.#showStatus("Sending…");
    const hasFocus = focusNow(this.#block);
    try {
      this.#showResult(await submit(form.action, new FormData(form, button)), hasFocus());
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#showStatus(`Not done. ${error.sentence}`);
    } finally {
      this.#isSending = false;
    }
  }

  #showResult({ done, words: text, html }, mayFocus) {
    const block = render(html).querySelector(".approval");
    drawTimes(block);
    const form = block.querySelector("decision-form");
    if (form) return this.#showErrors(form, mayFocus);
    this.#isDecidedHere = true;
    morph(this.#block, block);
    report(text, done ? "done" : "failed");
    if (!mayFocus) return undefined;
    if (!done) return this.#block.focus();
    const event = new CustomEvent("decision:made", { bubbles: true, cancelable: true, detail: { key: this.dataset.key } });
    return this.#block.dispatchEvent(event) && (nextOpen(this.#block) ?? this.#block).focus();
  }

  /** Show the errors beside their fields; the response keeps what was entered. */
  #showErrors(form, mayFocus) {
    this.replaceChildren(...form.childNodes);
    this.#update();
    if (mayFocus) (this.querySelector("[aria-invalid]") ?? this.querySelector(".error"))?.focus();
  }

  /** Report a decision made elsewhere to a person who was filling in this form. */
  #reportOtherDecision() {
    const { edited } = markEdits(this);
    if (!edited && !this.#hasFocus) return;
    const verdict = [...(this.#block.querySelector(".verdict")?.children ?? [])].map((part) => part.textContent.trim()).join(" ");
    report(`Decided elsewhere: ${verdict || "no longer waiting"}.${edited ? " Your edits were not used." : ""}`, "failed");
    if (document.activeElement === document.body) this.#block.focus({ preventScroll: true });
  }

  #updateTimeLeft() {
    const bar = this.querySelector("svg[data-until]");
    if (!bar) return;
    const [since, until] = [bar.dataset.since, bar.dataset.until].map(Date.parse);
    const percentLeft = Math.max(0, Math.min(100, (100 * (until - serverNow())) / (until - since)));
    bar.firstElementChild.setAttribute("width", percentLeft.toFixed(1));
    bar.toggleAttribute("data-urgent", percentLeft < URGENT_PERCENT);
  }

  #showStatus(text) { this.querySelector("[data-said]")?.replaceChildren(text); }
}

/** Enter rejects in the field for the reason to reject; in other fields it submits nothing. */
function rejectByEnter(event) {
  if (event.key !== "Enter" || composes(event) || event.target.name !== "message") return;
  event.target.form.requestSubmit(event.target.form.querySelector("button[value=reject]"));
}

customElements.define("decision-form", DecisionForm);
