/** `<approval-page>`: one question. When it is decided, here or elsewhere, its verdict appears and its forms rest. */
import "./json-copy.js";
import "./inline-actions.js";
import { drawTimes } from "./clock.js";
import { render } from "./html.js";
import { morph } from "./morph.js";
import { socket } from "./socket.js";
import { tellWaiting } from "./waiting-count.js";

class ApprovalPage extends HTMLElement {
  #leave;

  connectedCallback() {
    this.#leave = socket.subscribe("approvals", { render: "html" }, { rows: (frame) => this.#take(frame) });
  }

  disconnectedCallback() {
    this.#leave();
  }

  #take({ rows, ...standing }) {
    tellWaiting(standing);
    const old = this.querySelector("[data-key]");
    const told = rows.find(({ key }) => key === old.dataset.key);
    if (!told) return;
    const fresh = render(told.html).querySelector("[data-key]");
    drawTimes(fresh);
    morph(old, fresh);
    const form = this.querySelector(".answers");
    if (form && told.status !== "pending") form.inert = true;
  }
}

customElements.define("approval-page", ApprovalPage);
