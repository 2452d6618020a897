/**
 * The page of one tool call. `<call-outcome data-src data-call data-conversation data-after>` refreshes the call's outcome
 * on each event of its conversation that names the call and, until the call is over, on each that may end it without naming
 * it; after a redaction the page is loaded again. `r` moves the focus to the replay form.
 */
import "./copy-field.js";
import "./json-copy.js";
import { RequestError, markup } from "./fetch.js";
import { onKey } from "./keys.js";
import { includesRedaction } from "./redaction-watch.js";
import { redraw } from "./redraw.js";
import { socket } from "./socket.js";

const RETRY_MS = 2_000; // after a failed fetch: no later event may concern the call

/** Whether an event may end a call without naming it. External agents do not know the ids of calls here. */
const mayEndCall = ({ kind, body }) => /^run\.|^approval\./.test(kind) || (kind === "tool_step" && !body?.tool_call && body?.status !== "start");

class CallOutcome extends HTMLElement {
  #unsubscribe;
  #removeKey;
  #isFetching = false;
  #isStale = false;
  #retryTimer = 0;

  connectedCallback() {
    const { conversation, after } = this.dataset;
    this.#unsubscribe = socket.subscribe(`stream:${conversation}`, { after: Number(after) }, { events: ({ events }) => this.#receive(events), reset: () => location.reload() });
    this.#removeKey = onKey("r", () => document.querySelector("#replay")?.querySelector("summary, input, button")?.focus());
  }

  disconnectedCallback() {
    this.#unsubscribe();
    this.#removeKey();
    clearTimeout(this.#retryTimer);
  }

  /** A redaction names no call: the whole page may show what was redacted, the arguments in the replay form included. */
  #receive(events) {
    if (includesRedaction(events)) location.reload();
    else if (events.some((event) => this.#concerns(event))) this.#refresh();
  }

  #concerns(event) {
    const callIds = [event.body?.tool_call, event.body?.replay_of];
    return callIds.includes(this.dataset.call) || (mayEndCall(event) && !this.querySelector("[data-is-over]"));
  }

  async #refresh() {
    this.#isStale = true;
    clearTimeout(this.#retryTimer);
    if (this.#isFetching) return;
    this.#isFetching = true;
    try {
      while (this.#isStale) {
        this.#isStale = false;
        redraw(this, await markup(this.dataset.src));
      }
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      if (error.isTemporary && this.isConnected) this.#retryTimer = setTimeout(() => this.#refresh(), RETRY_MS);
    } finally {
      this.#isFetching = false;
    }
  }
}

customElements.define("call-outcome", CallOutcome);
