/** The one polite region of a transcript: "4 new events from Triage" at most every 2 s; text that grows is never read out. */
import { UnreadCounter } from "./unread-counter.js";

const PAUSE = 2000; // ms between two announcements
const SHOWN = 2500; // ms that a deed's answer is on the screen

class NewsAnnouncer extends HTMLElement {
  #news = new UnreadCounter();
  #timer = 0;
  #hide = 0;

  connectedCallback() {
    this.parentElement.addEventListener("transcript:drawn", this);
    this.parentElement.addEventListener("said", this);
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
    clearTimeout(this.#hide);
  }

  /** `transcript:drawn` is collected; `said` {words} of a deed ("Link copied") is told at once. */
  handleEvent({ type, detail }) {
    if (type === "said") this.#answer(detail.words);
    else if (detail.count) this.#collect(detail);
  }

  #answer(words) {
    this.textContent = words;
    this.toggleAttribute("data-shown", true);
    clearTimeout(this.#hide);
    this.#hide = setTimeout(() => this.removeAttribute("data-shown"), SHOWN);
  }

  #collect(news) {
    this.#news.merge(news);
    this.#timer ||= setTimeout(() => this.#tell(), PAUSE);
  }

  #tell() {
    this.#timer = 0;
    if (this.hasAttribute("data-shown")) return this.#collect({ count: 0, names: [] }); // a deed's answer is read first
    this.textContent = this.#news.words(this.#news.count === 1 ? "new event" : "new events");
    this.#news.take();
    return undefined;
  }
}
customElements.define("news-announcer", NewsAnnouncer);
