/** A conversation whose id was erased has another address: its pages go there, any other page is loaded again. */
import { keptInWindow } from "./kept.js";

/**
 * @param {string} from  the id that it had
 * @param {string} to  the id that it has now
 */
export function goTo(from, to) {
  const segments = location.pathname.split("/");
  const at = segments.indexOf("conversations") + 1;
  const there = decodeURIComponent(segments[at] ?? "");
  if (at === 0 || (there !== from && !there.startsWith("~"))) return location.reload();
  segments[at] = encodeURIComponent(to);
  return location.replace(segments.join("/") + location.search + location.hash);
}

const SLACK_US = 10_000_000; // by which the clocks of two servers may differ, and a page is drawn while an id is erased
const KEPT = "switchboard-erased"; // the erasure for which a page was loaded again, and when that page was drawn

/**
 * Whether the page may show an id that was erased since it was drawn. Loaded again for that, it is taken for right.
 * @param {number} [erasedAt]  when the last id was erased, in µs by the server's clock
 */
export function showsErasedId(erasedAt = 0) {
  const drawnAt = Number(document.body.dataset.drawnAt || Infinity);
  if (erasedAt < drawnAt - SLACK_US) return false;
  if (!keptInWindow.isStored && performance.getEntriesByType("navigation")[0]?.type === "reload") return false;
  const [reloadedFor, wasDrawnAt] = JSON.parse(keptInWindow.get(KEPT) ?? "[]");
  if (reloadedFor === erasedAt && drawnAt > wasDrawnAt) return false;
  keptInWindow.set(KEPT, JSON.stringify([erasedAt, drawnAt]));
  return true;
}

/** The id that the conversation of this page has once its own is erased: who was away asks for it. */
export const erasedId = () => document.querySelector("[data-erased-id]")?.dataset.erasedId;
