/** The listbox under a combobox: groups of options, one of them chosen, the focus stays in the input (APG pattern). */

import { composes } from "./keys.js";
import { markWords } from "./marked-words.js";

/** @typedef {{symbol: string, words: string, note?: string, key?: string, href?: string, act?: () => void}} Option */

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

  #draw(element, { symbol, words, note = "", key = "", href, act }, id) {
    element.id = id;
    if (href) element.href = href;
    if (act) this.#acts.set(element, act);
    element.querySelector("use").setAttribute("href", `#i-${symbol}`);
    element.querySelector("span").textContent = words;
    element.querySelector("small").textContent = note;
    element.querySelector("kbd").textContent = key;
    element.querySelector("kbd").hidden = !key;
    return element;
  }
}
