/**
 * `<message-composer data-key>`: speak as oneself. Ctrl Enter sends. The draft is kept until the server has stored the
 * words; trying again sends the same client id, so that nothing is said twice. `data-new`: the words begin a conversation.
 */
import { keep, newId, read } from "./drafts.js";
import { RequestError, json } from "./fetch.js";

const DONE_MS = 4_000; // that "Sent" stays

class MessageComposer extends HTMLElement {
  #form;
  #clientId;
  #isSending = false;
  #timer = 0;

  connectedCallback() {
    this.#form = this.querySelector("form");
    this.#clientId = this.#form.elements.client_id.value;
    this.querySelector("[data-keys]").hidden = false;
    this.#restore();
    this.#form.addEventListener("submit", (event) => (event.preventDefault(), this.#send()));
    this.#form.addEventListener("input", () => this.#edited());
    this.#form.addEventListener("keydown", (event) => this.#key(event));
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
  }

  get #draftKey() {
    return `${document.body.dataset.person}:${this.dataset.key}`;
  }

  get #fields() {
    return this.#form.elements;
  }

  get #speaker() {
    return this.querySelector("speaker-picker");
  }

  #restore() {
    const draft = read(this.#draftKey);
    if (!draft?.content || this.#fields.content.value) return;
    this.#fields.content.value = draft.content;
    this.#fields.to.value = draft.to;
    if (draft.speaker) this.#speaker.chosen = draft.speaker;
    this.#clientId = draft.clientId;
    if (this.hasAttribute("data-new")) this.#form.action = draft.action;
    this.#say("kept", "Draft kept.");
  }

  /** Other words are another message: they get an id of their own. */
  #edited() {
    if (this.#isSending) return;
    this.#clientId = newId();
    if (this.hasAttribute("data-new")) this.#form.action = `/api/v1/conversations/${newId()}/messages`;
    this.#keep();
    this.#say("", "");
  }

  #keep() {
    const content = this.#fields.content.value;
    const { value: to } = this.#fields.to;
    keep(this.#draftKey, content ? { content, to, speaker: this.#speaker?.chosen, clientId: this.#clientId, action: this.#form.action } : null);
  }

  #key(event) {
    if (event.key !== "Enter" || event.isComposing) return;
    if (event.target.name === "to") event.preventDefault();
    if (event.target.name === "content" && (event.ctrlKey || event.metaKey)) this.#form.requestSubmit();
  }

  async #send() {
    if (this.#isSending || !this.#fields.content.value.trim()) return this.#fields.content.focus();
    this.#hold(true);
    this.#keep();
    this.#say("sending", "Sending…");
    try {
      this.#sent(await json(this.#form.action, { body: this.#words }));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#say("failed", `Not sent. ${error.message} Your words are kept; press Send to try again.`);
    } finally {
      this.#hold(false);
    }
    return undefined;
  }

  get #words() {
    const name = this.#fields.to.value.trim().replace(/^agent:/u, "");
    const recipient = name ? `agent:${name}` : `chat:${this.dataset.key}`;
    return { ...this.#speaker?.words, recipient, content: this.#fields.content.value, client_id: this.#clientId };
  }

  #sent({ seq, url }) {
    keep(this.#draftKey, null);
    this.#fields.content.value = "";
    if (this.hasAttribute("data-new")) return location.assign(url);
    this.#clientId = newId();
    this.#say("sent", `Sent, event ${seq}.`);
    this.#timer = setTimeout(() => this.#say("", ""), DONE_MS);
    return undefined;
  }

  /** While words are on their way they cannot change: what is stored is what stands here. */
  #hold(isSending) {
    this.#isSending = isSending;
    this.#fields.content.readOnly = isSending;
    this.#form.querySelector(".button").disabled = isSending;
    if (!isSending) this.#fields.content.focus({ preventScroll: true });
  }

  #say(state, words) {
    clearTimeout(this.#timer);
    const place = this.querySelector("[data-said]");
    place.dataset.state = state;
    place.textContent = words;
  }
}
customElements.define("message-composer", MessageComposer);
