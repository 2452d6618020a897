/** Marks a conversation as read while its tail is in sight. */
import { json } from "./fetch.js";

const PAUSE = 700; // ms that the tail is in sight before it counts as read
const GAP = 10_000; // ms between two marks while events come
const HEARD = ["transcript:drawn", "tail:following", "transcript:live", "visibilitychange"];

/** `data-address` takes the marker, `data-conversation` is its key. */
class ReadMarker extends HTMLElement {
  #told = -1;
  #toldAt = -Infinity;
  #timer = 0;
  #ripeAt = 0; // when what is in sight has been so for long enough

  connectedCallback() {
    for (const name of HEARD) document.addEventListener(name, this);
    addEventListener("pagehide", this.#leave);
    this.handleEvent();
  }

  disconnectedCallback() {
    for (const name of HEARD) document.removeEventListener(name, this);
    removeEventListener("pagehide", this.#leave);
    clearTimeout(this.#timer);
  }

  handleEvent({ type } = {}) {
    if (type === "visibilitychange" && document.hidden) return this.#leave();
    if (document.hidden || this.#tail <= this.#told || this.#timer) return undefined;
    const now = performance.now();
    this.#ripeAt = now + PAUSE;
    return (this.#timer = setTimeout(() => this.#mark(), Math.max(PAUSE, this.#toldAt + GAP - now)));
  }

  /** What was in sight for long enough is marked although its turn has not come. */
  #leave = () => {
    if (this.#timer && performance.now() >= this.#ripeAt) this.#mark({ keepalive: true });
  };

  /** The seq at the tail that is followed; -1 while none is. */
  get #tail() {
    const transcript = document.querySelector("live-transcript");
    return transcript.isLive && transcript.querySelector("tail-follow").isFollowing ? Number(transcript.dataset.head) : -1;
  }

  async #mark({ keepalive = false } = {}) {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const seq = document.hidden && !keepalive ? -1 : this.#tail;
    if (seq <= this.#told) return;
    this.#toldAt = performance.now();
    try {
      await json(this.dataset.address, { body: { conversation_id: this.dataset.conversation, last_seq: seq }, keepalive });
      this.#told = seq;
      this.handleEvent();
    } catch (error) {
      if (error.name !== "RequestError") throw error; // not marked: the next event tries again
    }
  }
}
customElements.define("read-marker", ReadMarker);
