/**
 * `<inline-actions>`: sends what a button within the transcript asks for, without leaving the page. The block that the
 * answer changes comes by the socket, as for everybody; only what went wrong is told beside the button.
 */
import { RequestError, json } from "./fetch.js";

const SAID = { again: "Running again.", stopping: "Stop requested.", answers: "Output sent." };
const OVER = ["already_answered", "continued"]; // the message says who was first, or what came before

class InlineActions extends HTMLElement {
  connectedCallback() {
    this.addEventListener("submit", (event) => {
      if (!event.submitter) return;
      event.preventDefault();
      this.#send(event.target, event.submitter);
    });
  }

  async #send(form, button) {
    const place = button.closest("permission-gate");
    const buttons = [...place.querySelectorAll("button")];
    buttons.forEach((one) => (one.disabled = true));
    say(place, "Sending…");
    try {
      await json(...asked(form, button, place));
      say(place, SAID[form.id]);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      say(place, OVER.includes(error.code) ? error.sentence : `Not done. ${error.sentence}`);
    } finally {
      buttons.forEach((one) => (one.disabled = false));
    }
  }
}

/** The address and the body of what a button asks for. */
const asked = (form, button, place) => {
  const { address } = form.dataset;
  const verb = { again: "again", stopping: "cancellation" }[form.id];
  if (verb) return [`${address}${encodeURIComponent(button.value)}/${verb}`, { method: "POST" }];
  const body = { output: place.querySelector("textarea").value, reason: place.querySelector("input").value };
  return [`${address}${encodeURIComponent(button.value)}/answer`, { body }];
};

const say = (place, words) => (place.querySelector("[data-said]").textContent = words);

customElements.define("inline-actions", InlineActions);
