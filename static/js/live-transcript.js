/** The transcript of one conversation, live: frames in, rows and text out. The pages around it are `transcript-pages`'. */
import { ConnectionReport } from "./connection-report.js";
import { DrawQueue } from "./draw-queue.js";
import { gapNotice } from "./gap-notice.js";
import { LiveText } from "./live-text.js";
import { UnreadCounter } from "./unread-counter.js";
import { socket } from "./socket.js";
import { changeState } from "./state-events.js";
import { TranscriptPages } from "./transcript-pages.js";
import { TranscriptRows } from "./transcript-rows.js";

const RETRY = 2000; // ms

/**
 * `data-topic`, `data-head` (drawn up to this seq), `data-epoch`, `data-render` (`lanes`; left out: the transcript), `data-has-newer` when the page is not the newest one, `data-at` when it is of the past.
 * Tells, bubbling: `transcript:drawn` {count, names, seq, changesState}, `transcript:live` {isLive}, `transcript:presence` {people}, and what `ConnectionReport` tells.
 */
class LiveTranscript extends HTMLElement {
  #rows;
  #text = new LiveText();
  #news = new UnreadCounter();
  #report = new ConnectionReport((name, detail) => this.#tell(name, detail));
  #queue;
  #tail;
  #pages;
  #unsubscribe = null;
  #changesState = false; // what is to be drawn may
  #received = 0; // the seq of the last event that came; `data-head` is what was drawn of them

  connectedCallback() {
    this.#tail = this.querySelector("tail-follow");
    const heads = this.querySelector("lane-heads");
    this.#rows = new TranscriptRows(this.querySelector(".transcript"), (drawn) => heads?.place(drawn));
    this.#queue = new DrawQueue((take) => this.#flush(take));
    this.#pages = new TranscriptPages(this, this.#rows, this.#tail);
    this.addEventListener("tail:latest", () => this.latest());
    this.addEventListener("tail:oldest", () => this.oldest());
    this.addEventListener("page:newest", (event) => this.#start(event.detail));
    this.addEventListener("page:left", () => this.#end());
    this.#tail.begin();
    if (!this.hasAttribute("data-has-newer") && !this.dataset.at) this.#subscribe();
  }

  disconnectedCallback() {
    this.#leave();
    this.#queue.close();
    this.#pages.close();
  }

  get isLive() {
    return this.#unsubscribe !== null;
  }

  /** Draw the newest page and follow it, wherever the reader was. */
  async latest() {
    if (this.isLive) return this.#tail.follow();
    if (await this.#pages.newest()) this.#tail.follow();
    return undefined;
  }

  /** Draw the first page, wherever the reader was. */
  async oldest() {
    if (!this.#pages.hasOlder || (await this.#pages.oldest())) this.#tail.top();
  }

  #start({ head, epoch }) {
    Object.assign(this.dataset, { head, epoch });
    this.#text.clear();
    this.#leave();
    this.#subscribe();
  }

  #subscribe() {
    const { topic, head, epoch, render = "html" } = this.dataset;
    this.#received = Number(head);
    this.#unsubscribe = socket.subscribe(topic, { after: Number(head), epoch, render }, {
      events: (frame) => this.#receive(frame.events),
      gap: (frame) => this.#receive([{ ...frame, kind: "gap", seq: frame.to }]),
      caughtUp: (frame) => this.#queue.push([{ kind: "caught_up", seq: frame.seq }]),
      presence: ({ people }) => this.#tell("transcript:presence", { people }),
      reset: () => this.#reset(),
      down: () => this.#report.down(Number(this.dataset.head)),
      up: () => this.#report.up(this.#received),
      error: (frame) => this.#report.error(frame),
    });
    this.#tell("transcript:live", { isLive: true });
  }

  #receive(events) {
    this.#received = events.at(-1).seq;
    this.#changesState ||= changeState(events);
    this.#queue.push(events);
  }

  #leave() {
    this.#unsubscribe = void this.#unsubscribe?.() ?? null;
    this.#queue.clear();
  }

  async #reset(isRestored = true) {
    this.#leave();
    while (this.isConnected && !(await this.#pages.newest())) await new Promise((again) => setTimeout(again, RETRY));
    if (isRestored) this.#report.reset();
  }

  #flush(take) {
    this.#tail.hold();
    for (let event = take(); event; event = take()) this.#apply(event);
    this.#text.flush((group) => this.#rows.find(group));
    this.#pages.trim();
    const news = this.#news.take();
    this.#tail.settle(news);
    this.#tell("transcript:drawn", { ...news, seq: Number(this.dataset.head), changesState: this.#changesState });
    this.#changesState = false;
  }

  #apply(event) {
    if (event.kind === "caught_up") return this.#report.caughtUp(event.seq);
    if (event.kind === "event.redacted") return void this.#reset(false); // what it names is drawn here as it was
    if (event.kind === "gap") this.#rows.append(gapNotice(event));
    else if (event.html !== undefined) this.#drawn(event);
    else if (event.text !== undefined) this.#written(event);
    for (const { group, html } of event.also ?? []) if (this.#rows.find(group)) this.#rows.put(html);
    this.dataset.head = event.seq;
    return this.#report.applied(event);
  }

  #drawn({ html, group }) {
    if (group) this.#text.end(group);
    this.#news.add(this.#rows.put(html));
  }

  /** Text without a block belongs to one that was unloaded: its page draws it. `opens` is the block of a new turn. */
  #written({ group, text, opens }) {
    if (opens && !this.#rows.find(group)) this.#news.add(this.#rows.put(opens));
    if (this.#rows.find(group)) this.#text.add(group, text);
  }

  /** The tail is no longer in the page: it is loaded again when the reader comes near. */
  #end() {
    if (!this.isLive) return;
    this.#leave();
    this.#tell("transcript:live", { isLive: false });
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
  }
}
customElements.define("live-transcript", LiveTranscript);
