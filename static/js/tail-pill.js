/** The pill over a transcript: counts rows that arrived while the tail was not followed, and leads back to it. */
import { setLabel } from "./label-text.js";
import { NewRows } from "./new-rows.js";

export class TailPill {
  #host;
  #element;
  #unread = new NewRows();

  /** @param {HTMLElement} host  the `tail-follow` around it @param {() => void} onPress */
  constructor(host, onPress) {
    this.#host = host;
    this.#element = host.querySelector(".pill");
    this.#element.addEventListener("click", onPress);
  }

  /** Add new rows to the count. @param {{count: number, names: string[]}} unread */
  add(unread) {
    this.#unread.merge(unread);
  }

  clear() {
    this.#unread.take();
  }

  draw() {
    const { count } = this.#unread;
    const [hasNewer, startedElsewhere] = ["data-has-newer", "data-start"].map((name) => this.#host.hasAttribute(name));
    const text = hasNewer || (!count && startedElsewhere) ? "Jump to latest" : this.#unread.words();
    setLabel(this.#element.querySelector("span"), text);
    this.#element.hidden = !hasNewer && (this.#host.isFollowing || !(count || startedElsewhere));
  }
}
