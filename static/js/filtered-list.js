/**
 * The list of a page, with its filter and the counts beside it, rendered for the page's URL. Failed requests are shown in the
 * filter's strip, with what is shown instead.
 */
import { FragmentLoader } from "./fragment-loader.js";
import { replaceFields } from "./replace-fields.js";
import { notAppliedText } from "./list-filter.js";

/** What the strip says if a request fails, by what was requested. */
const FAILURE_TEXTS = {
  filter: notAppliedText,
  news: ({ sentence }) => `New rows not shown. ${sentence} The rows are those from before.`,
  facets: ({ sentence }) => `${sentence} The counts beside the filters are those from before.`,
  totals: ({ sentence }) => `${sentence} The figures above the list are those from before.`,
};

export class FilteredList {
  #root;
  #loader = new FragmentLoader();
  #applying = 0; // requests of the list and the counts that the user waits for

  /** @param {HTMLElement} root contains the list, its `list-filter`, the counts and the export links */
  constructor(root) {
    this.#root = root;
  }

  /** Whether the strip shows a failure. */
  get hasFailed() { return this.#filter.hasFailed; }

  /** Whether a filter is being applied: `fetchList` would abort its request. */
  get isApplying() { return this.#applying > 0; }

  /** Render the list, the counts and the export links for a changed filter. @param {(list: DocumentFragment) => void} renderList */
  async applyFilter(renderList) {
    for (const link of this.#root.querySelectorAll("[data-export]")) link.search = location.search;
    await this.#refresh(renderList, "filter");
  }

  /**
   * Render the list with its new rows, and the counts.
   * @param {(list: DocumentFragment) => void} renderList
   * @param {() => void} retry  called by "Try again"
   * @returns {Promise<boolean>} whether both were rendered
   */
  showNews(renderList, retry) {
    return this.#refresh(renderList, "news", retry);
  }

  /** Fetch another part of the page. @param {"totals"} name @param {() => void} retry @returns {Promise<DocumentFragment | undefined>} */
  fetchPart(name, retry) {
    return this.#loader.load(name, this.#failureHandler(name, retry));
  }

  /** Fetch the list in the background: a failure is not shown. @param {(error: RequestError) => void} onError @returns {Promise<DocumentFragment | undefined>} */
  fetchList(onError) {
    return this.#loader.load("list", onError);
  }

  get #filter() { return this.#root.querySelector("list-filter"); }
  get #selection() { return new URLSearchParams(new FormData(this.#root.querySelector("[data-filter]"))).toString(); }

  async #refresh(...change) {
    this.#applying += 1;
    try {
      return await this.#apply(...change);
    } finally {
      this.#applying -= 1;
    }
  }

  async #apply(renderList, cause, retry) {
    const selection = this.#selection;
    const list = await this.#loader.load("list", this.#failureHandler(cause, retry));
    if (!list) return false;
    renderList(list);
    const facets = await this.#loader.load("facets", this.#failureHandler("facets", retry));
    if (!facets || this.#selection !== selection) return false; // the filter was changed during the request
    replaceFields(this.#root.querySelector("[data-facets]"), facets);
    this.#filter.settle();
    return true;
  }

  #failureHandler(requested, retry) {
    return (error) => this.#filter.fail(FAILURE_TEXTS[requested](error), retry);
  }
}
