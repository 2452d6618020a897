/**
 * Keeps a part of a conversation's page up to date by rendering it again as a whole: `[data-part data-head]` in an element
 * with `data-topic` and `data-epoch`. With `data-at` it follows the playhead instead, by `at=` in `data-src`. Dispatches from
 * the element `transcript:drawn`, `transcript:presence` and the events of `ConnectionReport`, as `live-transcript` does (all
 * bubble).
 */
import { ConnectionReport } from "./connection-report.js";
import { RequestError } from "./fetch.js";
import { followPlayhead } from "./playhead-follow.js";
import { dispatchRedacted, includesRedaction } from "./redaction-watch.js";
import { reloadRestored } from "./restored-page.js";
import { socket } from "./socket.js";
import { changeState } from "./state-events.js";

const PAUSE_MS = 1_000; // between two renderings while events arrive; at least MIN_PAUSE_FACTOR times the duration of the last one
const MIN_PAUSE_FACTOR = 4;

export class LivePart {
  #element;
  #renew;
  #report;
  #unsubscribe;
  #receivedSeq; // of the newest event received
  #timer = 0;
  #tookMs = 0;
  #onVisible = () => this.#schedule();

  /** @param {HTMLElement} element @param {() => Promise<void>} renew  fetches and renders the part */
  constructor(element, renew) {
    this.#element = element;
    this.#renew = renew;
    this.#report = new ConnectionReport((name, detail) => this.#dispatch(name, detail));
    this.#receivedSeq = this.#renderedSeq;
    document.addEventListener("visibilitychange", this.#onVisible);
    this.#unsubscribe = element.dataset.at ? followPlayhead(element, "src", renew) : this.#subscribe(element.dataset);
  }

  #subscribe({ topic, epoch }) {
    return socket.subscribe(topic, { after: this.#receivedSeq, epoch }, {
      events: ({ events }) => this.#receive(events),
      caughtUp: ({ seq }) => this.#report.caughtUp(seq),
      presence: ({ people }) => this.#dispatch("transcript:presence", { people }),
      reset: reloadRestored,
      down: () => this.#report.down(this.#receivedSeq),
      up: ({ awayMs }) => this.#report.up(this.#receivedSeq, awayMs),
      error: (frame) => this.#report.error(frame),
    });
  }

  close() {
    this.#unsubscribe();
    this.#report.close();
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.#onVisible);
  }

  get #renderedSeq() {
    return Number(this.#element.querySelector("[data-part]").dataset.head);
  }

  #receive(events) {
    for (const event of events) this.#report.applied(event);
    this.#receivedSeq = events.at(-1).seq;
    if (includesRedaction(events)) dispatchRedacted();
    this.#dispatch("transcript:drawn", { count: 0, names: [], seq: this.#receivedSeq, changesState: changeState(events) });
    this.#schedule();
  }

  #schedule() {
    if (this.#element.dataset.at) return; // rendered when the playhead moves
    if (this.#receivedSeq > this.#renderedSeq && !document.hidden) this.#timer ||= setTimeout(() => this.#render(), Math.max(PAUSE_MS, this.#tookMs * MIN_PAUSE_FACTOR));
  }

  async #render() {
    const startedAt = performance.now();
    let isRefused = false;
    try {
      await this.#renew();
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      isRefused = !error.isTemporary;
    }
    this.#tookMs = performance.now() - startedAt;
    this.#timer = 0;
    if (this.#element.isConnected && !isRefused) this.#schedule();
  }

  #dispatch(name, detail) {
    this.#element.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
  }
}
