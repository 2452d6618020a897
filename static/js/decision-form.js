/**
 * `<decision-form data-address>`: the form that decides a pending approval request, in a transcript and on the approvals page.
 * It posts to the page of the request, `/approvals/ID/` (`dashboard/pages/approvals.py`), not to the API. The response updates
 * the request's block (`.approval`) around it: with the decision, or with errors beside the fields.
 * Dispatches `decision:made` {key} (bubbles, cancelable); unless it is canceled, the focus moves to the next request of the page.
 */
import "./decision-keys.js";
import { ArgumentEdits } from "./argument-edits.js";
import { drawTimes } from "./clock.js";
import { DeadlineBar } from "./deadline-bar.js";
import { reportFailure, reportOtherDecision } from "./decision-report.js";
import { noteFailure } from "./failure-note.js";
import { RequestError, markup, submit } from "./fetch.js";
import { rememberFocus } from "./focus-memory.js";
import { render } from "./html.js";
import { morph } from "./morph.js";
import { nextOpen } from "./open-requests.js";
import { report } from "./page-report.js";
import { rejectByEnter } from "./reject-by-enter.js";

class DecisionForm extends HTMLElement {
  #stop;
  #block;
  #edits;
  #deadline;
  #isSending = false;
  #isDecidedHere = false;
  #hasFocus = false; // whether the focus is in the form, or left it for no other element

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.#block = this.closest(".approval");
    this.#edits = new ArgumentEdits(this, signal);
    this.#deadline = new DeadlineBar(this, signal);
    this.addEventListener("submit", (event) => this.#submit(event), { signal });
    this.addEventListener("keydown", rejectByEnter, { signal });
    this.addEventListener("focusin", () => (this.#hasFocus = true), { signal });
    this.addEventListener("focusout", ({ relatedTarget }) => this.#handleFocusout(relatedTarget), { signal });
    if (this.querySelector(".terms")) this.#update();
    else this.#load();
  }

  disconnectedCallback() {
    this.#stop.abort();
    queueMicrotask(() => this.#handleRemoval());
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
    this.#edits.update();
    this.#deadline.update();
  }

  /** @param {Element | null} focusTarget  null if the focus moves to no other element, as when the window becomes inactive */
  #handleFocusout(focusTarget) {
    if (focusTarget) this.#hasFocus = this.contains(focusTarget);
  }

  #submit(event) {
    event.preventDefault();
    if (event.submitter && !this.#isSending) this.#send(event.target, event.submitter);
  }

  async #send(form, button) {
    this.#isSending = true; // the button is not disabled: it would lose the focus
    this.#status.textContent = "Sending…";
    const hasFocus = rememberFocus(this.#block);
    try {
      this.#showResult(await submit(form.action, new FormData(form, button)), hasFocus());
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      if (this.isConnected) noteFailure(this.#status, error);
      else reportFailure(error);
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

  /** Report a decision made elsewhere to a person who was filling in this form. One being sent has a response of its own. */
  #handleRemoval() {
    if (this.isConnected || !this.#block.isConnected || this.#isDecidedHere || this.#isSending) return;
    const { hasEdits } = this.#edits;
    if (!hasEdits && !this.#hasFocus) return;
    reportOtherDecision(this.#block, hasEdits);
    if (document.activeElement === document.body) this.#block.focus({ preventScroll: true });
  }

  get #status() {
    return this.querySelector("[data-said]");
  }
}

customElements.define("decision-form", DecisionForm);
