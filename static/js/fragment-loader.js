/** Parts of this page, asked for by the address as it is now. Called by elements that draw them. */
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";

export class FragmentLoader {
  #asking = new Map(); // what is under way, by name

  /**
   * Ask for a part. A later question for the same one ends an earlier one.
   * @param {string} name
   * @param {(error: RequestError, name: string) => void} [fail] told why there is no answer
   * @returns {Promise<DocumentFragment | undefined>} none where it was ended, or the server did not answer
   */
  async ask(name, fail = () => {}) {
    this.#asking.get(name)?.abort();
    const asking = new AbortController();
    this.#asking.set(name, asking);
    const address = new URL(location.href);
    address.searchParams.set("part", name);
    try {
      return render(await markup(address, { signal: asking.signal }));
    } catch (error) {
      if (error instanceof RequestError) fail(error, name);
      else if (error.name !== "AbortError") throw error;
      return undefined;
    }
  }
}
