/** Leaves pages that show a conversation id that was erased: the conversation's pages go to its new address, others are reloaded. */
import { windowStore } from "./safe-storage.js";

/**
 * Go from a conversation's former address to its new one; reload a page that is not of this conversation.
 * @param {string} from  its former id
 * @param {string} to  its new id
 */
export function goTo(from, to) {
  const segments = location.pathname.split("/");
  const idIndex = segments.indexOf("conversations") + 1;
  const shownId = decodeURIComponent(segments[idIndex] ?? "");
  if (idIndex === 0 || (shownId !== from && !shownId.startsWith("~"))) return location.reload();
  segments[idIndex] = encodeURIComponent(to);
  return location.replace(segments.join("/") + location.search + location.hash);
}

const SLACK_US = 10_000_000; // allows for the clock difference of two servers, and for a page rendered while an id is being erased
const STORAGE_KEY = "switchboard-erased"; // storage key: the erasure for which a page was reloaded, and when that page was rendered

/**
 * Whether the page may show an id that was erased since it was rendered. A page that was reloaded for that erasure does not.
 * @param {number} [erasedAt]  when the latest id was erased, in µs of the server's clock
 */
export function showsErasedId(erasedAt = 0) {
  const drawnAt = Number(document.body.dataset.drawnAt || Infinity);
  if (erasedAt < drawnAt - SLACK_US) return false;
  if (!windowStore.isStored && performance.getEntriesByType("navigation")[0]?.type === "reload") return false;
  const [reloadedFor, previouslyDrawnAt] = JSON.parse(windowStore.get(STORAGE_KEY) ?? "[]");
  if (reloadedFor === erasedAt && drawnAt > previouslyDrawnAt) return false;
  windowStore.set(STORAGE_KEY, JSON.stringify([erasedAt, drawnAt]));
  return true;
}

/** Returns the id that this page's conversation has once its own is erased; sent when subscribing again after a lost connection. */
export const erasedId = () => document.querySelector("[data-erased-id]")?.dataset.erasedId;
