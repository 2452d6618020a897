/**
 * A notification of the desktop when more requests wait for this person than before and the page is not in sight: only
 * for those who switched it on in the account menu. Several tabs share one notification by its tag.
 */
import { kept } from "./kept.js";

const CHOICE = "switchboard.notifications"; // "on" is kept
const WORDS = { on: "on", off: "off", denied: "blocked by the browser", missing: "not available" };

let before; // how many waited when this page last counted
let isRefused = false; // some browsers let no page notify, and say so only when one does

/** @param {number} number requests that this person can decide */
export function notifyOf(number) {
  const isMore = before !== undefined && number > before;
  before = number;
  if (!isMore || !document.hidden || state() !== "on") return;
  const words = number === 1 ? "1 request is waiting for your approval." : `${number} requests are waiting for your approval.`;
  const shown = notification({ body: words, tag: "switchboard-waiting", renotify: true });
  shown?.addEventListener("click", () => {
    shown.close();
    focus();
    location.assign("/approvals/");
  });
}

function notification(options) {
  try {
    return new Notification("Switchboard", options);
  } catch {
    isRefused = true;
    return show();
  }
}

/** @returns {"on"|"off"|"denied"|"missing"} */
function state() {
  if (isRefused || !("Notification" in globalThis)) return "missing";
  if (Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && kept.get(CHOICE) === "on" ? "on" : "off";
}

async function change() {
  if (state() === "on") kept.set(CHOICE, null);
  else if (state() === "off" && (await Notification.requestPermission()) === "granted") kept.set(CHOICE, "on");
  show();
}

function show() {
  for (const place of document.querySelectorAll("[data-notifications]")) place.textContent = WORDS[state()];
}

addEventListener("click", (event) => {
  if (event.target.closest?.("[data-action='notifications']")) change();
});
show();
