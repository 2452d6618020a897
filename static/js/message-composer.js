/**
 * `<message-composer data-key>`: speak as oneself. Ctrl Enter sends. The draft is kept until the server has stored the
 * words; trying again sends the same client id, so that nothing is said twice. When another person spoke after what the
 * writer had seen, it asks first. `data-new`: the words begin a conversation. Tells, bubbling: `composer:typing`,
 * `composer:rested`.
 */
import { ComposerFold } from "./composer-fold.js";
import { Draft, newId } from "./drafts.js";
import { RequestError, json } from "./fetch.js";
import { focusNow } from "./focus-kept.js";
import { composes } from "./keys.js";
import { SendReport } from "./send-report.js";

const DONE_MS = 4_000; // that "Sent" stays
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
    this.#form.addEventListener("input", () => this.#edited());
    this.#form.addEventListener("keydown", (event) => this.#key(event));
    this.#draft.onSentElsewhere((words) => this.#sentElsewhere(words), this.#stop.signal);
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  /** Show all fields: somebody is about to write. */
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
    const kept = this.#fields.content.value ? null : this.#draft.restore();
    if (!kept) return;
    this.unfold();
    this.#fields.content.value = kept.content;
    this.#fields.to.value = kept.to;
    if (kept.speaker) this.#speaker.chosen = kept.speaker;
    if (this.hasAttribute("data-new")) this.#form.action = kept.action;
    this.#report.say("kept", "Draft saved.");
  }

  #edited() {
    if (this.#isSending) return;
    const isEmpty = !this.#fields.content.value;
    this.#draft.edited(isEmpty);
    if (this.hasAttribute("data-new")) this.#form.action = `/api/v1/conversations/${newId()}/messages`;
    this.#keep();
    this.#report.say("", "");
    this.#tell(isEmpty ? "composer:rested" : "composer:typing");
  }

  #keep() {
    const content = this.#fields.content.value;
    const { value: to } = this.#fields.to;
    this.#draft.keep(content ? { content, to, speaker: this.#speaker?.chosen, action: this.#form.action } : null);
  }

  #key(event) {
    if (event.key !== "Enter" || composes(event)) return;
    if (event.target.name === "to") event.preventDefault();
    if (event.target.name === "content" && (event.ctrlKey || event.metaKey)) this.#form.requestSubmit();
  }

  async #send({ anyway = false } = {}) {
    if (this.#isSending || !this.#fields.content.value.trim()) return this.#fields.content.focus();
    const isStillHere = focusNow(this);
    this.#hold(true);
    this.#keep();
    this.#report.say("sending", "Sending…");
    let failure = null;
    try {
      this.#sent(await json(this.#form.action, { body: { ...this.#words, seen_seq: this.#draft.seen, anyway } }));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      failure = error;
    } finally {
      this.#hold(false);
    }
    const mayFocus = isStillHere();
    if (mayFocus) this.#fields.content.focus({ preventScroll: true });
    return failure && this.#failed(failure, mayFocus);
  }

  #failed({ code, sentence, told }, mayFocus) {
    if (code !== ANSWERED) return this.#report.fail(sentence);
    this.#draft.asked(Number(told.seq));
    return this.#report.ask(told, mayFocus);
  }

  /** Another window of this person sent the same draft: it is not kept here to be sent again. */
  #sentElsewhere({ content }) {
    if (this.#isSending || this.#fields.content.value !== content) return;
    this.#fields.content.value = "";
    this.#draft.begin();
    this.#report.say("sent", "Sent from another window.", DONE_MS);
  }

  get #words() {
    const name = this.#fields.to.value.trim().replace(/^agent:/u, "");
    const recipient = name ? `agent:${name}` : `chat:${this.dataset.key}`;
    return { ...this.#speaker?.words, recipient, content: this.#fields.content.value, client_id: this.#draft.clientId };
  }

  #sent({ seq, url }) {
    this.#draft.keep(null);
    this.#fields.content.value = "";
    if (this.hasAttribute("data-new")) return location.assign(url);
    this.#speaker?.sent();
    this.#draft.begin();
    this.#report.say("sent", `Sent as event ${seq}.`, DONE_MS);
    return this.#tell("composer:rested");
  }

  /** While words are on their way they cannot change: what is stored is what stands here. */
  #hold(isSending) {
    this.#isSending = isSending;
    this.#fields.content.readOnly = isSending;
    this.#form.querySelector(".button").disabled = isSending;
  }

  #tell(name) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true }));
  }
}
customElements.define("message-composer", MessageComposer);
