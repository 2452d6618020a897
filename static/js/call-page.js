/**
 * The page of one tool call. `<call-outcome data-src data-call data-conversation data-after>` refreshes the call's outcome
 * on each event of its conversation that names the call and, until the call is over, on each about runs and approvals.
 * `r` moves the focus to the replay form.
 */
import "./copy-field.js";
import "./json-copy.js";
import { RequestError, markup } from "./fetch.js";
import { onKey } from "./keys.js";
import { redraw } from "./redraw.js";
import { socket } from "./socket.js";

const MAY_END_CALL = /^run\.|^approval\./; // these may end a call without naming it

class CallOutcome extends HTMLElement {
  #unsubscribe;
  #removeKey;
  #isFetching = false;
  #isStale = false;

  connectedCallback() {
    const { conversation, after } = this.dataset;
    const onEvents = ({ events }) => events.some((event) => this.#concerns(event)) && this.#refresh();
    this.#unsubscribe = socket.subscribe(`stream:${conversation}`, { after: Number(after) }, { events: onEvents });
    this.#removeKey = onKey("r", () => document.querySelector("#replay")?.querySelector("summary, input, button")?.focus());
  }

  disconnectedCallback() {
    this.#unsubscribe();
    this.#removeKey();
  }

  #concerns({ kind, body }) {
    const callIds = [body?.tool_call, body?.replay_of];
    return callIds.includes(this.dataset.call) || (MAY_END_CALL.test(kind) && !this.querySelector("[data-is-over]"));
  }

  async #refresh() {
    this.#isStale = true;
    if (this.#isFetching) return;
    this.#isFetching = true;
    try {
      while (this.#isStale) {
        this.#isStale = false;
        redraw(this, await markup(this.dataset.src));
      }
    } catch (error) {
      if (!(error instanceof RequestError)) throw error; // the next event tries again
    } finally {
      this.#isFetching = false;
    }
  }
}

customElements.define("call-outcome", CallOutcome);
