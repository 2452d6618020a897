/** Words not yet sent, by conversation, in this browser. Where storage is off they last as long as the page. */
import { kept as storage } from "./kept.js";
import { lastVisibleSeq } from "./last-visible-seq.js";

const PREFIX = "switchboard-draft:";
const KEPT_MS = 30 * 24 * 3600_000; // of words that nobody came back to

/**
 * One message on its way: the id under which it is stored once, and what its writer had seen. What is kept of it is
 * `{content, …}` as the form has it, `clientId` and `seen`.
 */
export class Draft {
  #key;
  #seen; // the newest event that was drawn when these words were begun
  #asked = 0; // the event about which the writer was asked

  /** @param {string} key of the person and the conversation @param {string} clientId of the first message */
  constructor(key, clientId) {
    this.#key = PREFIX + key;
    this.clientId = clientId;
  }

  get seen() {
    return this.#seen ?? lastVisibleSeq();
  }

  /** Take over what was kept. @returns {{content: string} | null} */
  restore() {
    forgetOld();
    const kept = parsed(this.#key);
    if (!kept?.content) return null;
    this.clientId = kept.clientId;
    this.#seen = kept.seen ?? undefined;
    return kept;
  }

  /** Other words are another message: they get an id of their own. Who was asked about an event has seen it. */
  edited(isEmpty) {
    this.clientId = newId();
    this.#seen = isEmpty ? undefined : Math.max(this.seen, this.#asked);
  }

  /** @param {{content: string} | null} words null: they were sent */
  keep(words) {
    if (!words) return store(this.#key, null);
    return store(this.#key, { ...words, clientId: this.clientId, seen: this.seen, at: Date.now() });
  }

  /** @param {number} seq another person spoke there meanwhile */
  asked(seq) {
    this.#asked = seq;
  }

  /** The next words are another message. */
  begin() {
    this.clientId = newId();
    this.#seen = undefined;
    this.#asked = 0;
  }

  /** Be told of what another window of this browser sent or threw away. @param {AbortSignal} signal ends it */
  onSentElsewhere(act, signal) {
    const tell = ({ key, oldValue, newValue }) => key === this.#key && oldValue && !newValue && act(JSON.parse(oldValue));
    addEventListener("storage", tell, { signal });
  }
}

/** A new id, also where the page is not in a secure context. */
export const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

function parsed(key) {
  try {
    return JSON.parse(storage.get(key));
  } catch {
    return null;
  }
}

const store = (key, value) => storage.set(key, value && JSON.stringify(value));

function forgetOld() {
  for (const key of storage.keys.filter((one) => one.startsWith(PREFIX)))
    if (Date.now() - (parsed(key)?.at ?? Date.now()) > KEPT_MS) store(key, null);
}
