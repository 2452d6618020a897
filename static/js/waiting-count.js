/** The number of questions that can still be decided, in the navigation of every page that follows something. */
import { socket } from "./socket.js";

/** @param {number | undefined} number */
export const tellWaiting = (number) => {
  const count = document.querySelector("[data-waiting]");
  if (!count || number === undefined) return;
  count.hidden = !number;
  count.lastElementChild.textContent = number;
};

/** Follow the number where no element of the page follows the questions or the conversations anyway. */
export const followWaiting = () => socket.subscribe("approvals", {}, { rows: ({ waiting }) => tellWaiting(waiting) });
