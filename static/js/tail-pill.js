/** The pill over a transcript: what came while the reader was elsewhere, and the way back to the tail. Used by `tail-follow`. */
import { UnreadCounter } from "./unread-counter.js";

export class TailPill {
  #host;
  #element;
  #news = new UnreadCounter();

  /** @param {HTMLElement} host the `tail-follow` that holds it @param {() => void} pressed */
  constructor(host, pressed) {
    this.#host = host;
    this.#element = host.querySelector(".pill");
    this.#element.addEventListener("click", pressed);
  }

  /** Merge what came. @param {{count: number, names: string[]}} news */
  add(news) {
    this.#news.merge(news);
  }

  clear() {
    this.#news.take();
  }

  draw() {
    const { count } = this.#news;
    const [hasNewer, beganElsewhere] = ["data-has-newer", "data-start"].map((name) => this.#host.hasAttribute(name));
    const words = hasNewer || (!count && beganElsewhere) ? "Jump to latest" : this.#news.words();
    const label = this.#element.querySelector("span");
    if (label.textContent !== words) label.textContent = words;
    this.#element.hidden = !hasNewer && (this.#host.isFollowing || !(count || beganElsewhere));
  }
}
