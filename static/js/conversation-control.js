/**
 * `<conversation-control data-address>`: the head of a conversation. It sends a verb, and asks how the conversation stands
 * as events come: one question for all parts of the page that no frame draws, a few a run however many events it has. While
 * an agent works it asks also now and then, since what is stuck tells nothing. Tells `standing:drawn` {fresh, query}.
 */
import { drawTimes } from "./clock.js";
import { place, unsettled } from "./deliveries.js";
import { RequestError, json, markup } from "./fetch.js";
import { render } from "./html.js";
import { onKey } from "./keys.js";
import { morph } from "./morph.js";
import { askReason } from "./reason-dialog.js";

const SOON_MS = 300; // between an event or a deed and asking
const GAP_MS = 2_000; // between two questions while the conversation's state changes
const CALM_MS = 10_000; // between two questions while only the work of a run goes on
const RETRY_MS = 2_000; // after a look that failed: no event may come for what it would have told
const WATCH_MS = 15_000; // while an agent works
const KEYS = { p: "p", t: "t", s: "s", S: "Shift+S" }; // pressed, and as the buttons have it
const PARTS = ["[data-standing]", '[data-verbs="first"]', '[data-verbs="folded"]', "[data-alarm]"]; // what is drawn anew

class ConversationControl extends HTMLElement {
  #stop;
  #timer = 0;
  #due = 0; // when it asks, in ms of the page's clock
  #isSure = false; // whether it asks although no event came
  #askedAt = -Infinity;
  #asked = 0; // how often
  #answered = 0; // the newest question whose answer is drawn
  #again = 0; // the timer of what no event tells
  #seq = Number(document.querySelector("live-transcript, [data-part]")?.dataset.head ?? 0);
  #isSending = false;

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.addEventListener("submit", (event) => this.#submit(event), { signal });
    document.addEventListener("transcript:drawn", ({ detail }) => this.#drawn(detail), { signal });
    document.addEventListener("visibilitychange", () => this.#plan(), { signal });
    for (const [key, shown] of Object.entries(KEYS)) signal.addEventListener("abort", onKey(key, () => this.querySelector(`[aria-keyshortcuts="${shown}"]`)?.click()));
    const watch = setInterval(() => this.#part.hasAttribute("data-working") && this.#plan(), WATCH_MS);
    signal.addEventListener("abort", () => clearInterval(watch));
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
    clearTimeout(this.#again);
    this.#stop.abort();
  }

  get #part() { return this.querySelector("[data-standing]"); }

  #drawn({ seq, changesState }) {
    if (seq === this.#seq) return;
    this.#seq = seq;
    this.#plan({ gapMs: changesState ? GAP_MS : CALM_MS, isSure: false });
  }

  /** Ask soon, unless it was asked less than `gapMs` ago: then when they are over. Not `isSure`: if what is drawn is older by then. */
  #plan({ gapMs = 0, isSure = true } = {}) {
    this.#isSure ||= isSure;
    const now = performance.now();
    const due = Math.max(now + SOON_MS, this.#askedAt + gapMs);
    if (document.hidden || (this.#timer && this.#due <= due)) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => this.#look(), due - now);
  }

  /** What is asked: how it stands, what became of messages, of the words that are being written, and the panel where it is old. */
  get #query() {
    const sections = document.querySelector("conversation-panel [data-sections]");
    const speaker = document.querySelector("speaker-picker[data-prospects]")?.query;
    const isStale = sections && this.#seq > Number(sections.dataset.head);
    return [unsettled(), speaker, isStale ? "panel=1" : ""].filter(Boolean).join("&");
  }

  async #look() {
    this.#timer = 0;
    if (!this.#isSure && Number(this.#part.dataset.head) >= this.#seq) return;
    this.#isSure = false;
    this.#askedAt = performance.now();
    const query = this.#query;
    const number = (this.#asked += 1);
    try {
      const fresh = render(await markup(`${this.dataset.address}?${query}`, { signal: this.#stop.signal }));
      if (number < this.#answered) return;
      this.#answered = number;
      drawTimes(fresh);
      for (const part of PARTS) morph(this.querySelector(part), fresh.querySelector(part));
      this.#lookAgain(place(fresh.querySelector("[data-deliveries]")));
      document.dispatchEvent(new CustomEvent("standing:drawn", { detail: { fresh, query } }));
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error;
      this.#lookAgain(RETRY_MS);
    }
  }

  #lookAgain(afterMs) {
    clearTimeout(this.#again);
    if (afterMs && this.isConnected) this.#again = setTimeout(() => this.#plan(), afterMs);
  }

  #submit(event) {
    if (event.target.method !== "post" || !event.submitter) return;
    event.preventDefault();
    this.querySelector("[popover]:popover-open")?.hidePopover();
    this.#send(event.target.getAttribute("action"), event.submitter);
  }

  async #send(address, button) {
    if (this.#isSending) return;
    const reason = button.dataset.asks ? await askReason(this.querySelector("dialog"), button) : "";
    if (reason === null) return;
    this.#isSending = true;
    try {
      await json(address, { body: { action: button.value, reason } });
      this.#say("");
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#say(`Not done. ${error.sentence}`);
    } finally {
      this.#isSending = false;
      this.#plan();
    }
  }

  #say(words) {
    this.querySelector("[data-said]").textContent = words;
  }
}
customElements.define("conversation-control", ConversationControl);
