/** Marks a conversation as read while its tail is in sight. */
import { json } from "./fetch.js";

const PAUSE = 700; // ms that the tail is in sight before it counts as read
const HEARD = ["transcript:drawn", "tail:following", "transcript:live", "visibilitychange"];

/** `data-address` takes the marker, `data-conversation` is its key. */
class ReadMarker extends HTMLElement {
  #told = -1;
  #timer = 0;

  connectedCallback() {
    for (const name of HEARD) document.addEventListener(name, this);
    this.handleEvent();
  }

  disconnectedCallback() {
    for (const name of HEARD) document.removeEventListener(name, this);
    clearTimeout(this.#timer);
  }

  handleEvent() {
    if (this.#seen > this.#told) this.#timer ||= setTimeout(() => this.#mark(), PAUSE);
  }

  /** The seq that is in sight; -1 while the tail is not. */
  get #seen() {
    const transcript = document.querySelector("live-transcript");
    const isInSight = transcript.isLive && transcript.querySelector("tail-follow").isFollowing && !document.hidden;
    return isInSight ? Number(transcript.dataset.head) : -1;
  }

  async #mark() {
    this.#timer = 0;
    const seq = this.#seen;
    if (seq <= this.#told) return;
    try {
      await json(this.dataset.address, { body: { conversation_id: this.dataset.conversation, last_seq: seq } });
      this.#told = seq;
      this.handleEvent();
    } catch (error) {
      if (error.name !== "RequestError") throw error; // not marked: the next event tries again
    }
  }
}
customElements.define("read-marker", ReadMarker);
