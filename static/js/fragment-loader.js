/** Fetches parts of the current page, by the URL in the address bar. Used by elements that render them. */
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";

export class FragmentLoader {
  #requests = new Map(); // name of a part → AbortController of its latest request

  /**
   * Fetch a part. Aborts an earlier request for the same part.
   * @param {string} name
   * @param {(error: RequestError) => void} fail called if the request fails
   * @returns {Promise<DocumentFragment | undefined>} undefined if the request was aborted or has failed
   */
  async load(name, fail) {
    this.#requests.get(name)?.abort();
    const request = new AbortController();
    this.#requests.set(name, request);
    const url = new URL(location.href);
    url.searchParams.set("part", name);
    try {
      return render(await markup(url, { signal: request.signal }));
    } catch (error) {
      if (error instanceof RequestError) fail(error);
      else if (error.name !== "AbortError") throw error;
      return undefined;
    }
  }
}
