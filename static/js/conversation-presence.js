/**
 * `<conversation-presence data-address>`: shows who else is viewing the conversation or typing. Reports to the server that
 * this person types or has hidden the page; that they are viewing it, the server knows from their socket.
 */
import { RequestError, json } from "./fetch.js";

const TYPING_MS = 4_000; // the report is repeated this often while somebody types
const AWAY_MS = 5_000; // a page hidden for this long is reported as away
const ANNOUNCE_MS = 3_000; // between two announcements to screen readers
const MAX_NAMES = 2; // people named in the text
const MAX_MARKS = 3; // people shown by their marks
const EVENTS = ["transcript:presence", "connection:down", "connection:restored", "composer:typing", "composer:rested", "visibilitychange"];

class ConversationPresence extends HTMLElement {
  #people = [];
  #state = "looking"; // as last reported to the server
  #typedAt = -Infinity;
  #awayTimer = 0;
  #announceTimer = 0;

  connectedCallback() {
    for (const name of EVENTS) document.addEventListener(name, this);
  }

  disconnectedCallback() {
    for (const name of EVENTS) document.removeEventListener(name, this);
    clearTimeout(this.#awayTimer);
    clearTimeout(this.#announceTimer);
  }

  handleEvent({ type, detail }) {
    if (type === "transcript:presence") this.#receive(detail.people);
    else if (type === "connection:down") this.#show([]);
    else if (type === "connection:restored") this.#isAway && this.#report("away"); // a new socket counts as looking
    else if (type === "visibilitychange") this.#onVisibilityChange();
    else if (type === "composer:typing") this.#reportTyping();
    else if (this.#state === "typing") this.#report("looking");
  }

  #receive(people) {
    const ownName = document.body.dataset.person;
    const ownState = people.find(({ name }) => name === ownName)?.state;
    if (ownState === "away" && !document.hidden) this.#report("looking"); // another window of this person was hidden
    this.#show(people.filter(({ name, state }) => name !== ownName && state !== "away"));
  }

  #reportTyping() {
    const now = performance.now();
    if (this.#state === "typing" && now - this.#typedAt < TYPING_MS) return;
    this.#typedAt = now;
    this.#report("typing");
  }

  #onVisibilityChange() {
    clearTimeout(this.#awayTimer);
    if (document.hidden) this.#awayTimer = setTimeout(() => this.#report("away"), AWAY_MS);
    else if (this.#state === "away") this.#report("looking");
  }

  get #isAway() { return document.hidden && this.#state === "away"; }

  async #report(state) {
    this.#state = state;
    try {
      await json(this.dataset.address, { body: { state } });
    } catch (error) {
      if (!(error instanceof RequestError)) throw error; // only a hint: not sent again
    }
  }

  #show(people) {
    this.#people = people;
    this.querySelector(".marks").replaceChildren(...people.slice(0, MAX_MARKS).map(mark), ...overflow(people.length - MAX_MARKS));
    const text = summary(people);
    this.querySelector("[data-words]").textContent = text;
    this.hidden = !text;
    this.#announceTimer ||= setTimeout(() => this.#announce(), ANNOUNCE_MS);
  }

  #announce() {
    this.#announceTimer = 0;
    const text = summary(this.#people);
    const status = this.parentElement.querySelector("[data-presence-status]");
    if (status.textContent !== text) status.textContent = text;
  }
}

const mark = ({ name, letters, state }) => {
  const element = Object.assign(document.createElement("span"), { className: "mark", textContent: letters, title: name });
  Object.assign(element.dataset, { kind: "operator", size: "small", state });
  return element;
};

const overflow = (count) => (count > 0 ? [Object.assign(document.createElement("span"), { className: "over", textContent: `+${count}` })] : []);

/** Returns "otto is typing", "otto and vera are viewing", "otto, vera and 3 more are viewing", or "" without people. */
const summary = (people) => {
  const typing = people.filter(({ state }) => state === "typing");
  const [group, activity] = typing.length ? [typing, "typing"] : [people, "viewing"];
  if (!group.length) return "";
  const names = group.slice(0, MAX_NAMES).map(({ name }) => `\u2068${name}\u2069`);
  if (group.length > MAX_NAMES) names.push(`${group.length - MAX_NAMES} more`);
  const list = names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
  return `${list} ${group.length > 1 ? "are" : "is"} ${activity}`;
};

customElements.define("conversation-presence", ConversationPresence);
