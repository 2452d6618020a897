/**
 * `<command-palette>`: pages, actions, conversations and events by name, in a dialog. `>` before the words narrows it to
 * actions and pages, `@` to agents and participants, `#` to conversations and the number of an event.
 */
import { RequestError, json } from "./fetch.js";
import { Options } from "./options.js";
import { eventByNumber, everyPage, everywhere, ofAgent, ofConversation, ofHit, ofParticipant, pageActions, queryOf } from "./palette-options.js";

const PAUSE_MS = 120; // after the last letter
const MAX_CONVERSATIONS = 8;
const MAX_EVENTS = 4;
const MAX_NARROWED = 30; // conversations, where they are all that is sought
const SEARCHED = 3; // letters that are searched for in events
const GROUPS = { ">": ["here", "known"], "@": ["agents", "participants"], "#": ["number", "found"] }; // others: all but names
const NAMES = GROUPS["@"];

class CommandPalette extends HTMLElement {
  #stop;
  #asking;
  #pause;
  #dialog;
  #input;
  #options;
  #kind = ""; // the sign before the words

  connectedCallback() {
    this.#dialog = this.querySelector("dialog");
    this.#input = this.querySelector("input");
    this.#options = new Options(this.#input, this.querySelector("[role=listbox]"), this.querySelector("template"));
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    addEventListener("keydown", (event) => isCall(event) && this.#toggle(event), { signal });
    addEventListener("click", (event) => event.target.closest?.("[data-action='palette']") && this.#toggle(event), { signal });
    this.#input.addEventListener("input", () => this.#find(), { signal });
    this.#input.addEventListener("keydown", (event) => this.#options.key(event), { signal });
    this.#dialog.addEventListener("click", (event) => this.#click(event), { signal });
    this.#dialog.addEventListener("close", () => this.#forget(), { signal });
  }

  disconnectedCallback() {
    this.#stop.abort();
    this.#forget();
  }

  #toggle(event) {
    event.preventDefault();
    if (this.#dialog.open) return this.#dialog.close();
    if (document.querySelector("dialog[open]")) return undefined;
    this.#input.value = "";
    this.#options.clear();
    this.#dialog.showModal();
    return this.#find();
  }

  #click(event) {
    if (this.#options.click(event) || event.target === this.#dialog) this.#dialog.close();
  }

  /** Draw what the page knows at once, the rest when it comes. */
  #find() {
    const { kind, words } = queryOf(this.#input.value);
    this.#forget();
    this.#options.restart(words);
    this.#kind = kind;
    const matches = ({ words: name }) => name.toLowerCase().includes(words.toLowerCase());
    this.#show("number", "On this page", eventByNumber(words));
    this.#show("here", "On this page", pageActions().filter(matches));
    this.#show("known", "Pages and actions", everyPage().filter(matches));
    for (const id of ["found", "events", "everywhere", ...NAMES]) if (!this.#takes(id)) this.#show(id, "", []);
    this.#pause = setTimeout(() => this.#ask(words), words ? PAUSE_MS : 0);
  }

  /** Whether a group belongs to what is sought. */
  #takes(id) {
    return this.#kind ? GROUPS[this.#kind].includes(id) : !NAMES.includes(id);
  }

  #show(id, name, options) {
    this.#options.show(id, name, this.#takes(id) ? options : []);
  }

  async #ask(words) {
    this.#asking = new AbortController();
    try {
      if (this.#takes("found")) await this.#askConversations(words);
      if (this.#takes("agents")) await this.#askNames(words);
      this.#say(this.#options.size ? "" : "No results");
    } catch (error) {
      if (error instanceof RequestError) this.#say(error.sentence);
      else if (error.name !== "AbortError") throw error;
    }
  }

  async #askConversations(words) {
    const query = { q: words, limit: this.#kind ? MAX_NARROWED : MAX_CONVERSATIONS };
    const { items } = await this.#json("/api/v1/conversations", query);
    this.#show("found", words ? "Conversations" : "Recent conversations", items.map(ofConversation));
    const isSearched = this.#takes("events") && words.length >= SEARCHED;
    const hits = isSearched ? (await this.#json("/api/v1/search", { q: words, limit: MAX_EVENTS })).items : [];
    this.#show("events", "Events", hits.map(ofHit));
    this.#show("everywhere", "All conversations", [everywhere(words)]);
  }

  async #askNames(words) {
    const { agents, participants } = await this.#json("/", { part: "names", q: words });
    this.#show("agents", "Agents", agents.map(ofAgent));
    this.#show("participants", "Conversations of a participant", participants.map(ofParticipant));
  }

  #json(address, query) {
    return json(`${address}?${new URLSearchParams(query)}`, { signal: this.#asking.signal });
  }

  #forget() {
    clearTimeout(this.#pause);
    this.#asking?.abort();
  }

  #say(words) {
    this.querySelector("[role=status]").textContent = words;
  }
}

const isCall = (event) =>
  (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k";

customElements.define("command-palette", CommandPalette);
