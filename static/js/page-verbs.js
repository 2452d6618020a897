/**
 * `<page-verbs>`: sends what a button within the transcript asks for, without leaving the page. The block that the
 * answer changes comes by the socket, as for everybody; only what went wrong is told beside the button.
 */
import "./by-right.js";
import { RequestError, json } from "./fetch.js";

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
      say(place, form.id === "again" ? "It runs again." : "");
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      say(place, error.code === "already_decided" ? error.message : `Not done. ${error.message}`);
    } finally {
      buttons.forEach((one) => (one.disabled = false));
    }
  }
}

/** The address and the body of what a button asks for. */
const asked = (form, button, place) => {
  const { address } = form.dataset;
  if (form.id === "again") return [`${address}${encodeURIComponent(button.value)}/again`, { method: "POST" }];
  const [decision, approval] = button.value.split(":");
  const message = place.querySelector("input").value;
  return [`${address}${encodeURIComponent(approval)}/decision`, { body: { decision, message } }];
};

const say = (place, words) => (place.querySelector("[data-said]").textContent = words);

customElements.define("page-verbs", PageVerbs);
