/** The live transcript of one conversation: turns frames of the socket into rows (`transcript-rows.js`) and text (`live-text.js`). `transcript-pages.js` loads its other pages. */
import { ConnectionReport } from "./connection-report.js";
import { DrawQueue } from "./draw-queue.js";
import { gapNotice } from "./gap-notice.js";
import { LiveText } from "./live-text.js";
import { NewRows } from "./new-rows.js";
import { socket } from "./socket.js";
import { dispatchRedacted } from "./redaction-watch.js";
import { reloadRestored } from "./restored-page.js";
import { changeState } from "./state-events.js";
import { TranscriptPages } from "./transcript-pages.js";
import { TranscriptRows } from "./transcript-rows.js";

/**
 * `<live-transcript>`: `data-topic`, `data-head` (the seq up to which it is rendered), `data-epoch`, `data-render` (`lanes`, or
 * absent for the transcript), `data-has-newer` if this is not the newest page, `data-at` if it shows a moment of the past.
 * Dispatches `transcript:drawn` {count, names, seq, changesState}, `transcript:live`, `transcript:presence` {people}
 * and the events of `ConnectionReport` (all bubble).
 */
class LiveTranscript extends HTMLElement {
  #rows;
  #text = new LiveText();
  #unread = new NewRows();
  #report = new ConnectionReport((name, detail) => this.#dispatch(name, detail));
  #queue;
  #tail;
  #pages;
  #unsubscribe = null;
  #changesState = false; // whether queued events may change the conversation's state
  #receivedSeq = 0; // the seq of the newest event received; `data-head` is the newest one rendered

  connectedCallback() {
    this.#tail = this.querySelector("tail-follow");
    const heads = this.querySelector("lane-heads");
    this.#rows = new TranscriptRows(this.querySelector(".transcript"), (...drawn) => heads?.place(...drawn));
    this.#queue = new DrawQueue((take) => this.#flush(take));
    this.#pages = new TranscriptPages(this, this.#rows, this.#tail);
    for (const end of ["latest", "oldest"]) this.addEventListener(`tail:${end}`, () => this[end]());
    this.addEventListener("page:newest", (event) => this.#followFrom(event.detail));
    this.addEventListener("page:left", () => this.#leaveTail());
    this.#tail.scrollToStart();
    if (!this.hasAttribute("data-has-newer") && !this.dataset.at) this.#subscribe();
  }

  disconnectedCallback() {
    this.#stopFollowing();
    for (const part of [this.#queue, this.#pages, this.#report]) part.close();
  }

  get isSubscribed() { return this.#unsubscribe !== null; }

  /** Show the newest page, from anywhere in the conversation, and follow it. */
  async latest() {
    if (this.isSubscribed || (await this.#pages.showNewest())) this.#tail.follow();
  }

  /** Show the first page, from anywhere in the conversation. */
  async oldest() {
    if (!this.#pages.hasOlder || (await this.#pages.showOldest())) this.#tail.scrollToTop();
  }

  #followFrom({ head, epoch }) {
    Object.assign(this.dataset, { head, epoch });
    this.#text.clear();
    this.#stopFollowing();
    this.#subscribe();
  }

  #subscribe() {
    const { topic, head, epoch, render = "html" } = this.dataset;
    this.#receivedSeq = Number(head);
    this.#unsubscribe = socket.subscribe(topic, { after: Number(head), epoch, render }, {
      events: (frame) => this.#receive(frame.events),
      gap: (frame) => this.#receive([{ ...frame, kind: "gap", seq: frame.to }]),
      caughtUp: (frame) => this.#queue.push([{ kind: "caught_up", seq: frame.seq }]),
      presence: ({ people }) => this.#dispatch("transcript:presence", { people }),
      reset: reloadRestored,
      down: () => this.#report.down(Number(this.dataset.head)),
      up: ({ awayMs }) => this.#report.up(this.#receivedSeq, awayMs),
      error: (frame) => this.#report.error(frame),
    });
    this.#dispatch("transcript:live");
  }

  #receive(events) {
    this.#receivedSeq = events.at(-1).seq;
    this.#changesState ||= changeState(events);
    this.#queue.push(events);
  }

  #stopFollowing() {
    this.#unsubscribe = void this.#unsubscribe?.() ?? null;
    this.#queue.clear();
    this.#report.left();
  }

  async #drawAgain() {
    this.#stopFollowing();
    dispatchRedacted(); // other parts of the page may show the redacted events, too
    await (this.#tail.isFollowing ? this.#pages.reloadNewest() : this.#pages.reloadFromView());
    this.#dispatch("transcript:drawn", { count: 0, names: [], seq: Number(this.dataset.head), changesState: true });
  }

  #flush(take) {
    this.#tail.beforeChange();
    let { head } = this.dataset;
    for (let event = take(); event; event = take()) head = this.#apply(event) ?? head;
    this.dataset.head = head; // once, not for each event: an attribute of an element around all rows
    this.#text.flush((group) => this.#rows.find(group));
    this.#pages.trim();
    const unread = this.#unread.take();
    this.#tail.afterChange(unread);
    this.#dispatch("transcript:drawn", { ...unread, seq: Number(this.dataset.head), changesState: this.#changesState });
    this.#changesState = false;
  }

  /** Returns the event's seq, or undefined if it has none. */
  #apply(event) {
    if (event.kind === "caught_up") return void this.#report.caughtUp(event.seq);
    if (event.kind === "event.redacted") return this.#drawAgain(), event.seq; // the redacted events may be shown here unredacted
    if (event.kind === "gap") this.#rows.append(gapNotice(event));
    else if (event.html !== undefined) this.#drawEvent(event);
    else if (event.text !== undefined) this.#addText(event);
    for (const { group, html } of event.also ?? []) if (this.#rows.find(group)) this.#rows.put(html);
    this.#report.applied(event);
    return event.seq;
  }

  #drawEvent({ html, group }) {
    if (group) this.#text.end(group);
    this.#unread.add(this.#rows.put(html));
  }

  /** Append streamed text to its block; if that was unloaded, its page will have the text. `opens` is the markup of a new turn's block. */
  #addText({ group, text, opens }) {
    if (opens && !this.#rows.find(group)) this.#unread.add(this.#rows.put(opens));
    if (this.#rows.find(group)) this.#text.add(group, text);
  }

  /** Stop following: the tail was unloaded. It is loaded again when the reader scrolls near. */
  #leaveTail() {
    if (!this.isSubscribed) return;
    this.#stopFollowing();
    this.#dispatch("transcript:live");
  }

  #dispatch(name, detail) { this.dispatchEvent(new CustomEvent(name, { bubbles: true, detail })); }
}
customElements.define("live-transcript", LiveTranscript);
