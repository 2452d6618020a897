/**
 * `<decision-form data-address>`: where an open approval request is decided, the same in a transcript and on the approvals
 * page. It stands in the request's block (`.approval`), which the answer draws anew: with the verdict, or with what is
 * wrong beside its field. Tells, bubbling and cancelable: `decision:made` {key}; who does not take it has the focus go to
 * the next request of the page.
 */
import "./decision-keys.js";
import { drawTimes } from "./clock.js";
import { report } from "./decision-report.js";
import { markEdits, undoEdits, wordsOf } from "./edited-fields.js";
import { RequestError, markup, submit } from "./fetch.js";
import { focusNow } from "./focus-kept.js";
import { render } from "./html.js";
import { composes } from "./keys.js";
import { morph } from "./morph.js";
import { nextOpen } from "./open-requests.js";
import { serverNow } from "./server-time.js";

const TICK_MS = 1_000; // of the bar that says how much time is left
const URGENT = 20; // hundredths of the time

class DecisionForm extends HTMLElement {
  #stop;
  #block;
  #ticks = 0;
  #isSending = false;
  #isDecided = false; // by this form
  #isInUse = false; // the focus is in it

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.#block = this.closest(".approval");
    this.addEventListener("submit", (event) => this.#submit(event), { signal });
    this.addEventListener("keydown", rejectByEnter, { signal });
    this.addEventListener("input", () => this.#count(), { signal });
    this.addEventListener("click", ({ target }) => target.closest("[data-undo]") && this.#undo(), { signal });
    this.addEventListener("focusin", () => (this.#isInUse = true), { signal });
    this.addEventListener("focusout", ({ relatedTarget }) => relatedTarget && (this.#isInUse = this.contains(relatedTarget)), { signal });
    this.#ticks = setInterval(() => this.#drawTimeLeft(), TICK_MS);
    this.querySelector(".terms") ? this.#begin() : this.#load();
  }

  disconnectedCallback() {
    this.#stop.abort();
    clearInterval(this.#ticks);
    queueMicrotask(() => !this.isConnected && this.#block.isConnected && !this.#isDecided && this.#tellWho());
  }

  async #load() {
    try {
      const drawn = render(await markup(`${this.dataset.address}?part=form`, { signal: this.#stop.signal }));
      if (!drawn.childElementCount) return; // decided by now: the event that says so comes
      drawTimes(drawn);
      this.replaceChildren(drawn);
      this.#begin();
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error; // the link to the request stays
    }
  }

  #begin() {
    this.#count();
    this.#drawTimeLeft();
  }

  #count() {
    const { edited, all } = markEdits(this);
    const [plain, withEdits] = ["approve", "fields"].map((value) => this.querySelector(`button[value=${value}]`));
    if (!plain || !withEdits) return;
    this.toggleAttribute("data-edited", edited > 0); // the style sheet shows the other button
    plain.hidden = edited > 0;
    this.querySelector("[data-undo]").hidden = !edited;
    this.querySelector("[data-edit-count]").textContent = wordsOf(edited, all);
  }

  #undo() {
    undoEdits(this);
    this.#count();
    this.querySelector("[data-was]").focus();
  }

  #submit(event) {
    event.preventDefault();
    if (event.submitter && !this.#isSending) this.#send(event.target, event.submitter);
  }

  async #send(form, button) {
    this.#isSending = true; // the button stays enabled: it would lose the focus
    this.#say("Sending…");
    const isStillHere = focusNow(this.#block);
    try {
      this.#take(await submit(form.action, new FormData(form, button)), isStillHere());
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#say(`Not done. ${error.sentence}`);
    } finally {
      this.#isSending = false;
    }
  }

  #take({ done, words, html }, mayFocus) {
    const fresh = render(html).querySelector(".approval");
    drawTimes(fresh);
    const form = fresh.querySelector("decision-form");
    if (form) return this.#correct(form, mayFocus);
    this.#isDecided = true;
    morph(this.#block, fresh);
    report(words, done ? "done" : "failed");
    if (!mayFocus) return undefined;
    if (!done) return this.#block.focus();
    const told = new CustomEvent("decision:made", { bubbles: true, cancelable: true, detail: { key: this.dataset.key } });
    return this.#block.dispatchEvent(told) && (nextOpen(this.#block) ?? this.#block).focus();
  }

  /** Show what is wrong where it is wrong, with everything that was entered. */
  #correct(form, mayFocus) {
    this.replaceChildren(...form.childNodes);
    this.#begin();
    if (mayFocus) (this.querySelector("[aria-invalid]") ?? this.querySelector(".error"))?.focus();
  }

  /** Whoever was about to decide is told what came first. */
  #tellWho() {
    const { edited } = markEdits(this);
    if (!edited && !this.#isInUse) return;
    const verdict = [...(this.#block.querySelector(".verdict")?.children ?? [])].map((part) => part.textContent.trim()).join(" ");
    report(`Decided elsewhere: ${verdict || "no longer waiting"}.${edited ? " Your edits were not used." : ""}`, "failed");
    if (document.activeElement === document.body) this.#block.focus({ preventScroll: true });
  }

  #drawTimeLeft() {
    const bar = this.querySelector("svg[data-until]");
    if (!bar) return;
    const [since, until] = [bar.dataset.since, bar.dataset.until].map(Date.parse);
    const left = Math.max(0, Math.min(100, (100 * (until - serverNow())) / (until - since)));
    bar.firstElementChild.setAttribute("width", left.toFixed(1));
    bar.toggleAttribute("data-urgent", left < URGENT);
  }

  #say(words) { this.querySelector("[data-said]")?.replaceChildren(words); }
}

/** In the reason for rejecting Enter rejects; in any other field it decides nothing. */
function rejectByEnter(event) {
  if (event.key !== "Enter" || composes(event) || event.target.name !== "message") return;
  event.target.form.requestSubmit(event.target.form.querySelector("button[value=reject]"));
}

customElements.define("decision-form", DecisionForm);
