/** What is known of the conversation, beside its transcript: kept fresh while events come, and the facts of the picked one. */
import { markup } from "./fetch.js";
import { render } from "./html.js";
import { morph } from "./morph.js";

const PAUSE = 2000; // ms between two looks

/** `data-address` answers the sections. Hears `transcript:drawn` and `event:picked` of the page. */
class ConversationPanel extends HTMLElement {
  #seq = 0;
  #timer = 0;

  connectedCallback() {
    for (const name of ["transcript:drawn", "event:picked", "visibilitychange"]) document.addEventListener(name, this);
    this.#seq = Number(this.querySelector("[data-head]").dataset.head);
    this.#more?.addEventListener("click", () => this.#toggle());
  }

  disconnectedCallback() {
    for (const name of ["transcript:drawn", "event:picked", "visibilitychange"]) document.removeEventListener(name, this);
    clearTimeout(this.#timer);
  }

  handleEvent({ type, detail }) {
    if (type === "event:picked") return this.#pick(detail.row);
    if (type === "transcript:drawn") this.#seq = Math.max(this.#seq, detail.seq);
    return this.#plan();
  }

  get #more() {
    return document.querySelector(`[aria-controls="${this.id}"]`);
  }

  get #isStale() {
    return this.#seq > Number(this.querySelector("[data-head]").dataset.head);
  }

  #plan() {
    if (this.#isStale && !document.hidden && this.checkVisibility()) this.#timer ||= setTimeout(() => this.#fresh(), PAUSE);
  }

  async #fresh() {
    try {
      const fresh = render(await markup(this.dataset.address));
      const sections = this.querySelector("[data-sections]");
      morph(sections, fresh.querySelector("[data-sections]"));
    } catch (error) {
      if (error.name !== "RequestError") throw error; // as it was: the next event looks again
      return;
    } finally {
      this.#timer = 0;
    }
    this.#plan();
  }

  #toggle() {
    const isOpen = this.parentElement.toggleAttribute("data-open");
    this.#more.setAttribute("aria-expanded", isOpen);
    this.#plan();
  }

  #pick(row) {
    const section = this.querySelector("[data-picked]");
    section.hidden = false;
    for (const slot of section.querySelectorAll("[data-fact]")) {
      const fact = factOf(row, slot.dataset.fact);
      slot.textContent = fact;
      if (slot.localName === "dd") slot.hidden = slot.previousElementSibling.hidden = !fact;
    }
  }
}

const factOf = (row, name) => {
  const at = row.querySelector(":scope > time")?.dateTime;
  if (name === "at" && at) return local(at);
  if (name === "sent") return row.dataset.sent ? local(row.dataset.sent) : "";
  return row.dataset[name] ?? "";
};

const local = (at) =>
  new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });

customElements.define("conversation-panel", ConversationPanel);
