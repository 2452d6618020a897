/**
 * `<command-palette>`: a dialog that finds pages, actions, conversations and events. The prefix `>` limits it to actions and
 * pages, `@` to agents and participants, `#` to conversations and the event with that number.
 */
import { RequestError, json } from "./fetch.js";
import { Options } from "./options.js";
import { agentOption, conversationOption, eventByNumber, eventOption, pageActions, pagesAndActions, parseInput, participantOption, searchOption } from "./palette-options.js";
import { isCommand } from "./platform-keys.js";

const PAUSE_MS = 120; // from the last input until the server is asked
const MAX_CONVERSATIONS = 8;
const MAX_EVENTS = 4;
const MAX_PREFIXED = 30; // conversations, if the prefix limits the query to them
const MIN_SEARCH_LETTERS = 3; // of a query that is searched for in events
const GROUPS = { ">": ["here", "pages"], "@": ["agents", "participants"], "#": ["number", "conversations"] }; // by prefix; without one, all groups but NAMES
const NAMES = GROUPS["@"];

class CommandPalette extends HTMLElement {
  #stop;
  #request;
  #timer;
  #dialog;
  #input;
  #options;
  #prefix = ""; // of the query

  connectedCallback() {
    this.#dialog = this.querySelector("dialog");
    this.#input = this.querySelector("input");
    this.#options = new Options(this.#input, this.querySelector("[role=listbox]"), this.querySelector("template"));
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    addEventListener("keydown", (event) => isShortcut(event) && this.#toggle(event), { signal });
    addEventListener("click", (event) => event.target.closest?.("[data-action='palette']") && this.#toggle(event), { signal });
    this.#input.addEventListener("input", () => this.#search(), { signal });
    this.#input.addEventListener("keydown", (event) => this.#options.handleKey(event), { signal });
    this.#dialog.addEventListener("click", (event) => this.#handleClick(event), { signal });
    this.#dialog.addEventListener("close", () => this.#cancel(), { signal });
  }

  disconnectedCallback() {
    this.#stop.abort();
    this.#cancel();
  }

  #toggle(event) {
    event.preventDefault();
    if (this.#dialog.open) return this.#dialog.close();
    if (document.querySelector("dialog[open]")) return undefined;
    this.#input.value = "";
    this.#options.clear();
    this.#dialog.showModal();
    return this.#search();
  }

  #handleClick(event) {
    if (this.#options.handleClick(event) || event.target === this.#dialog) this.#dialog.close();
  }

  /** Show the options that the page has at once, the others when the server responds. */
  #search() {
    const { prefix, query } = parseInput(this.#input.value);
    this.#cancel();
    this.#options.restart(query);
    this.#prefix = prefix;
    const matches = ({ label }) => label.toLowerCase().includes(query.toLowerCase());
    this.#show("number", "On this page", eventByNumber(query));
    this.#show("here", "On this page", pageActions().filter(matches));
    this.#show("pages", "Pages and actions", pagesAndActions().filter(matches));
    for (const id of ["conversations", "events", "everywhere", ...NAMES]) if (!this.#admits(id)) this.#show(id, "", []);
    this.#timer = setTimeout(() => this.#fetch(query), query ? PAUSE_MS : 0);
  }

  /** Whether the prefix admits a group. */
  #admits(id) {
    return this.#prefix ? GROUPS[this.#prefix].includes(id) : !NAMES.includes(id);
  }

  #show(id, name, options) {
    this.#options.show(id, name, this.#admits(id) ? options : []);
  }

  async #fetch(query) {
    this.#request = new AbortController();
    try {
      if (this.#admits("conversations")) await this.#fetchConversations(query);
      if (this.#admits("agents")) await this.#fetchNames(query);
      this.#showStatus(this.#options.size ? "" : "No results");
    } catch (error) {
      if (error instanceof RequestError) this.#showStatus(error.sentence);
      else if (error.name !== "AbortError") throw error;
    }
  }

  async #fetchConversations(query) {
    const limit = this.#prefix ? MAX_PREFIXED : MAX_CONVERSATIONS;
    const { items } = await this.#json("/api/v1/conversations", { q: query, limit });
    this.#show("conversations", query ? "Conversations" : "Recent conversations", items.map(conversationOption));
    const isSearched = this.#admits("events") && query.length >= MIN_SEARCH_LETTERS;
    const hits = isSearched ? (await this.#json("/api/v1/search", { q: query, limit: MAX_EVENTS })).items : [];
    this.#show("events", "Events", hits.map(eventOption));
    this.#show("everywhere", "All conversations", [searchOption(query)]);
  }

  async #fetchNames(query) {
    const { agents, participants } = await this.#json("/", { part: "names", q: query });
    this.#show("agents", "Agents", agents.map(agentOption));
    this.#show("participants", "Conversations of a participant", participants.map(participantOption));
  }

  #json(address, parameters) {
    return json(`${address}?${new URLSearchParams(parameters)}`, { signal: this.#request.signal });
  }

  #cancel() {
    clearTimeout(this.#timer);
    this.#request?.abort();
  }

  #showStatus(text) {
    this.querySelector("[role=status]").textContent = text;
  }
}

const isShortcut = (event) => isCommand(event) && event.key.toLowerCase() === "k";

customElements.define("command-palette", CommandPalette);
