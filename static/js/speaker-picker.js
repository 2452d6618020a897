/**
 * `<speaker-picker data-prospects>`: the fields for a message's sender and recipient. A reason is required unless people send
 * as themselves. Before the message is sent, a line says what will happen to it. Without scripts the fields are the same.
 */
import { RequestError, json } from "./fetch.js";
import { onKey } from "./keys.js";

const PAUSE_MS = 200; // from the last change until the server is asked what will happen to the message

class SpeakerPicker extends HTMLElement {
  #stop;
  #timer = 0;

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.addEventListener("input", () => this.#update(), { signal });
    if (!this.dataset.prospects) return;
    document.addEventListener("standing:drawn", ({ detail }) => this.#receive(detail), { signal });
    for (const [key, name] of [["m", "content"], ["M", "as"]]) {
      signal.addEventListener("abort", onKey(key, (event) => (event.preventDefault(), this.closest("message-composer").unfold(), this.#fields[name]?.focus())));
    }
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
    this.#stop.abort();
  }

  get #fields() {
    return this.closest("form").elements;
  }

  /** The fields' values, which are kept in a draft and restored from it. */
  get chosen() {
    const { as, as_name: name, reason } = this.#fields;
    return as ? { as: as.value, name: name.value, reason: reason.value } : {};
  }

  set chosen({ as = "", name = "", reason = "" }) {
    if (!this.#fields.as || ![...this.#fields.as.options].some(({ value }) => value === as)) return;
    Object.assign(this.#fields.as, { value: as });
    this.#fields.as_name.value = name;
    this.#fields.reason.value = reason;
    this.#update();
  }

  /** The properties of the message for the API. */
  get payload() {
    const { as = "", name = "", reason = "" } = this.chosen;
    const when = this.#fields.when?.value === "next_step" ? { when: "next_step" } : {};
    if (!as) return when;
    return { ...when, sender: as === "other" ? `agent:${name.trim().replace(/^agent:/u, "")}` : as, reason: reason.trim() };
  }

  /** The query string that asks what will happen to the message. Also used by `conversation-control`. */
  get query() {
    return new URLSearchParams({ as: this.payload.sender ?? "", to: this.#fields.to.value.trim(), when: this.#fields.when.value }).toString();
  }

  /** Show the answer that comes with the conversation's state, unless the fields have changed since the request. */
  #receive({ fresh, query }) {
    const answer = fresh.querySelector("[data-prospect-answer]");
    if (answer && query.includes(this.query)) this.#show({ words: answer.textContent, at_work: answer.dataset.atWork });
  }

  #update() {
    const { as, as_name: name, reason } = this.#fields;
    if (as) {
      reason.required = as.value !== "";
      name.required = as.value === "other";
    }
    this.#scheduleFetch();
  }

  #scheduleFetch() {
    if (!this.dataset.prospects) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fetch(), PAUSE_MS);
  }

  async #fetch() {
    const { query } = this;
    try {
      const prospect = await json(`${this.dataset.prospects}?${query}`, { signal: this.#stop.signal });
      if (query === this.query) this.#show(prospect);
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error;
      if (error instanceof RequestError && query === this.query) this.#showFailure(error);
    }
  }

  /** Replace the line: it is about a message with other fields. */
  #showFailure(error) {
    const isAtWork = !this.querySelector("[data-when]").hidden;
    this.#show({ words: `What happens to this message could not be loaded. ${error.sentence}`, at_work: isAtWork });
  }

  /** Reset "when" after a message was sent: the next one waits for the end of the run. Called by `message-composer`. */
  reset() {
    if (!this.#fields.when) return;
    this.#fields.when.value = "after_run";
    this.#scheduleFetch();
  }

  #show({ words: text, at_work: atWork }) {
    this.querySelector("[data-when]").hidden = !atWork;
    if (!atWork) this.#fields.when.value = "after_run";
    const place = this.closest("form").querySelector("[data-prospect]");
    const line = place.querySelector("span");
    if (line.textContent !== text) line.textContent = text;
    place.hidden = !text;
  }
}
customElements.define("speaker-picker", SpeakerPicker);
