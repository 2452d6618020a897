/**
 * The server's time, for ages and deadlines in a browser whose own clock may be wrong. It is taken from the time at which the
 * page was rendered (`data-drawn-at`), and then from the `Date` header of each response to `fetch.js`.
 */
const SLACK_MS = 5_000; // smaller differences may come from the duration of a request, and are ignored
let offsetMs = 0;

/** Returns the server's current time. @returns {Date} */
export const serverNow = () => new Date(Date.now() + offsetMs);

/**
 * Update the offset between both clocks. Called by `fetch.js`.
 * @param {number} serverMs  the server's time when the browser's clock was at `browserMs`; NaN: unknown
 * @param {number} [browserMs]
 */
export function noteServerTime(serverMs, browserMs = Date.now()) {
  if (Number.isFinite(serverMs)) offsetMs = Math.abs(serverMs - browserMs) < SLACK_MS ? 0 : serverMs - browserMs;
}

const drawnAtMs = Number(document.body?.dataset.drawnAt || NaN) / 1000; // from µs
const { responseStart = 0 } = performance.getEntriesByType("navigation")[0] ?? {};
noteServerTime(drawnAtMs, Date.now() - (performance.now() - responseStart));
