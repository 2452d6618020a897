/** Marks a conversation as read while its tail is in sight. */
import { json } from "./fetch.js";

const PAUSE = 1000; // ms after the last event that came into sight

/** `data-address` takes the marker, `data-conversation` is its key. Hears a `live-transcript` beside it. */
class ReadMarker extends HTMLElement {
  #seq = 0;
  #told = 0;
  #isAtTail = false;
  #timer = 0;

  connectedCallback() {
    for (const name of ["transcript:drawn", "tail:following", "transcript:live"]) this.parentElement.addEventListener(name, this);
    document.addEventListener("visibilitychange", this);
  }

  disconnectedCallback() {
    document.removeEventListener("visibilitychange", this);
    clearTimeout(this.#timer);
  }

  handleEvent({ type, detail }) {
    if (type === "transcript:drawn") this.#seq = detail.seq;
    this.#look();
  }

  #look() {
    const transcript = this.parentElement.querySelector("live-transcript");
    this.#isAtTail = transcript.isLive && transcript.querySelector("tail-follow").isFollowing && !document.hidden;
    this.#seq = Math.max(this.#seq, Number(transcript.dataset.head));
    if (this.#isAtTail && this.#seq > this.#told) this.#timer ||= setTimeout(() => this.#mark(), PAUSE);
  }

  async #mark() {
    this.#timer = 0;
    if (!this.#isAtTail || document.hidden) return;
    const seq = this.#seq;
    try {
      await json(this.dataset.address, { body: { conversation_id: this.dataset.conversation, last_seq: seq } });
      this.#told = seq;
      this.#look();
    } catch (error) {
      if (error.name !== "RequestError") throw error; // not marked: the next event tries again
    }
  }
}
customElements.define("read-marker", ReadMarker);
