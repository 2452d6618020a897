/**
 * The times of every page, rendered in the browser's time zone and updated by one timer. `<time datetime data-age>` shows
 * the age, "6 min", or with `data-age="ago"` as a sentence needs it, "6 min ago"; `<time datetime data-clock>` the time of
 * day: `data-clock="time"` without the date, which a line above shows, `data-clock="minute"` without seconds. A click on
 * any swaps the two forms everywhere. The title is the time in UTC. `<time datetime data-elapsed>` shows the time since
 * then as a duration that goes on.
 */
import { setLabel } from "./label-text.js";
import { localStore } from "./safe-storage.js";
import { serverNow } from "./server-time.js";

const TICK_MS = 10_000;
const TIMES = "time[data-age], time[data-clock], time[data-elapsed]";
const STORAGE_KEY = "switchboard-times"; // "swapped" while ages are shown as times of day, and the reverse
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const year = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

/**
 * Returns how long ago a time was: "now", "40 s", "6 min", "2 h", then the date; for the future "in 6 min".
 * @param {Date} then
 * @param {Date} [now]
 */
export function age(then, now = serverNow()) {
  const seconds = (now - then) / 1000;
  if (seconds <= -10) return seconds > -24 * 3600 ? `in ${age(now, then)}` : timeOfDay(then, now);
  if (seconds < 10) return "now";
  if (seconds < 60) return `${Math.floor(seconds / 10) * 10} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 24 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return dateOf(then, now);
}

/** Returns a duration that goes on, in steps of 10 s, as the server does: "40 s", "4 min 10 s", "1.2 h". @param {number} ms */
export function elapsed(ms) {
  const seconds = Math.max(0, Math.floor(ms / TICK_MS) * 10);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  return `${(seconds / 3600).toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 })} h`;
}

const dateOf = (then, now) => (then.getFullYear() === now.getFullYear() ? day : year).format(then);

/**
 * Returns the time of day, with the date unless it is today, and the year unless it is this one.
 * @param {Date} then
 * @param {Date} [now]
 * @param {Intl.DateTimeFormat} [time] with or without seconds
 */
export function timeOfDay(then, now = serverNow(), time = clock) {
  return then.toDateString() === now.toDateString() ? time.format(then) : `${dateOf(then, now)} ${time.format(then)}`;
}

/** Returns a text of the server with its times, "2026-11-22 08:30:05 UTC", in the browser's time zone. @param {string} text */
export const withLocalTimes = (text) =>
  text.replace(/\b(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC\b/gu, (_, date, time) => timeOfDay(new Date(`${date}T${time}Z`)));

/**
 * Render the times below a node at once, before it is inserted; in the document an observer does so for new nodes.
 * @param {ParentNode} [root]
 */
export function drawTimes(root = document) {
  const now = serverNow();
  for (const element of root.querySelectorAll(TIMES)) draw(element, now);
}

/** Show ages as times of day and the reverse, on this page and all others. */
export function swapTimes() {
  localStore.set(STORAGE_KEY, isSwapped() ? "" : "swapped");
  drawTimes();
}

const isSwapped = () => localStore.get(STORAGE_KEY) === "swapped";

function draw(element, now) {
  const then = new Date(element.dateTime);
  if (Number.isNaN(then.getTime())) return;
  const { age: form, clock: precision, elapsed: isElapsed } = element.dataset;
  if (isElapsed !== undefined) return void setLabel(element, elapsed(now - then));
  const isAge = (form !== undefined) !== isSwapped();
  const text = isAge ? ageAs(form, then, now) : precision === "time" ? clock.format(then) : timeOfDay(then, now, precision === "minute" ? minute : clock);
  setLabel(element, text);
  element.title ||= then.toISOString().replace("T", " ").replace("Z", " UTC");
  return undefined;
}

/** Returns the age as its form needs it: "ago" after a duration in a sentence, "just now" after a state. */
function ageAs(form, then, now) {
  const text = age(then, now);
  if (form === "state" && text === "now") return "just now";
  return form === "ago" && /^\d+ (s|min|h)$/u.test(text) ? `${text} ago` : text;
}

function drawAdded(mutations) {
  for (const { addedNodes } of mutations) {
    for (const node of addedNodes) {
      if (node.nodeType !== Node.ELEMENT_NODE) continue;
      if (node.matches(TIMES)) draw(node, serverNow());
      else if (node.firstElementChild) drawTimes(node);
    }
  }
}

addEventListener("click", (event) => event.target.closest?.("time[data-age], time[data-clock]") && swapTimes());
addEventListener("storage", (event) => event.key === STORAGE_KEY && drawTimes());
setInterval(drawTimes, TICK_MS);
new MutationObserver(drawAdded).observe(document.documentElement, { childList: true, subtree: true });
drawTimes();
