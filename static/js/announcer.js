/**
 * The only live region of a transcript (polite): "4 new events from Triage", at most every 2 s. Text that is still being
 * streamed is never read out.
 */
import { NewRows } from "./new-rows.js";

const PAUSE = 2000; // ms between two announcements of new events
const SHOWN = 2500; // ms for which the result of an action stays on the screen

class NewsAnnouncer extends HTMLElement {
  #news = new NewRows();
  #timer = 0;
  #hideTimer = 0;

  connectedCallback() {
    this.parentElement.addEventListener("transcript:drawn", this);
    this.parentElement.addEventListener("said", this);
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
    clearTimeout(this.#hideTimer);
  }

  /** `transcript:drawn` is collected; `said` {words}, the result of an action ("Link copied"), is announced at once. */
  handleEvent({ type, detail }) {
    if (type === "said") this.#showResult(detail.words);
    else if (detail.count) this.#collect(detail);
  }

  #showResult(text) {
    this.textContent = text;
    this.toggleAttribute("data-shown", true);
    clearTimeout(this.#hideTimer);
    this.#hideTimer = setTimeout(() => this.removeAttribute("data-shown"), SHOWN);
  }

  #collect(news) {
    this.#news.merge(news);
    this.#timer ||= setTimeout(() => this.#announce(), PAUSE);
  }

  #announce() {
    this.#timer = 0;
    if (this.hasAttribute("data-shown")) return this.#collect({ count: 0, names: [] }); // wait: the result of an action is being read
    this.textContent = this.#news.words(this.#news.count === 1 ? "new event" : "new events");
    this.#news.take();
    return undefined;
  }
}
customElements.define("news-announcer", NewsAnnouncer);
