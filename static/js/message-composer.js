/**
 * `<message-composer data-key>`: the form to write a message. Ctrl Enter sends. The draft is kept until the server has stored
 * the message; a retry sends the same client id, so nothing is stored twice. If another person wrote after the last event
 * that the writer had seen, it asks before sending. `data-new`: the message starts a new conversation. Dispatches
 * `composer:typing` and `composer:rested` (both bubble).
 */
import { ComposerFold } from "./composer-fold.js";
import { Draft, newId } from "./drafts.js";
import { RequestError, json } from "./fetch.js";
import { rememberFocus } from "./focus-memory.js";
import { composes } from "./keys.js";
import { SendReport } from "./send-report.js";

const SENT_NOTICE_MS = 4_000; // for which "Sent" is shown
const ANSWERED = "answered_meanwhile";

class MessageComposer extends HTMLElement {
  #form;
  #draft;
  #report;
  #stop = new AbortController();
  #isSending = false;
  #fold;

  connectedCallback() {
    this.#form = this.querySelector("form");
    this.#draft = new Draft(`${document.body.dataset.person}:${this.dataset.key}`, this.#fields.client_id.value);
    this.#fold = new ComposerFold(this, this.#stop.signal);
    this.#report = new SendReport(this, () => this.#send({ anyway: true }), this.#stop.signal);
    this.#restore();
    this.#form.addEventListener("submit", (event) => (event.preventDefault(), this.#send()));
    this.#form.addEventListener("input", () => this.#handleInput());
    this.#form.addEventListener("keydown", (event) => this.#handleKey(event));
    this.#draft.watch({ sent: () => this.#clearSentDraft(), removed: () => this.#saveDraft() }, this.#stop.signal);
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  /** Show all fields. Called by keys that move the focus into the form. */
  unfold() {
    this.#fold.open();
  }

  get #fields() {
    return this.#form.elements;
  }

  get #speaker() {
    return this.querySelector("speaker-picker");
  }

  #restore() {
    const draft = this.#fields.content.value ? null : this.#draft.restore();
    if (!draft) return;
    this.unfold();
    this.#fields.content.value = draft.content;
    this.#fields.to.value = draft.to;
    if (draft.speaker) this.#speaker.chosen = draft.speaker;
    if (this.hasAttribute("data-new")) this.#form.action = draft.action;
    this.#report.show("kept", "Draft saved.");
  }

  #handleInput() {
    if (this.#isSending) return;
    const isEmpty = !this.#fields.content.value;
    this.#draft.edited(isEmpty);
    if (this.hasAttribute("data-new")) this.#form.action = `/api/v1/conversations/${newId()}/messages`;
    this.#saveDraft();
    this.#report.show("", "");
    this.#dispatch(isEmpty ? "composer:rested" : "composer:typing");
  }

  #saveDraft() {
    const content = this.#fields.content.value;
    const { value: to } = this.#fields.to;
    this.#draft.keep(content ? { content, to, speaker: this.#speaker?.chosen, action: this.#form.action } : null);
  }

  #handleKey(event) {
    if (event.key !== "Enter" || composes(event)) return;
    if (event.target.name === "to") event.preventDefault();
    if (event.target.name === "content" && (event.ctrlKey || event.metaKey)) this.#form.requestSubmit();
  }

  async #send({ anyway = false } = {}) {
    if (this.#isSending || !this.#fields.content.value.trim()) return this.#fields.content.focus();
    const hasFocus = rememberFocus(this);
    this.#lock(true);
    this.#saveDraft();
    this.#report.show("sending", "Sending…");
    let failure = null;
    try {
      this.#handleStored(await json(this.#form.action, { body: { ...this.#message, seen_seq: this.#draft.seen, anyway } }));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      failure = error;
    } finally {
      this.#lock(false);
    }
    const mayFocus = hasFocus();
    if (mayFocus) this.#fields.content.focus({ preventScroll: true });
    return failure && this.#handleFailure(failure, mayFocus);
  }

  #handleFailure(error, mayFocus) {
    const { code, details: reply } = error;
    if (code !== ANSWERED) return this.#report.fail(error);
    this.#draft.awaitConfirmation(Number(reply.seq));
    return this.#report.ask(reply, mayFocus);
  }

  /** Empty the field if another window of this person sent the same draft. */
  #clearSentDraft() {
    if (this.#isSending || !this.#fields.content.value) return;
    this.#fields.content.value = "";
    this.#draft.begin();
    this.#report.show("sent", "Sent from another window.", SENT_NOTICE_MS);
  }

  get #message() {
    const name = this.#fields.to.value.trim().replace(/^agent:/u, "");
    const recipient = name ? `agent:${name}` : `chat:${this.dataset.key}`;
    return { ...this.#speaker?.payload, recipient, content: this.#fields.content.value, client_id: this.#draft.clientId };
  }

  #handleStored({ seq, url }) {
    this.#draft.removeSent();
    this.#fields.content.value = "";
    if (this.hasAttribute("data-new")) return location.assign(url);
    this.#speaker?.reset();
    this.#draft.begin();
    this.#report.show("sent", `Sent as event ${seq}.`, SENT_NOTICE_MS);
    return this.#dispatch("composer:rested");
  }

  /** Lock the field while the message is being sent: what is stored is what is shown. */
  #lock(isSending) {
    this.#isSending = isSending;
    this.#fields.content.readOnly = isSending;
  }

  #dispatch(name) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true }));
  }
}
customElements.define("message-composer", MessageComposer);
