/** Fetches the results of a search within one conversation. Used by `<transcript-search>`. */
import { json } from "./fetch.js";

const PAGE = 100; // results of one request
const MAX_RESULTS = 500;

/**
 * Returns the seqs of the events that have all words, the last one as a prefix, ascending, and whether older ones were left out.
 * Throws `RequestError`.
 * @param {DOMStringMap} place  `address` of the search, `conversation`, and `at`, the last event to include, if not all
 * @param {string} words @param {AbortSignal} signal
 * @returns {Promise<{seqs: number[], hasMore: boolean}>}
 */
export async function fetchResults({ address, conversation, at }, words, signal) {
  const [seqs, q] = [[], words.replace(/([\p{L}\p{N}])$/u, "$1*")];
  let before = "";
  do {
    const { items, cursor } = await json(`${address}?${new URLSearchParams({ q, conversation, limit: PAGE, before })}`, { signal });
    seqs.push(...items.map(({ seq }) => seq).filter((seq) => !at || seq <= Number(at)));
    before = cursor ?? "";
  } while (before && seqs.length < MAX_RESULTS);
  return { seqs: seqs.reverse(), hasMore: Boolean(before) };
}
