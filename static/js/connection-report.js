/** What became of a transcript's connection, told by what was really applied. Used by `live-transcript`. */
import { ReconnectCounter } from "./reconnect-counter.js";

/**
 * Tells `connection:down` {seq}, `connection:restored` {count, first, last, isWhole}, `connection:gap` {from, to, reason},
 * `connection:reset`, `connection:error` {code, message}.
 */
export class ConnectionReport {
  #restored = new ReconnectCounter();
  #tell;

  /** @param {(name: string, detail: object) => void} tell */
  constructor(tell) {
    this.#tell = tell;
  }

  /** @param {number} seq drawn so far */
  down(seq) {
    this.#restored.end();
    this.#tell("connection:down", { seq });
  }

  /** @param {number} seq received before it went */
  up(seq) {
    this.#restored.begin(seq);
  }

  /** One event is in the page. */
  applied(event) {
    this.#restored.count(event);
    if (event.kind === "gap") this.#tell("connection:gap", { from: event.from, to: event.to, reason: event.reason });
  }

  /** Everything up to `seq` is in the page. */
  caughtUp(seq) {
    const restored = this.#restored.finish(seq);
    if (restored) this.#tell("connection:restored", restored);
  }

  /** History is another one, and the page was drawn anew. */
  reset() {
    this.#restored.end();
    this.#tell("connection:reset", {});
  }

  error({ code, message }) {
    this.#tell("connection:error", { code, message });
  }
}
