/**
 * `<conversation-graph data-topic data-epoch data-src>`: who spoke to whom, asked for again as the conversation goes on, at
 * most once a second. `data-head` of the part within is what it counted. Tells what `live-transcript` tells of the record.
 */
import { ConnectionReport } from "./connection-report.js";
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";
import { morph } from "./morph.js";
import { socket } from "./socket.js";

const PAUSE_MS = 1_000;

class ConversationGraph extends HTMLElement {
  #report = new ConnectionReport((name, detail) => this.#tell(name, detail));
  #unsubscribe = null;
  #seq = 0; // the newest event we were told of
  #timer = 0;
  #isStale = false; // history is another one: whatever is drawn has to go
  #onVisible = () => this.#plan();

  connectedCallback() {
    const after = this.#head;
    this.#seq = after;
    this.#unsubscribe = socket.subscribe(this.dataset.topic, { after, epoch: this.dataset.epoch }, {
      events: ({ events }) => this.#heard(events),
      caughtUp: ({ seq }) => this.#report.caughtUp(seq),
      presence: ({ people }) => this.#tell("transcript:presence", { people }),
      reset: () => this.#reset(),
      down: () => this.#report.down(this.#seq),
      up: () => this.#report.up(this.#seq),
      error: (frame) => this.#report.error(frame),
    });
    document.addEventListener("visibilitychange", this.#onVisible);
  }

  disconnectedCallback() {
    this.#unsubscribe();
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.#onVisible);
  }

  get #head() {
    return Number(this.querySelector("[data-part]").dataset.head);
  }

  #heard(events) {
    for (const event of events) this.#report.applied(event);
    this.#seq = events.at(-1).seq;
    this.#tell("transcript:drawn", { count: 0, names: [], seq: this.#seq });
    this.#plan();
  }

  #reset() {
    [this.#seq, this.#isStale] = [0, true];
    this.#plan();
  }

  #plan() {
    if ((this.#seq > this.#head || this.#isStale) && !document.hidden) this.#timer ||= setTimeout(() => this.#renew(), PAUSE_MS);
  }

  async #renew() {
    try {
      const fresh = render(await markup(this.dataset.src));
      morph(this.querySelector("[data-part]"), fresh.querySelector("[data-part]"));
      if (this.#isStale) this.#report.reset();
      this.#isStale = false;
    } catch (error) {
      if (!(error instanceof RequestError)) throw error; // the server is away: it is asked again
    }
    this.#timer = 0;
    this.#plan();
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
  }
}
customElements.define("conversation-graph", ConversationGraph);
