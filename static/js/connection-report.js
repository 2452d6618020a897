/**
 * Reports the state of a conversation's connection as `connection:*` events; counts only events that were applied to the
 * page. Used by `live-transcript` and `live-part`.
 */
import { ReconnectCounter } from "./reconnect-counter.js";

/**
 * Dispatches `connection:down` {seq}, `connection:restored` {count, first, last, isWhole}, `connection:gap` {from, to, reason},
 * `connection:reset`, `connection:error` {code, message}.
 */
export class ConnectionReport {
  #restored = new ReconnectCounter();
  #dispatch;

  /** @param {(name: string, detail: object) => void} dispatch */
  constructor(dispatch) {
    this.#dispatch = dispatch;
  }

  /** The connection is lost. @param {number} seq of the last event in the page */
  down(seq) {
    this.#restored.end();
    this.#dispatch("connection:down", { seq });
  }

  /** The connection is back. @param {number} seq of the last event received before it was lost */
  up(seq) {
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
    if (restored) this.#dispatch("connection:restored", restored);
  }

  /** The record has another history (a new epoch), and the page was rendered again. */
  reset() {
    this.#restored.end();
    this.#dispatch("connection:reset", {});
  }

  error({ code, message }) {
    this.#dispatch("connection:error", { code, message });
  }
}
