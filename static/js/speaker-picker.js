/**
 * `<speaker-picker data-prospects>`: as whom one speaks and to whom. A reason is asked for as soon as it is not as
 * oneself, and what becomes of the words is said before they are sent. Without scripts the fields are the same.
 */
import { RequestError, json } from "./fetch.js";
import { onKey } from "./keys.js";

const PAUSE_MS = 200; // between a change and asking what becomes of it

class SpeakerPicker extends HTMLElement {
  #stop;
  #timer = 0;

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.addEventListener("input", () => this.#changed(), { signal });
    if (!this.dataset.prospects) return;
    document.addEventListener("standing:drawn", ({ detail }) => this.#drawn(detail), { signal });
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

  /** What is kept with a draft and put back with it: the fields as they stand. */
  get chosen() {
    const { as, as_name: name, reason } = this.#fields;
    return as ? { as: as.value, name: name.value, reason: reason.value } : {};
  }

  set chosen({ as = "", name = "", reason = "" }) {
    if (!this.#fields.as || ![...this.#fields.as.options].some(({ value }) => value === as)) return;
    Object.assign(this.#fields.as, { value: as });
    this.#fields.as_name.value = name;
    this.#fields.reason.value = reason;
    this.#changed();
  }

  /** What the API is told of it. */
  get words() {
    const { as = "", name = "", reason = "" } = this.chosen;
    const when = this.#fields.when?.value === "next_step" ? { when: "next_step" } : {};
    if (!as) return when;
    return { ...when, sender: as === "other" ? `agent:${name.trim().replace(/^agent:/u, "")}` : as, reason: reason.trim() };
  }

  /** What asks for what becomes of the words. */
  get query() {
    return new URLSearchParams({ as: this.words.sender ?? "", to: this.#fields.to.value.trim(), when: this.#fields.when.value }).toString();
  }

  /** It comes with how the conversation stands, unless the fields changed meanwhile. */
  #drawn({ fresh, query }) {
    const answer = fresh.querySelector("[data-prospect-answer]");
    if (answer && query.includes(this.query)) this.#say({ words: answer.textContent, at_work: answer.dataset.atWork });
  }

  #changed() {
    const { as, as_name: name, reason } = this.#fields;
    if (as) {
      reason.required = as.value !== "";
      name.required = as.value === "other";
    }
    this.#plan();
  }

  #plan() {
    if (!this.dataset.prospects) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), PAUSE_MS);
  }

  async #look() {
    const { query } = this;
    try {
      const told = await json(`${this.dataset.prospects}?${query}`, { signal: this.#stop.signal });
      if (query === this.query) this.#say(told);
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error;
    }
  }

  /** The next message waits again, unless its writer wishes otherwise. */
  sent() {
    if (!this.#fields.when) return;
    this.#fields.when.value = "after_run";
    this.#plan();
  }

  #say({ words, at_work: atWork }) {
    this.querySelector("[data-when]").hidden = !atWork;
    if (!atWork) this.#fields.when.value = "after_run";
    const place = this.closest("form").querySelector("[data-prospect]");
    const line = place.querySelector("span");
    if (line.textContent !== words) line.textContent = words;
    place.hidden = !words;
  }
}
customElements.define("speaker-picker", SpeakerPicker);
