/**
 * `<inline-actions>`: sends the actions of buttons within the transcript without leaving the page. The changed block then
 * arrives over the socket, as for everybody; beside the button stands only whether the request was accepted.
 */
import { noteFailure } from "./failure-note.js";
import { RequestError, json } from "./fetch.js";

const CONFIRMATIONS = { again: "Running again.", stopping: "Stop requested.", answers: "Output sent." };
const SUPERSEDED = ["already_answered", "already_run_again", "continued"]; // error codes whose messages say who, or what, came first

class InlineActions extends HTMLElement {
  #sending = new WeakSet(); // the gates of buttons whose request is under way: they are not disabled, which would lose the focus

  connectedCallback() {
    this.addEventListener("submit", (event) => {
      if (!event.submitter) return;
      event.preventDefault();
      this.#send(event.target, event.submitter);
    });
  }

  async #send(form, button) {
    const container = button.closest("permission-gate");
    if (this.#sending.has(container)) return;
    this.#sending.add(container);
    statusOf(container).textContent = "Sending…";
    try {
      await json(...requestOf(form, button, container));
      statusOf(container).textContent = CONFIRMATIONS[form.id];
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      noteFailure(statusOf(container), error, SUPERSEDED.includes(error.code) ? { text: error.sentence } : {});
    } finally {
      this.#sending.delete(container);
    }
  }
}

/** Returns the address and the options of a button's request, as `json` takes them. */
const requestOf = (form, button, container) => {
  const { address } = form.dataset;
  const resource = { again: "again", stopping: "cancellation" }[form.id];
  if (resource) return [`${address}${encodeURIComponent(button.value)}/${resource}`, { method: "POST" }];
  const body = { output: container.querySelector("textarea").value, reason: container.querySelector("input").value };
  return [`${address}${encodeURIComponent(button.value)}/answer`, { body }];
};

const statusOf = (container) => container.querySelector("[data-said]");

customElements.define("inline-actions", InlineActions);
