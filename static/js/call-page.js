/**
 * One call's page. `<call-outcome data-src data-call data-conversation data-after>` draws its part anew when the call goes on:
 * at each event of its conversation that names it, and until it is over at those about runs and approvals. `r` goes to the form that makes it again.
 */
import "./copy-field.js";
import "./json-copy.js";
import { RequestError, markup } from "./fetch.js";
import { onKey } from "./keys.js";
import { redraw } from "./redraw.js";
import { socket } from "./socket.js";

const ENDS = /^run\.|^approval\./; // they may end a call without naming it

class CallOutcome extends HTMLElement {
  #leave;
  #keys;
  #isAsking = false;
  #isAsked = false;

  connectedCallback() {
    const { conversation, after } = this.dataset;
    const take = ({ events }) => events.some((event) => this.#concerns(event)) && this.#renew();
    this.#leave = socket.subscribe(`stream:${conversation}`, { after: Number(after) }, { events: take });
    this.#keys = onKey("r", () => document.querySelector("#replay")?.querySelector("summary, input, button")?.focus());
  }

  disconnectedCallback() {
    this.#leave();
    this.#keys();
  }

  #concerns({ kind, body }) {
    const names = [body?.tool_call, body?.replay_of];
    return names.includes(this.dataset.call) || (ENDS.test(kind) && !this.querySelector("[data-is-over]"));
  }

  async #renew() {
    this.#isAsked = true;
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      while (this.#isAsked) {
        this.#isAsked = false;
        redraw(this, await markup(this.dataset.src));
      }
    } catch (error) {
      if (!(error instanceof RequestError)) throw error; // the next event asks again
    } finally {
      this.#isAsking = false;
    }
  }
}

customElements.define("call-outcome", CallOutcome);
