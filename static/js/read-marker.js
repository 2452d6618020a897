/** `<read-marker>`: marks a conversation as read while its tail is visible. */
import { json } from "./fetch.js";

const VISIBLE_MS = 700; // for which the tail must be visible to count as read
const MIN_INTERVAL_MS = 10_000; // between two requests while events arrive
const TRIGGERS = ["transcript:drawn", "tail:following", "transcript:live", "visibilitychange"];

/** `data-address`: the address that the marker is sent to; `data-conversation`: the conversation's id. */
class ReadMarker extends HTMLElement {
  #markedSeq = -1;
  #sentAt = -Infinity;
  #timer = 0;
  #countsAt = 0; // from when on the visible tail counts as read, by `performance.now()`

  connectedCallback() {
    for (const name of TRIGGERS) document.addEventListener(name, this);
    addEventListener("pagehide", this.#flush);
    this.handleEvent();
  }

  disconnectedCallback() {
    for (const name of TRIGGERS) document.removeEventListener(name, this);
    removeEventListener("pagehide", this.#flush);
    clearTimeout(this.#timer);
  }

  handleEvent({ type } = {}) {
    if (type === "visibilitychange" && document.hidden) return this.#flush();
    if (document.hidden || this.#tailSeq <= this.#markedSeq || this.#timer) return undefined;
    const now = performance.now();
    this.#countsAt = now + VISIBLE_MS;
    return (this.#timer = setTimeout(() => this.#send(), Math.max(VISIBLE_MS, this.#sentAt + MIN_INTERVAL_MS - now)));
  }

  /** When the page is left, send at once what counts as read, without waiting for the interval. */
  #flush = () => {
    if (this.#timer && performance.now() >= this.#countsAt) this.#send({ keepalive: true });
  };

  /** The newest seq if the tail is followed, or else -1. */
  get #tailSeq() {
    const transcript = document.querySelector("live-transcript");
    return transcript.isSubscribed && transcript.querySelector("tail-follow").isFollowing ? Number(transcript.dataset.head) : -1;
  }

  async #send({ keepalive = false } = {}) {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const seq = document.hidden && !keepalive ? -1 : this.#tailSeq;
    if (seq <= this.#markedSeq) return;
    this.#sentAt = performance.now();
    try {
      await json(this.dataset.address, { body: { conversation_id: this.dataset.conversation, last_seq: seq }, keepalive });
      this.#markedSeq = seq;
      this.handleEvent();
    } catch (error) {
      if (error.name !== "RequestError") throw error;
      if (error.isTemporary) this.handleEvent(); // maybe no event follows
    }
  }
}
customElements.define("read-marker", ReadMarker);
