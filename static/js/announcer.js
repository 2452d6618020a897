/** The one polite region of a transcript: "4 new events from Triage" at most every 2 s; text that grows is never read out. */
import { News } from "./news.js";

const PAUSE = 2000; // ms between two announcements

class NewsAnnouncer extends HTMLElement {
  #news = new News();
  #timer = 0;

  connectedCallback() {
    this.parentElement.addEventListener("transcript:drawn", this);
    this.parentElement.addEventListener("said", this);
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
  }

  /** `transcript:drawn` is collected; `said` {words} of a deed ("Link copied") is told at once. */
  handleEvent({ type, detail }) {
    if (type === "said") this.textContent = detail.words;
    else if (detail.count) this.#collect(detail);
  }

  #collect(news) {
    this.#news.merge(news);
    this.#timer ||= setTimeout(() => this.#tell(), PAUSE);
  }

  #tell() {
    this.#timer = 0;
    this.textContent = this.#news.words(this.#news.count === 1 ? "new event" : "new events");
    this.#news.take();
  }
}
customElements.define("news-announcer", NewsAnnouncer);
