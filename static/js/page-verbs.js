/**
 * `<page-verbs>`: sends what a button within the transcript asks for, without leaving the page. The block that the
 * answer changes comes by the socket, as for everybody; only what went wrong is told beside the button.
 */
import "./by-right.js";
import { RequestError, json } from "./fetch.js";

const SAID = { again: "It runs again.", stopping: "Asked to stop.", answers: "Answered." };
const OVER = ["already_decided", "already_answered", "continued", "cancelled", "expired"]; // the message says who was first, or what came before

class PageVerbs extends HTMLElement {
  connectedCallback() {
    this.addEventListener("submit", (event) => {
      if (!event.submitter) return;
      event.preventDefault();
      this.#send(event.target, event.submitter);
    });
  }

  async #send(form, button) {
    const place = button.closest("by-right");
    const buttons = [...place.querySelectorAll("button")];
    buttons.forEach((one) => (one.disabled = true));
    say(place, "Sending…");
    try {
      await json(...asked(form, button, place));
      say(place, SAID[form.id] ?? "");
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      say(place, OVER.includes(error.code) ? sentence(error.message) : `Not done. ${error.message}`);
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
  if (form.id === "answers") {
    const body = { output: place.querySelector("textarea").value, reason: place.querySelector("input").value };
    return [`${address}${encodeURIComponent(button.value)}/answer`, { body }];
  }
  const [decision, approval] = button.value.split(":");
  const message = place.querySelector("input").value;
  return [`${address}${encodeURIComponent(approval)}/decision`, { body: { decision, message } }];
};

/** A principal stays as it is written. */
const sentence = (words) => (/^\w+:/.test(words) ? words : words.charAt(0).toUpperCase() + words.slice(1));

const say = (place, words) => (place.querySelector("[data-said]").textContent = words);

customElements.define("page-verbs", PageVerbs);
