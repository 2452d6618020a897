/**
 * The list of a page with the filter and the counts beside it, drawn as the address says. What does not come is told in the
 * filter's strip, with what is shown instead. Used by `audit-log` and `call-list`.
 */
import { FragmentLoader } from "./fragment-loader.js";
import { keepingFocus } from "./keep-focus.js";
import { notApplied } from "./list-filter.js";

/** What the strip says of a part that did not come. */
const FAILED = {
  filter: notApplied,
  news: ({ sentence }) => `New rows not shown. ${sentence} The rows are those from before.`,
  facets: ({ sentence }) => `${sentence} The counts beside the filters are those from before.`,
  totals: ({ sentence }) => `${sentence} The figures above the list are those from before.`,
};

export class FilteredList {
  #root;
  #parts = new FragmentLoader();

  /** @param {HTMLElement} root has the list, its `list-filter`, the counts and the links to files of it */
  constructor(root) {
    this.#root = root;
  }

  /** Whether something that the filter asked for is not there yet. */
  get hasFailed() { return this.#filter.hasFailed; }

  /** Draw the list for another filter, the counts, and where else the filter stands. @param {(list: DocumentFragment) => void} draw */
  async filter(draw) {
    for (const link of this.#root.querySelectorAll("[data-export]")) link.search = location.search;
    await this.#renew(draw, "filter");
  }

  /**
   * Draw the list because there is more, and the counts. Answers whether all came.
   * @param {(list: DocumentFragment) => void} draw @param {() => void} again does the same
   */
  showNews(draw, again) {
    return this.#renew(draw, "news", again);
  }

  /** Ask for another part of the page. @param {"totals"} name @param {() => void} again @returns {Promise<DocumentFragment | undefined>} */
  ask(name, again) {
    return this.#parts.ask(name, this.#failing(name, again));
  }

  /** Ask for the list that nobody waits for. @param {() => void} fail @returns {Promise<DocumentFragment | undefined>} */
  look(fail) {
    return this.#parts.ask("list", fail);
  }

  get #filter() { return this.#root.querySelector("list-filter"); }
  get #chosen() { return new URLSearchParams(new FormData(this.#root.querySelector("[data-filter]"))).toString(); }

  async #renew(draw, reason, again) {
    const chosen = this.#chosen;
    const list = await this.#parts.ask("list", this.#failing(reason, again));
    if (!list) return false;
    draw(list);
    const facets = await this.#parts.ask("facets", this.#failing("facets", again));
    if (!facets || this.#chosen !== chosen) return false; // more was chosen
    keepingFocus(this.#root.querySelector("[data-facets]"), facets);
    this.#filter.settle();
    return true;
  }

  #failing(part, again) {
    return (error) => this.#filter.fail(FAILED[part](error), again);
  }
}
