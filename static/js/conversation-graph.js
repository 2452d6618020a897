/**
 * `<conversation-graph data-topic data-epoch data-src>`: who spoke to whom, asked for again as the conversation goes on.
 * `data-head` of the part within is what it counted.
 */
import { markup } from "./fetch.js";
import { render } from "./html.js";
import { LivePart } from "./live-part.js";
import { morph } from "./morph.js";

class ConversationGraph extends HTMLElement {
  #live = null;

  connectedCallback() {
    this.#live = new LivePart(this, async () => {
      const fresh = render(await markup(this.dataset.src));
      morph(this.querySelector("[data-part]"), fresh.querySelector("[data-part]"));
    });
  }

  disconnectedCallback() {
    this.#live.close();
  }
}
customElements.define("conversation-graph", ConversationGraph);
