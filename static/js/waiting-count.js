/**
 * Shows the number of approval requests that this person can decide, in the navigation of every live page, and in a strip
 * below it the number of those escalated to one of the person's roles. Frames contain the counts for all people: `barred` has
 * the number of requests that each person may not decide, `escalated` the number per role.
 */
import { drawTimes } from "./clock.js";
import { notifyOf } from "./desktop-notifications.js";
import { setLabel } from "./label-text.js";
import { socket } from "./socket.js";

/** Update all places that show the numbers. @param {{waiting?: number, demo?: number, oldest?: string | null, escalated?: Object<string, number>, barred?: Object<string, number>}} standing */
export const tellWaiting = ({ waiting, demo, oldest, escalated = {}, barred = {} }) => {
  const count = document.querySelector("[data-waiting]");
  if (!count || waiting === undefined) return;
  const { person, roles = "", may = "" } = document.body.dataset;
  const excluded = barred[`user:${person}`] ?? 0;
  const number = may.split(" ").includes("decide") ? waiting - excluded : 0;
  count.hidden = !number;
  setLabel(count.lastElementChild, number);
  showInTab(number);
  notifyOf(number);
  showTurn(demo);
  showOldest(waiting, excluded, oldest);
  const strip = document.querySelector(".strip[data-escalated]");
  if (!strip) return;
  const escalatedCount = roles.split(" ").reduce((sum, role) => sum + (escalated[role] ?? 0), 0);
  strip.hidden = !escalatedCount;
  setLabel(strip.querySelector("[data-number]"), escalatedCount);
};

/** In the head of the approvals page: the number of pending requests and the age of the oldest one. */
function showOldest(waiting, excluded, oldest) {
  const standing = document.querySelector("[data-approvals-waiting]");
  if (!standing) return;
  standing.hidden = !waiting;
  standing.querySelector("[data-number]").textContent = waiting;
  standing.querySelector("[data-barred]").hidden = !excluded;
  standing.querySelector("[data-barred] > span").textContent = excluded;
  const time = standing.querySelector("time");
  if (!oldest || time.dateTime === oldest) return;
  time.dateTime = oldest;
  time.title = "";
  drawTimes(standing);
}

/** On a page of the demo: that it is the person's turn; once its request is decided, or withdrawn by a restart, the next step. */
function showTurn(number) {
  const turn = document.querySelector(".strip[data-your-turn]");
  const next = document.querySelector(".strip[data-next-step]");
  if (next && !turn.hidden && !number) next.hidden = false;
  if (turn) turn.hidden = !number;
}

/** Show the number in the page's title and a dot in its icon, for readers in another tab. */
function showInTab(number) {
  const title = document.title.replace(/^\(\d+\) /, "");
  const shown = number ? `(${number}) ${title}` : title;
  if (document.title !== shown) document.title = shown;
  const icon = document.querySelector("[data-waiting-icon]");
  const address = number ? icon.dataset.waitingIcon : icon.dataset.quiet;
  if (icon.getAttribute("href") !== address) icon.setAttribute("href", address);
}

/** Subscribe to the number on pages without an element that subscribes to requests or conversations anyway. */
export const followWaiting = () => socket.subscribe("approvals", {}, { rows: tellWaiting });
