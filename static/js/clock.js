/**
 * Times of the page, drawn in the browser's zone by one timer. `<time datetime data-age>` says how long ago,
 * `<time datetime data-clock>` the time of day, `data-clock="time"` without the date, which a line above says, `data-clock="minute"` without seconds; a click on any shows the other form everywhere. UTC is in the title.
 */
import { kept } from "./kept.js";
import { serverNow } from "./server-time.js";

const TICK_MS = 10_000;
const KEPT = "switchboard-times"; // "swapped" when ages are shown as clock times and the reverse
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const year = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

/**
 * Say how long ago it was: "now", "40 s", "6 min", "2 h", then the date; of what is to come "in 6 min".
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
  return (then.getFullYear() === now.getFullYear() ? day : year).format(then);
}

/**
 * Say the time of day, with the date where it is not today.
 * @param {Date} then
 * @param {Date} [now]
 * @param {Intl.DateTimeFormat} [time] how exact
 */
export function timeOfDay(then, now = serverNow(), time = clock) {
  return then.toDateString() === now.toDateString() ? time.format(then) : `${day.format(then)} ${time.format(then)}`;
}

/**
 * Draw the times under a node now; new nodes of the page are drawn by themselves.
 * @param {ParentNode} [root]
 */
export function drawTimes(root = document) {
  const now = serverNow();
  for (const element of root.querySelectorAll("time[data-age], time[data-clock]")) draw(element, now);
}

/** Show ages as clock times and the reverse, on this page and the next. */
export function swapTimes() {
  kept.set(KEPT, isSwapped() ? "" : "swapped");
  drawTimes();
}

const isSwapped = () => kept.get(KEPT) === "swapped";

function draw(element, now) {
  const then = new Date(element.dateTime);
  if (Number.isNaN(then.getTime())) return;
  const isAge = "age" in element.dataset !== isSwapped();
  const words = isAge ? age(then, now) : element.dataset.clock === "time" ? clock.format(then) : timeOfDay(then, now, element.dataset.clock === "minute" ? minute : clock);
  if (element.textContent !== words) element.textContent = words;
  element.title ||= then.toISOString().replace("T", " ").replace("Z", " UTC");
}

function drawNew(changes) {
  for (const { addedNodes } of changes) {
    for (const node of addedNodes) {
      if (node.nodeType !== Node.ELEMENT_NODE) continue;
      if (node.matches("time[data-age], time[data-clock]")) draw(node, serverNow());
      else if (node.firstElementChild) drawTimes(node);
    }
  }
}

addEventListener("click", (event) => event.target.closest?.("time[data-age], time[data-clock]") && swapTimes());
addEventListener("storage", (event) => event.key === KEPT && drawTimes());
setInterval(drawTimes, TICK_MS);
new MutationObserver(drawNew).observe(document.documentElement, { childList: true, subtree: true });
drawTimes();
