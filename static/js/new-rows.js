/** Counts new rows and collects their senders' names; text added to a row does not count, nor does a row that the level of detail hides. */

const HIDDEN = { chat: ["steps", "all"], steps: ["all"] }; // `data-detail` of the transcript → `data-level` of the rows it hides

const isHidden = (row) => HIDDEN[row.closest(".transcript")?.dataset.detail]?.includes(row.dataset.level);

export class NewRows {
  #count = 0;
  #names = new Set();

  /** @param {HTMLElement | null} row  null: no new row */
  add(row) {
    if (!row || isHidden(row)) return;
    this.#count += 1;
    const name = row.querySelector(".name")?.textContent;
    const { by } = row.dataset; // the person who sent it under that name
    if (name) this.#names.add(by ? `${name}, sent by ${by}` : name);
  }

  /** Add the result of another counter's `take`. @param {{count: number, names: string[]}} result */
  merge({ count, names }) {
    this.#count += count;
    names.forEach((name) => this.#names.add(name));
  }

  /** Return the count and names, and reset both. @returns {{count: number, names: string[]}} */
  take() {
    const result = { count: this.#count, names: [...this.#names] };
    this.#count = 0;
    this.#names.clear();
    return result;
  }

  get count() {
    return this.#count;
  }

  /** Returns a label, such as "4 new from Format Coordinator". @param {string} noun after the number */
  words(noun = "new") {
    const [name, ...others] = this.#names;
    const from = others.length ? `${others.length + 1} participants` : name;
    return `${this.#count.toLocaleString("en")} ${noun}${from ? ` from ${from}` : ""}`;
  }
}
