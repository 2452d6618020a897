/** Which rows are new since somebody last took notice, and whose they are. Text that grows is no news. */

export class UnreadCounter {
  #count = 0;
  #names = new Set();

  /** @param {HTMLElement | null} row null: nothing new was drawn */
  add(row) {
    if (!row) return;
    this.#count += 1;
    const name = row.querySelector(".name")?.textContent;
    const { by } = row.dataset; // a person who spoke under that name
    if (name) this.#names.add(by ? `${name}, sent by ${by}` : name);
  }

  /** Merge what another one took. */
  merge({ count, names }) {
    this.#count += count;
    names.forEach((name) => this.#names.add(name));
  }

  /** Answer what is new and start again. @returns {{count: number, names: string[]}} */
  take() {
    const taken = { count: this.#count, names: [...this.#names] };
    this.#count = 0;
    this.#names.clear();
    return taken;
  }

  get count() {
    return this.#count;
  }

  /** "4 new from Format Coordinator", with `noun` between. */
  words(noun = "new") {
    const [name, ...others] = this.#names;
    const from = others.length ? `${others.length + 1} participants` : name;
    return `${this.#count.toLocaleString("en")} ${noun}${from ? ` from ${from}` : ""}`;
  }
}
