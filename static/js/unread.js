/** How many messages of each conversation the person has seen. Counts are drawn here, since frames are everybody's. */
import { RequestError, json } from "./fetch.js";

const MAX_CHARACTERS = 4_000; // characters of ids in one address

export class Unread {
  #seen = new Map();

  /** Learn what the server drew into a row of the page. @param {HTMLElement} row */
  learn(row) {
    if (row.dataset.seen !== undefined) this.#seen.set(row.dataset.key, Number(row.dataset.seen));
  }

  /** @param {string} key */
  knows(key) {
    return this.#seen.has(key);
  }

  /**
   * Ask for the markers of these conversations; one without a marker has been seen to 0, a recording to its end. Without an answer the counts
   * stay as they are.
   * @param {string[]} keys
   */
  async ask(keys) {
    for (const some of inParts(keys)) {
      const query = new URLSearchParams(some.map((key) => ["ids", key]));
      const answer = await json(`/api/v1/read-markers?${query}`).catch(unanswered);
      if (!answer) return;
      for (const key of some) if (!this.knows(key)) this.#seen.set(key, null);
      for (const item of answer.items) this.#seen.set(item.conversation_id, item.messages_seen);
    }
  }

  /** Draw the count of a row; nothing while the marker is not known. @param {HTMLElement} row */
  draw(row) {
    const { key, messages } = row.dataset;
    const seen = this.#seen.get(key) ?? (this.knows(key) && !("imported" in row.dataset) ? 0 : Infinity);
    const count = Math.max(0, Number(messages) - seen);
    const badge = row.querySelector(".unread");
    row.toggleAttribute("data-unread", count > 0);
    badge.hidden = count === 0;
    badge.querySelector("[data-unread-count]").textContent = compact(count);
  }
}

/** The same words as `fleet.compact`. @param {number} count */
function compact(count) {
  if (count < 10_000) return count.toLocaleString("en");
  return count < 1_000_000 ? `${Math.floor(count / 1000)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

function unanswered(error) {
  if (!(error instanceof RequestError)) throw error;
}

function* inParts(keys) {
  let part = [];
  let length = 0;
  for (const key of keys) {
    const more = encodeURIComponent(key).length + 5;
    if (part.length && length + more > MAX_CHARACTERS) {
      yield part;
      part = [];
      length = 0;
    }
    part.push(key);
    length += more;
  }
  if (part.length) yield part;
}
