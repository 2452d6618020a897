/**
 * The questions that this person can still decide, in the navigation of every page that follows something; and those
 * that were escalated to a role of theirs, in a strip below it. A frame counts them for everybody: `barred` says how
 * many each person may not decide, `escalated` how many each role was told of.
 */
import { drawTimes } from "./clock.js";
import { notifyOf } from "./desktop-notifications.js";
import { socket } from "./socket.js";

/** @param {{waiting?: number, oldest?: string | null, escalated?: Object<string, number>, barred?: Object<string, number>}} standing */
export const tellWaiting = ({ waiting, oldest, escalated = {}, barred = {} }) => {
  const count = document.querySelector("[data-waiting]");
  if (!count || waiting === undefined) return;
  const { person, roles = "" } = document.body.dataset;
  const excluded = barred[`user:${person}`] ?? 0;
  const number = waiting - excluded;
  count.hidden = !number;
  count.lastElementChild.textContent = number;
  showInTab(number);
  notifyOf(number);
  showTurn(number);
  showOldest(waiting, excluded, oldest);
  const strip = document.querySelector(".strip[data-escalated]");
  if (!strip) return;
  const told = roles.split(" ").reduce((sum, role) => sum + (escalated[role] ?? 0), 0);
  strip.hidden = !told;
  const shown = strip.querySelector("[data-number]");
  if (shown.textContent !== `${told}`) shown.textContent = told;
};

/** In the head of the approvals page: how many wait, and since when the oldest one does. */
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

/** On a page of the demo: that it is the newcomer's turn, and after the decision what comes next. */
function showTurn(number) {
  const turn = document.querySelector(".strip[data-your-turn]");
  const next = document.querySelector(".strip[data-next-step]");
  if (next && !turn.hidden && !number) next.hidden = false;
  if (turn) turn.hidden = !number;
}

/** Show the number before the page's title and by a dot in its icon: it is seen while another tab is open. */
function showInTab(number) {
  const title = document.title.replace(/^\(\d+\) /, "");
  const shown = number ? `(${number}) ${title}` : title;
  if (document.title !== shown) document.title = shown;
  const icon = document.querySelector("[data-waiting-icon]");
  const address = number ? icon.dataset.waitingIcon : icon.dataset.quiet;
  if (icon.getAttribute("href") !== address) icon.setAttribute("href", address);
}

/** Follow the number where no element of the page follows the questions or the conversations anyway. */
export const followWaiting = () => socket.subscribe("approvals", {}, { rows: tellWaiting });
