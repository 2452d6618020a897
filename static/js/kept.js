/** What this browser keeps, as text by key. Where storage is refused, or full, it lasts as long as the page. */

class Kept {
  #name;
  #inPage = new Map(); // what storage did not take

  /** @param {"localStorage" | "sessionStorage"} name */
  constructor(name) {
    this.#name = name;
  }

  /** Whether it outlasts the page. */
  get isStored() {
    return this.#there !== null;
  }

  /** @returns {string[]} */
  get keys() {
    return Object.keys(this.#there ?? {});
  }

  /** @param {string} key @returns {string | null} */
  get(key) {
    return this.#inPage.get(key) ?? this.#there?.getItem(key) ?? null;
  }

  /** @param {string} key @param {string | null} text null: no longer */
  set(key, text) {
    this.#inPage.delete(key);
    try {
      if (text === null) this.#there?.removeItem(key);
      else globalThis[this.#name].setItem(key, text);
    } catch {
      this.#inPage.set(key, text);
    }
  }

  /** Refused, the name itself throws or has nothing. */
  get #there() {
    try {
      return globalThis[this.#name] ?? null;
    } catch {
      return null;
    }
  }
}

/** In every window, until it is changed. */
export const kept = new Kept("localStorage");

/** In this window, also when its page is loaded again. */
export const keptInWindow = new Kept("sessionStorage");
