/**
 * Keeps a part of a conversation's page fresh that is drawn anew as a whole: `[data-part data-head]` within an element with
 * `data-topic` and `data-epoch`; with `data-at` it follows the playhead instead, by `at=` in `data-src`. Tells, from the element, what `live-transcript` tells of the record.
 */
import { ConnectionReport } from "./connection-report.js";
import { RequestError } from "./fetch.js";
import { followPlayhead } from "./playhead-follow.js";
import { socket } from "./socket.js";
import { changeState } from "./state-events.js";

const PAUSE_MS = 1_000; // between two drawings while events come, or as long as the last one took, times BUSY
const BUSY = 4;

export class LivePart {
  #element;
  #renew;
  #report;
  #unsubscribe;
  #seq; // the newest event we were told of
  #timer = 0;
  #tookMs = 0;
  #isStale = false; // history is another one: whatever is drawn has to go
  #onVisible = () => this.#plan();

  /** @param {HTMLElement} element @param {() => Promise<void>} renew  asks for the part and draws it */
  constructor(element, renew) {
    this.#element = element;
    this.#renew = renew;
    this.#report = new ConnectionReport((name, detail) => this.#tell(name, detail));
    this.#seq = this.#head;
    document.addEventListener("visibilitychange", this.#onVisible);
    this.#unsubscribe = element.dataset.at ? followPlayhead(element, "src", renew) : this.#subscribe(element.dataset);
  }

  #subscribe({ topic, epoch }) {
    return socket.subscribe(topic, { after: this.#seq, epoch }, {
      events: ({ events }) => this.#heard(events),
      caughtUp: ({ seq }) => this.#report.caughtUp(seq),
      presence: ({ people }) => this.#tell("transcript:presence", { people }),
      reset: () => this.#reset(),
      down: () => this.#report.down(this.#seq),
      up: () => this.#report.up(this.#seq),
      error: (frame) => this.#report.error(frame),
    });
  }

  close() {
    this.#unsubscribe();
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.#onVisible);
  }

  get #head() {
    return Number(this.#element.querySelector("[data-part]").dataset.head);
  }

  #heard(events) {
    for (const event of events) this.#report.applied(event);
    this.#seq = events.at(-1).seq;
    this.#tell("transcript:drawn", { count: 0, names: [], seq: this.#seq, changesState: changeState(events) });
    this.#plan();
  }

  #reset() {
    [this.#seq, this.#isStale] = [0, true];
    this.#plan();
  }

  #plan() {
    const isBehind = this.#seq > this.#head || this.#isStale;
    if (isBehind && !document.hidden) this.#timer ||= setTimeout(() => this.#draw(), Math.max(PAUSE_MS, this.#tookMs * BUSY));
  }

  async #draw() {
    const began = performance.now();
    const wasStale = this.#isStale;
    this.#isStale = false; // unless history becomes another one while it is drawn
    try {
      await this.#renew();
      if (wasStale) this.#report.reset();
    } catch (error) {
      this.#isStale ||= wasStale;
      if (!(error instanceof RequestError)) throw error; // the server is away: it is asked again
    }
    this.#tookMs = performance.now() - began;
    this.#timer = 0;
    if (this.#element.isConnected) this.#plan();
  }

  #tell(name, detail) {
    this.#element.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
  }
}
