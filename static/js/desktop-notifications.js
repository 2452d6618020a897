/**
 * Shows a desktop notification when more approval requests wait for this person than before and the page is hidden. Only
 * for those who turned notifications on in the account menu. Tabs share one notification through its tag. Used by
 * `waiting-count`.
 */
import { localStore } from "./safe-storage.js";

const STORAGE_KEY = "switchboard.notifications"; // "on", or absent
const LABELS = { on: "on", off: "off", denied: "blocked by the browser", missing: "not available" };

let lastCount; // as of the previous call of `notifyOf`
let isRefused = false; // some browsers let no page notify, and say so only when one tries

/** @param {number} count of requests that this person can decide */
export function notifyOf(count) {
  const hasIncreased = lastCount !== undefined && count > lastCount;
  lastCount = count;
  if (!hasIncreased || !document.hidden || state() !== "on") return;
  const body = count === 1 ? "1 request is waiting for your approval." : `${count} requests are waiting for your approval.`;
  const notification = createNotification({ body, tag: "switchboard-waiting", renotify: true });
  notification?.addEventListener("click", () => {
    notification.close();
    focus();
    location.assign("/approvals/");
  });
}

function createNotification(options) {
  try {
    return new Notification("Switchboard", options);
  } catch {
    isRefused = true;
    return showState();
  }
}

/** @returns {"on"|"off"|"denied"|"missing"} */
function state() {
  if (isRefused || !("Notification" in globalThis)) return "missing";
  if (Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && localStore.get(STORAGE_KEY) === "on" ? "on" : "off";
}

async function toggle() {
  if (state() === "on") localStore.set(STORAGE_KEY, null);
  else if (state() === "off" && (await Notification.requestPermission()) === "granted") localStore.set(STORAGE_KEY, "on");
  showState();
}

function showState() {
  for (const label of document.querySelectorAll("[data-notifications]")) label.textContent = LABELS[state()];
}

addEventListener("click", (event) => {
  if (event.target.closest?.("[data-action='notifications']")) toggle();
});
showState();
