/** The listbox under a combobox: groups of options, one of them chosen, the focus stays in the input (APG pattern). */

import { composes } from "./keys.js";
import { markWords } from "./marked-words.js";

/**
 * `symbol`, `state` with its words or a participant's `mark` stand before the words; `at` is when it last changed.
 * @typedef {{kind: string, letters: string, hue: ?number, pattern: number}} Mark
 * @typedef {{symbol?: string, state?: {state: string, words: string}, mark?: Mark, words: string, note?: string, at?: string,
 *   key?: string, href?: string, act?: () => void}} Option
 */

export class Options {
  #input;
  #list;
  #template;
  #acts = new WeakMap();
  #marked = ""; // words that are marked in the options

  /** @param {HTMLInputElement} input @param {HTMLElement} list @param {HTMLTemplateElement} template of a group with one option */
  constructor(input, list, template) {
    this.#input = input;
    this.#list = list;
    this.#template = template;
  }

  /** How many there are. */
  get size() {
    return this.#all.length;
  }

  /** Empty the list. */
  clear() {
    this.#list.replaceChildren();
    this.#input.removeAttribute("aria-activedescendant");
  }

  /** Begin another query: no answer to the last one is chosen any more, each stays in sight till its group is drawn anew. */
  restart(words) {
    this.#marked = words;
    for (const group of this.#list.children) group.ariaBusy = "true";
    this.#choose(undefined);
  }

  /**
   * Draw a group, in the place of the one with the same id. The choice stays where it is, else goes to the first.
   * @param {string} id
   * @param {string} name
   * @param {Option[]} options
   */
  show(id, name, options) {
    const group = this.#template.content.firstElementChild.cloneNode(true);
    const model = group.querySelector("[role=option]");
    model.remove();
    group.id = `${this.#list.id}-${id}`;
    group.setAttribute("aria-label", name);
    group.querySelector(".group").textContent = name;
    group.append(...options.map((option, n) => this.#draw(model.cloneNode(true), option, `${group.id}-${n}`)));
    group.hidden = !options.length;
    const old = this.#list.querySelector(`#${group.id}`);
    if (old) old.replaceWith(group);
    else this.#list.append(group);
    markWords(this.#list, this.#marked);
    if (!this.#chosen) this.#choose(this.#all[0]);
  }

  /** Take a key of the input: arrows choose, Enter does. */
  key(event) {
    if (composes(event)) return;
    const all = this.#all;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && all.length) this.#choose(all[(all.indexOf(this.#chosen) + step + all.length) % all.length]);
    else if (event.key === "Enter" && this.#chosen) this.#chosen.click();
    else return;
    event.preventDefault();
  }

  /** Take a click on an option. Links go by themselves; answers whether one was hit. */
  click(event) {
    const option = event.target.closest("[role=option]");
    if (option) this.#acts.get(option)?.();
    return Boolean(option);
  }

  get #all() {
    return [...this.#list.querySelectorAll("[role=group]:not([aria-busy=true]) > [role=option]")];
  }

  get #chosen() {
    return this.#list.querySelector("[aria-selected=true]");
  }

  #choose(option) {
    this.#chosen?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.#input.setAttribute("aria-activedescendant", option.id);
    else this.#input.removeAttribute("aria-activedescendant");
  }

  #draw(element, { symbol, state, mark, words, note = "", at, key = "", href, act }, id) {
    element.id = id;
    if (href) element.href = href;
    if (act) this.#acts.set(element, act);
    const icon = element.querySelector(".icon");
    element.querySelector("span").textContent = words;
    if (mark) icon.replaceWith(drawnMark(mark));
    else icon.firstElementChild.setAttribute("href", `#i-${symbol}`);
    if (state) icon.replaceWith(drawnState(state, icon));
    if (at) Object.assign(element.querySelector("time"), { dateTime: at, hidden: false });
    element.querySelector("small").textContent = note;
    element.querySelector("kbd").textContent = key;
    element.querySelector("kbd").hidden = !key;
    return element;
  }
}

/** The mark of a participant, as `macros/mark.html` draws it. @param {Mark} mark */
const drawnMark = ({ kind, letters, hue, pattern }) => {
  const element = Object.assign(document.createElement("span"), { className: "mark", textContent: letters, ariaHidden: "true" });
  const shown = { kind: kind === "agent" ? "" : kind, hue, pattern, size: "small" };
  for (const [name, value] of Object.entries(shown)) if (value) element.dataset[name] = value;
  return element;
};

/** A state in its color; its words are read out. */
const drawnState = ({ state, words }, icon) => {
  const element = Object.assign(document.createElement("span"), { className: "state", title: words, role: "img", ariaLabel: words });
  element.dataset.state = state;
  element.append(icon.cloneNode(true));
  return element;
};
