/** The listbox of a combobox (APG pattern): groups of options, one of them selected; the focus stays in the input. */

import { composes } from "./keys.js";
import { markWords } from "./marked-words.js";

/**
 * Before the label stands a `symbol`, a `state` with its words, or a participant's `mark`. `at`: ISO time of the last change.
 * @typedef {{kind: string, letters: string, hue: ?number, pattern: number}} Mark
 * @typedef {{symbol?: string, state?: {state: string, words: string}, mark?: Mark, label: string, note?: string, at?: string,
 *   key?: string, href?: string, act?: () => void}} Option
 */

export class Options {
  #input;
  #list;
  #template;
  #actions = new WeakMap();
  #highlighted = ""; // the query whose words are highlighted

  /** @param {HTMLInputElement} input @param {HTMLElement} list @param {HTMLTemplateElement} template a group with one option */
  constructor(input, list, template) {
    this.#input = input;
    this.#list = list;
    this.#template = template;
  }

  /** How many options can be selected. */
  get size() {
    return this.#all.length;
  }

  /** Remove all options. */
  clear() {
    this.#list.replaceChildren();
    this.#input.removeAttribute("aria-activedescendant");
  }

  /** Start a new query: options of the previous one stay visible until their group is rendered again, but cannot be selected. */
  restart(query) {
    this.#highlighted = query;
    for (const group of this.#list.children) group.ariaBusy = "true";
    this.#select(undefined);
  }

  /**
   * Render a group; it replaces the one with the same id. If no option is selected then, the first one is.
   * @param {string} id
   * @param {string} name
   * @param {Option[]} options
   */
  show(id, name, options) {
    const group = this.#template.content.firstElementChild.cloneNode(true);
    const optionTemplate = group.querySelector("[role=option]");
    optionTemplate.remove();
    group.id = `${this.#list.id}-${id}`;
    group.setAttribute("aria-label", name);
    group.querySelector(".group").textContent = name;
    group.append(...options.map((option, n) => this.#render(optionTemplate.cloneNode(true), option, `${group.id}-${n}`)));
    group.hidden = !options.length;
    const previous = this.#list.querySelector(`#${group.id}`);
    if (previous) previous.replaceWith(group);
    else this.#list.append(group);
    markWords(this.#list, this.#highlighted);
    if (!this.#selected) this.#select(this.#all[0]);
  }

  /** Handle a key pressed in the input: arrows select an option, Enter activates it. */
  handleKey(event) {
    if (composes(event)) return;
    const all = this.#all;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && all.length) this.#select(all[(all.indexOf(this.#selected) + step + all.length) % all.length]);
    else if (event.key === "Enter" && this.#selected) this.#selected.click();
    else return;
    event.preventDefault();
  }

  /** Handle a click. Returns whether it hit an option; links are followed by the browser. */
  handleClick(event) {
    const option = event.target.closest("[role=option]");
    if (option) this.#actions.get(option)?.();
    return Boolean(option);
  }

  get #all() {
    return [...this.#list.querySelectorAll("[role=group]:not([aria-busy=true]) > [role=option]")];
  }

  get #selected() {
    return this.#list.querySelector("[aria-selected=true]");
  }

  #select(option) {
    this.#selected?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.#input.setAttribute("aria-activedescendant", option.id);
    else this.#input.removeAttribute("aria-activedescendant");
  }

  #render(element, { symbol, state, mark, label, note = "", at, key = "", href, act }, id) {
    element.id = id;
    if (href) element.href = href;
    if (act) this.#actions.set(element, act);
    const icon = element.querySelector(".icon");
    element.querySelector("span").textContent = label;
    if (mark) icon.replaceWith(markElement(mark));
    else icon.firstElementChild.setAttribute("href", `#i-${symbol}`);
    if (state) icon.replaceWith(stateElement(state, icon));
    if (at) Object.assign(element.querySelector("time"), { dateTime: at, hidden: false });
    element.querySelector("small").textContent = note;
    element.querySelector("kbd").textContent = key;
    element.querySelector("kbd").hidden = !key;
    return element;
  }
}

/** Returns the mark of a participant, as `macros/mark.html` renders it. @param {Mark} mark */
const markElement = ({ kind, letters, hue, pattern }) => {
  const element = Object.assign(document.createElement("span"), { className: "mark", textContent: letters, ariaHidden: "true" });
  const shown = { kind: kind === "agent" ? "" : kind, hue, pattern, size: "small" };
  for (const [name, value] of Object.entries(shown)) if (value) element.dataset[name] = value;
  return element;
};

/** Returns a state's icon in its color; its words are its accessible name. */
const stateElement = ({ state, words: name }, icon) => {
  const element = Object.assign(document.createElement("span"), { className: "state", title: name, role: "img", ariaLabel: name });
  element.dataset.state = state;
  element.append(icon.cloneNode(true));
  return element;
};
