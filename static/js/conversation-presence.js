/**
 * `<conversation-presence data-address>`: who else looks at the conversation and who types. Tells the server that the
 * reader types or has put the page away; that they look at all it knows by their socket.
 */
import { RequestError, json } from "./fetch.js";

const TYPING_MS = 4_000; // a hint: said again so often while somebody types
const AWAY_MS = 5_000; // hidden for so long
const PAUSE_MS = 3_000; // between two words to a screen reader
const NAMED = 2; // people whose names are written out
const MARKED = 3; // whose marks are drawn
const HEARD = ["transcript:presence", "connection:down", "connection:restored", "composer:typing", "composer:rested", "visibilitychange"];

class ConversationPresence extends HTMLElement {
  #people = [];
  #state = "looking"; // what the server was told
  #typedAt = -Infinity;
  #timer = 0;
  #words = 0;

  connectedCallback() {
    for (const name of HEARD) document.addEventListener(name, this);
  }

  disconnectedCallback() {
    for (const name of HEARD) document.removeEventListener(name, this);
    clearTimeout(this.#timer);
    clearTimeout(this.#words);
  }

  handleEvent({ type, detail }) {
    if (type === "transcript:presence") this.#take(detail.people);
    else if (type === "connection:down") this.#draw([]);
    else if (type === "connection:restored") this.#isAway && this.#tell("away"); // a new socket looks
    else if (type === "visibilitychange") this.#seen();
    else if (type === "composer:typing") this.#typing();
    else if (this.#state === "typing") this.#tell("looking");
  }

  #take(people) {
    const me = document.body.dataset.person;
    const mine = people.find(({ name }) => name === me)?.state;
    if (mine === "away" && !document.hidden) this.#tell("looking"); // another window of mine was put away
    this.#draw(people.filter(({ name, state }) => name !== me && state !== "away"));
  }

  #typing() {
    const now = performance.now();
    if (this.#state === "typing" && now - this.#typedAt < TYPING_MS) return;
    this.#typedAt = now;
    this.#tell("typing");
  }

  #seen() {
    clearTimeout(this.#timer);
    if (document.hidden) this.#timer = setTimeout(() => this.#tell("away"), AWAY_MS);
    else if (this.#state === "away") this.#tell("looking");
  }

  get #isAway() { return document.hidden && this.#state === "away"; }

  async #tell(state) {
    this.#state = state;
    try {
      await json(this.dataset.address, { body: { state } });
    } catch (error) {
      if (!(error instanceof RequestError)) throw error; // a hint that is lost
    }
  }

  #draw(people) {
    this.#people = people;
    this.querySelector(".marks").replaceChildren(...people.slice(0, MARKED).map(mark), ...over(people.length - MARKED));
    const words = said(people);
    this.querySelector("[data-words]").textContent = words;
    this.hidden = !words;
    this.#words ||= setTimeout(() => this.#announce(), PAUSE_MS);
  }

  #announce() {
    this.#words = 0;
    const words = said(this.#people);
    const status = this.parentElement.querySelector("[data-presence-status]");
    if (status.textContent !== words) status.textContent = words;
  }
}

const mark = ({ name, letters, state }) => {
  const made = Object.assign(document.createElement("span"), { className: "mark", textContent: letters, title: name });
  Object.assign(made.dataset, { kind: "operator", size: "small", state });
  return made;
};

const over = (count) => (count > 0 ? [Object.assign(document.createElement("span"), { className: "over", textContent: `+${count}` })] : []);

/** "otto is typing", "otto and vera are viewing", "otto, vera and 3 more are viewing". */
const said = (people) => {
  const typing = people.filter(({ state }) => state === "typing");
  const [some, does] = typing.length ? [typing, "typing"] : [people, "viewing"];
  if (!some.length) return "";
  const names = some.slice(0, NAMED).map(({ name }) => `\u2068${name}\u2069`);
  if (some.length > NAMED) names.push(`${some.length - NAMED} more`);
  const list = names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
  return `${list} ${some.length > 1 ? "are" : "is"} ${does}`;
};

customElements.define("conversation-presence", ConversationPresence);
