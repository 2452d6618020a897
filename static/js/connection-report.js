/**
 * Reports the state of a conversation's connection as `connection:*` events; counts only events that were applied to the
 * page.
 */
import { ReconnectCounter } from "./reconnect-counter.js";
import { socket } from "./socket.js";

/**
 * Dispatches `connection:down` {seq}, `connection:restored` {count, first, last, isWhole, awayMs}, `connection:gap` {from, to, reason},
 * `connection:error` {code, message}; `connection:ended` {isLive} where a loss ended and nothing is counted:
 * the page follows nothing, or the server refuses it.
 */
export class ConnectionReport {
  #restored = new ReconnectCounter();
  #dispatch;
  #isDown = false; // reported, and its end not yet
  #awayMs = 0; // how long the connection was lost, also if its loss was not reported here
  #onState = () => queueMicrotask(() => this.#endUncounted()); // after the subscriptions have heard of it

  /** @param {(name: string, detail: object) => void} dispatch */
  constructor(dispatch) {
    this.#dispatch = dispatch;
    socket.addEventListener("state", this.#onState);
  }

  close() {
    socket.removeEventListener("state", this.#onState);
  }

  /** The connection is lost. @param {number} seq of the last event in the page */
  down(seq) {
    this.#isDown = true;
    this.#restored.end();
    this.#dispatch("connection:down", { seq });
  }

  /** The connection is back. @param {number} seq of the last event received before it was lost @param {number} awayMs */
  up(seq, awayMs) {
    this.#awayMs = awayMs;
    this.#restored.begin(seq);
  }

  /** One event, or gap, was applied to the page. */
  applied(event) {
    this.#restored.count(event);
    if (event.kind === "gap") this.#dispatch("connection:gap", { from: event.from, to: event.to, reason: event.reason });
  }

  /** Every event up to `seq` was applied. */
  caughtUp(seq) {
    const restored = this.#restored.finish(seq);
    if (!restored) return;
    this.#isDown = false;
    this.#dispatch("connection:restored", { ...restored, awayMs: this.#awayMs });
  }

  /** The page follows no longer, or from another event on: what was being counted is not finished. */
  left() {
    this.#restored.end();
    this.#endUncounted();
  }

  error({ code, message }) {
    this.#dispatch("connection:error", { code, message });
  }

  #endUncounted() {
    const isLive = socket.state === "live";
    if (!this.#isDown || this.#restored.isCounting || !(isLive || socket.isClosedForGood)) return;
    this.#isDown = false;
    this.#dispatch("connection:ended", { isLive });
  }
}
