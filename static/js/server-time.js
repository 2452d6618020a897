/**
 * The server's time, in a browser whose own clock may be wrong: from when the page was rendered (`data-drawn-at`), and
 * from the `Date` of each answer to a script since. Ages, deadlines and what counts as recent go by it.
 */
const SLACK_MS = 5_000; // less is what an answer may have taken, and is no error of the clock
let offsetMs = 0;

/** The time now, as the server has it. @returns {Date} */
export const serverNow = () => new Date(Date.now() + offsetMs);

/**
 * Compare with the server's time.
 * @param {number} serverMs  as it was when the browser's clock said `hereMs`; not a number: not told
 * @param {number} [hereMs]
 */
export function noteServerTime(serverMs, hereMs = Date.now()) {
  if (Number.isFinite(serverMs)) offsetMs = Math.abs(serverMs - hereMs) < SLACK_MS ? 0 : serverMs - hereMs;
}

const drawnAtMs = Number(document.body?.dataset.drawnAt || NaN) / 1000; // from µs
const { responseStart = 0 } = performance.getEntriesByType("navigation")[0] ?? {};
noteServerTime(drawnAtMs, Date.now() - (performance.now() - responseStart));
