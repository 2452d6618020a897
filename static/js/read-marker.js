/** Marks a conversation as read while its tail is in sight: as far as both the rows and the counters beside them go. */
import { json } from "./fetch.js";

const PAUSE = 700; // ms that the tail is in sight before it counts as read
const HEARD = ["transcript:drawn", "tail:following", "transcript:live", "panel:fresh", "visibilitychange"];

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
    if (this.#isUnread) this.#timer ||= setTimeout(() => this.#mark(), PAUSE);
  }

  /** The counters: head and messages belong together, so that what is unread is counted right. */
  get #counted() {
    const { head, messages } = document.querySelector("conversation-panel [data-sections]").dataset;
    return { last_seq: Number(head), messages_seen: Number(messages) };
  }

  get #isUnread() {
    const transcript = document.querySelector("live-transcript");
    const isInSight = transcript.isLive && transcript.querySelector("tail-follow").isFollowing && !document.hidden;
    const { last_seq: seq } = this.#counted;
    return isInSight && seq > this.#told && seq <= Number(transcript.dataset.head);
  }

  async #mark() {
    this.#timer = 0;
    if (!this.#isUnread) return;
    const marker = { conversation_id: this.dataset.conversation, ...this.#counted };
    try {
      await json(this.dataset.address, { body: marker });
      this.#told = marker.last_seq;
    } catch (error) {
      if (error.name !== "RequestError") throw error; // not marked: the next event tries again
    }
  }
}
customElements.define("read-marker", ReadMarker);
