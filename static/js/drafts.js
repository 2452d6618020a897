/**
 * Drafts of messages, stored in this browser per person and conversation, or in the page if storage is refused. Used by
 * `message-composer`.
 */
import { localStore } from "./safe-storage.js";

const PREFIX = "switchboard-draft:";
const MAX_AGE_MS = 30 * 24 * 3600_000; // of a draft since its last change

/**
 * A message that is being written: its client id, under which the server stores it at most once, and the newest event that
 * its writer had seen. Stored as `{content, …}`, the fields of the form, with `clientId`, `seen` and `at`.
 */
export class Draft {
  #key;
  #seenSeq; // seq of the newest event on the page when this draft was begun
  #confirmedSeq = 0; // seq of the event about which the writer was asked to confirm

  /** @param {string} key of the person and the conversation @param {string} clientId of the first message */
  constructor(key, clientId) {
    this.#key = PREFIX + key;
    this.clientId = clientId;
  }

  get seen() {
    return this.#seenSeq ?? lastVisibleSeq();
  }

  /** Load the stored draft, with its id. @returns {{content: string} | null} */
  restore() {
    removeExpired();
    const stored = load(this.#key);
    if (!stored?.content) return null;
    this.clientId = stored.clientId;
    this.#seenSeq = stored.seen ?? undefined;
    return stored;
  }

  /** A changed text is another message, so it gets a new id. A writer who was asked to confirm has seen that event. */
  edited(isEmpty) {
    this.clientId = newId();
    this.#seenSeq = isEmpty ? undefined : Math.max(this.seen, this.#confirmedSeq);
  }

  /** Store the draft. @param {{content: string} | null} fields null: remove it */
  keep(fields) {
    store(this.#key, fields && { ...fields, clientId: this.clientId, seen: this.seen, at: Date.now() });
  }

  /** The writer is asked to confirm. @param {number} seq of the message that another person sent in the meantime */
  awaitConfirmation(seq) {
    this.#confirmedSeq = seq;
  }

  /** Remove the draft, which was sent. Other windows learn its client id first. */
  removeSent() {
    store(this.#key, { sent: this.clientId });
    store(this.#key, null);
  }

  /** Start the next message, after this one was sent. */
  begin() {
    this.clientId = newId();
    this.#seenSeq = undefined;
    this.#confirmedSeq = 0;
  }

  /**
   * Follow what other windows of this browser do with the stored draft.
   * @param {{sent: () => void, removed: () => void}} listeners  `sent`: this draft was sent; `removed`: none is stored anymore
   * @param {AbortSignal} signal
   */
  watch({ sent, removed }, signal) {
    const onStorage = ({ key, newValue }) => {
      if (key !== this.#key) return;
      if (!newValue) removed();
      else if (JSON.parse(newValue).sent === this.clientId) sent();
    };
    addEventListener("storage", onStorage, { signal });
  }
}

/** Returns a random id. `crypto.randomUUID` is missing where the page is not in a secure context. */
export const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Returns the seq of the newest event that is shown to the reader; 0 without a transcript. */
function lastVisibleSeq() {
  const transcript = document.querySelector("live-transcript");
  if (transcript?.isSubscribed) return Number(transcript.dataset.head);
  return Number([...document.querySelectorAll(".transcript .rows > [data-seq]")].at(-1)?.dataset.seq ?? 0);
}

function load(key) {
  try {
    return JSON.parse(localStore.get(key));
  } catch {
    return null;
  }
}

const store = (key, value) => localStore.set(key, value && JSON.stringify(value));

function removeExpired() {
  for (const key of localStore.keys.filter((storedKey) => storedKey.startsWith(PREFIX)))
    if (Date.now() - (load(key)?.at ?? Date.now()) > MAX_AGE_MS) store(key, null);
}
