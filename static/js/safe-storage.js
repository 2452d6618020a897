/** Web storage that never throws. If the browser refuses it, or it is full, values last as long as the page. */

class SafeStorage {
  #name;
  #inMemory = new Map(); // values that the browser did not store

  /** @param {"localStorage" | "sessionStorage"} name */
  constructor(name) {
    this.#name = name;
  }

  /** Whether values outlast the page. */
  get isStored() {
    return this.#storage !== null;
  }

  /** @returns {string[]} */
  get keys() {
    return Object.keys(this.#storage ?? {});
  }

  /** @param {string} key @returns {string | null} */
  get(key) {
    return this.#inMemory.get(key) ?? this.#storage?.getItem(key) ?? null;
  }

  /** @param {string} key @param {string | null} text null: remove it */
  set(key, text) {
    this.#inMemory.delete(key);
    try {
      if (text === null) this.#storage?.removeItem(key);
      else globalThis[this.#name].setItem(key, text);
    } catch {
      this.#inMemory.set(key, text);
    }
  }

  /** The browser's storage, or null: where it is refused, its global is missing or throws. */
  get #storage() {
    try {
      return globalThis[this.#name] ?? null;
    } catch {
      return null;
    }
  }
}

/** `localStorage`: shared by all windows. */
export const localStore = new SafeStorage("localStorage");

/** `sessionStorage`: of this window, also after a reload. */
export const windowStore = new SafeStorage("sessionStorage");
