/**
 * `<conversation-control data-address>`: the control buttons at the top of a conversation. It sends their actions, and
 * fetches the state of the conversation as events arrive: one request for all parts of the page that no frame renders, a
 * few per run however many events it has. While an agent works it also polls, since a stuck run sends no event.
 * Dispatches `standing:drawn` {fresh: the response, query} on the document.
 */
import { drawTimes } from "./clock.js";
import { placeDeliveries, unsettledQuery } from "./deliveries.js";
import { noteFailure } from "./failure-note.js";
import { RequestError, json, markup } from "./fetch.js";
import { render } from "./html.js";
import { onKey } from "./keys.js";
import { morph } from "./morph.js";
import { askReason } from "./reason-dialog.js";

const DELAY_MS = 300; // from an event or an action to the request
const STATE_INTERVAL_MS = 2_000; // at least, between two requests while the conversation's state changes
const RUN_INTERVAL_MS = 10_000; // at least, between two requests while events come only from within a run that is shown
const RETRY_MS = 2_000; // after a failed request: maybe no event follows that would cause another
const POLL_MS = 15_000; // while an agent works
const KEYS = { p: "p", t: "t", s: "s", S: "Shift+S" }; // key of the event → `aria-keyshortcuts` of the button
const PARTS = ["h1", "[data-standing]", '[data-verbs="first"]', '[data-verbs="folded"]', "[data-alarm]"]; // replaced from the response

class ConversationControl extends HTMLElement {
  #abort;
  #timer = 0;
  #dueAt = 0; // when the planned request is sent, in ms of `performance.now()`
  #isForced = false; // whether it is sent even if the state on the page includes the newest event
  #requestedAt = -Infinity;
  #requestCount = 0;
  #renderedRequest = 0; // number of the newest request whose response was rendered
  #repeatTimer = 0; // of a further request that no event causes
  #redactionCount = 0;
  #panelRedactions = 0; // of these, how many the panel includes
  #seq = Number(document.querySelector("live-transcript, [data-part]")?.dataset.head ?? 0);
  #isSending = false;

  connectedCallback() {
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    this.addEventListener("submit", (event) => this.#submit(event), { signal });
    document.addEventListener("transcript:drawn", ({ detail }) => this.#onDrawn(detail), { signal });
    document.addEventListener("visibilitychange", () => this.#schedule(), { signal });
    document.addEventListener("record:redacted", () => ((this.#redactionCount += 1), this.#schedule()), { signal });
    for (const [key, shortcut] of Object.entries(KEYS)) signal.addEventListener("abort", onKey(key, () => this.querySelector(`[aria-keyshortcuts="${shortcut}"]`)?.click()));
    const poll = setInterval(() => this.#state.hasAttribute("data-working") && this.#schedule(), POLL_MS);
    signal.addEventListener("abort", () => clearInterval(poll));
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
    clearTimeout(this.#repeatTimer);
    this.#abort.abort();
  }

  get #state() { return this.querySelector("[data-standing]"); }
  get #status() { return this.querySelector("[data-said]"); }

  #onDrawn({ seq, changesState }) {
    if (seq === this.#seq) return;
    this.#seq = seq;
    this.#schedule({ intervalMs: !changesState && this.#state.hasAttribute("data-working") ? RUN_INTERVAL_MS : STATE_INTERVAL_MS, isForced: false });
  }

  /**
   * Plan a request, no sooner than `intervalMs` after the last one. Unless `isForced`, it is dropped if the state on the
   * page includes the newest event by then.
   */
  #schedule({ intervalMs = 0, isForced = true } = {}) {
    this.#isForced ||= isForced;
    const now = performance.now();
    const dueAt = Math.max(now + DELAY_MS, this.#requestedAt + intervalMs);
    if (document.hidden || (this.#timer && this.#dueAt <= dueAt)) return;
    clearTimeout(this.#timer);
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => this.#refresh(), dueAt - now);
  }

  /** What is requested besides the state: deliveries of messages, prospects of the draft, and the panel if it is outdated. */
  get #query() {
    const sections = document.querySelector("conversation-panel [data-sections]");
    const speaker = document.querySelector("speaker-picker[data-prospects]")?.query;
    const isOfPresent = sections && !document.querySelector("play-head");
    const isRedacted = isOfPresent && this.#redactionCount > this.#panelRedactions; // an older page of a transcript leaves `#seq` as it is
    const isOutdated = sections && this.#seq > Number(sections.dataset.head);
    return [unsettledQuery(), speaker, isOutdated || isRedacted ? "panel=1" : ""].filter(Boolean).join("&");
  }

  async #refresh() {
    this.#timer = 0;
    if (!this.#isForced && Number(this.#state.dataset.head) >= this.#seq) return;
    this.#isForced = false;
    this.#requestedAt = performance.now();
    const [query, redactionCount] = [this.#query, this.#redactionCount];
    const requestNumber = (this.#requestCount += 1);
    try {
      const fresh = render(await markup(`${this.dataset.address}?${query}`, { signal: this.#abort.signal }));
      if (requestNumber < this.#renderedRequest) return; // a later request was answered first
      this.#renderedRequest = requestNumber;
      this.#panelRedactions = redactionCount;
      drawTimes(fresh);
      updatePageTitle(this.querySelector("h1"), fresh.querySelector("h1"));
      for (const part of PARTS) morph(this.querySelector(part), fresh.querySelector(part));
      this.#repeat(placeDeliveries(fresh.querySelector("[data-deliveries]")));
      document.dispatchEvent(new CustomEvent("standing:drawn", { detail: { fresh, query } }));
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error;
      if (error.isTemporary) this.#repeat(RETRY_MS);
    }
  }

  #repeat(afterMs) {
    clearTimeout(this.#repeatTimer);
    if (afterMs && this.isConnected) this.#repeatTimer = setTimeout(() => this.#schedule(), afterMs);
  }

  #submit(event) {
    if (event.target.method !== "post" || !event.submitter) return;
    event.preventDefault();
    this.querySelector("[popover]:popover-open")?.hidePopover();
    this.#send(event.target.getAttribute("action"), event.submitter);
  }

  async #send(address, button) {
    if (this.#isSending) return;
    const action = button.value; // now: a refresh may turn the button into another one
    const reason = button.dataset.asks ? await askReason(this.querySelector("dialog"), button) : "";
    if (reason === null) return;
    this.#isSending = true;
    try {
      await json(address, { body: { action, reason } });
      this.#status.textContent = "";
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      noteFailure(this.#status, error);
    } finally {
      this.#isSending = false;
      this.#schedule();
    }
  }
}

/** Replace the conversation's name in the page's title if it has changed, as by a redaction. */
const updatePageTitle = ({ textContent: before }, { textContent: now }) => {
  if (now !== before) document.title = document.title.replace(before, () => now);
};

customElements.define("conversation-control", ConversationControl);
