/**
 * `<conversation-control data-address>`: the head of a conversation. It sends a verb and asks how the conversation stands
 * whenever events came, and with it what became of people's messages; while an agent works also now and then, since what
 * is stuck tells nothing.
 */
import { drawTimes } from "./clock.js";
import { place, unsettled } from "./deliveries.js";
import { RequestError, json, markup } from "./fetch.js";
import { render } from "./html.js";
import { onKey } from "./keys.js";
import { morph } from "./morph.js";
import { askReason } from "./reason-dialog.js";

const PAUSE_MS = 300; // between an event and asking
const RETRY_MS = 2_000; // after a look that failed: no event may come for what it would have told
const WATCH_MS = 15_000; // while an agent works
const KEYS = { p: "p", t: "t", s: "s", S: "Shift+S" }; // pressed, and as the buttons have it
const PARTS = ["[data-standing]", '[data-verbs="first"]', '[data-verbs="folded"]', "[data-alarm]"]; // what is drawn anew

class ConversationControl extends HTMLElement {
  #stop;
  #timer = 0;
  #again = 0; // the timer of what no event tells
  #seq = 0;
  #isSending = false;

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.addEventListener("submit", (event) => this.#submit(event), { signal });
    document.addEventListener("transcript:drawn", ({ detail }) => detail.seq !== this.#seq && ((this.#seq = detail.seq), this.#plan()), { signal });
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

  #plan() {
    if (!document.hidden) this.#timer ||= setTimeout(() => this.#look(), PAUSE_MS);
  }

  async #look() {
    this.#timer = 0;
    try {
      const fresh = render(await markup(`${this.dataset.address}?${unsettled()}`, { signal: this.#stop.signal }));
      drawTimes(fresh);
      for (const part of PARTS) morph(this.querySelector(part), fresh.querySelector(part));
      this.#lookAgain(place(fresh.querySelector("[data-deliveries]")));
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
