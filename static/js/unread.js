/** Unread counts of conversations, by how many messages the person has seen. Computed here, since all people receive the same frames. */
import { RequestError, json } from "./fetch.js";
import { setLabel } from "./label-text.js";

const MAX_CHARACTERS = 4_000; // of the ids in one address

export class Unread {
  #messagesSeen = new Map();

  /** Read the number of seen messages from a row that the server rendered. @param {HTMLElement} row */
  learn(row) {
    if (row.dataset.seen !== undefined) this.#messagesSeen.set(row.dataset.key, Number(row.dataset.seen));
  }

  /** Whether the number is loaded. @param {string} key */
  knows(key) {
    return this.#messagesSeen.has(key);
  }

  /**
   * Fetch the read markers of these conversations. Without a marker, no message counts as seen; of an imported conversation, all
   * do. If a request fails, the counts stay as they are.
   * @param {string[]} keys
   */
  async ask(keys) {
    for (const batch of batches(keys)) {
      const query = new URLSearchParams(batch.map((key) => ["ids", key]));
      const response = await json(`/api/v1/read-markers?${query}`).catch(ignoreRequestError);
      if (!response) return;
      for (const key of batch) if (!this.knows(key)) this.#messagesSeen.set(key, null);
      for (const item of response.items) this.#messagesSeen.set(item.conversation_id, item.messages_seen);
    }
  }

  /** Update the unread count of a row; none is shown before its marker is loaded. @param {HTMLElement} row */
  draw(row) {
    const { key, messages } = row.dataset;
    const seen = this.#messagesSeen.get(key) ?? (this.knows(key) && !("imported" in row.dataset) ? 0 : Infinity);
    const count = Math.max(0, Number(messages) - seen);
    const badge = row.querySelector(".unread");
    row.toggleAttribute("data-unread", count > 0);
    badge.hidden = count === 0;
    setLabel(badge.querySelector("[data-unread-count]"), compact(count));
  }
}

/** Returns a short form of a count, as `fleet.compact` does. @param {number} count */
function compact(count) {
  if (count < 10_000) return count.toLocaleString("en");
  return count < 1_000_000 ? `${Math.floor(count / 1000)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

function ignoreRequestError(error) {
  if (!(error instanceof RequestError)) throw error;
}

/** Splits keys into batches, each of which fits into one address. */
function* batches(keys) {
  let batch = [];
  let length = 0;
  for (const key of keys) {
    const keyLength = encodeURIComponent(key).length + 5; // "ids=" and "&"
    if (batch.length && length + keyLength > MAX_CHARACTERS) {
      yield batch;
      batch = [];
      length = 0;
    }
    batch.push(key);
    length += keyLength;
  }
  if (batch.length) yield batch;
}
