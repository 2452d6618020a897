/**
 * Shows a desktop notification when more approval requests wait for this person than before and the page is hidden. Only
 * for those who turned notifications on in the account menu. Of several tabs, the one that was looked at last shows it, or,
 * if that was closed, the first of the others that has to.
 */
import { visit } from "./plain-links.js";
import { localStore } from "./safe-storage.js";

const STORAGE_KEY = "switchboard.notifications"; // "on", or absent
const LOCK = "switchboard-notifications"; // held by the tab that shows them
const WAIT_MS = 500; // for the lock of a tab that is being closed
const LABELS = { on: "on", off: "off", denied: "blocked by the browser", missing: "not available" };

let lastCount; // as of the previous call of `notifyOf`
let isRefused = false; // some browsers let no page notify, and say so only when one tries
let heldLock = null; // the lock, while this tab holds it

/** @param {number} count of requests that this person can decide */
export async function notifyOf(count) {
  const hasIncreased = lastCount !== undefined && count > lastCount;
  lastCount = count;
  if (!hasIncreased || !document.hidden || state() !== "on") return;
  if (navigator.locks && !heldLock) { // without HTTPS there are no locks: each tab notifies
    await takeLock({ signal: AbortSignal.timeout(WAIT_MS) });
    if (!heldLock || count !== lastCount) return;
  }
  const body = count === 1 ? "1 request is waiting for your approval." : `${count} requests are waiting for your approval.`;
  const notification = createNotification({ body, tag: "switchboard-waiting", renotify: true });
  notification?.addEventListener("click", () => {
    notification.close();
    focus();
    visit("/approvals/");
  });
}

/** Resolves once it is known whether this tab got the lock, which it keeps until it is closed or another tab takes it. */
function takeLock(options) {
  return new Promise((resolve) => {
    let taken;
    const hold = (lock) => {
      taken = lock;
      heldLock = lock ?? heldLock;
      resolve();
      return lock && new Promise(() => {});
    };
    navigator.locks.request(LOCK, options, hold).catch(() => {
      if (heldLock === taken) heldLock = null;
      resolve();
    });
  });
}

function takeLockInSight() {
  if (navigator.locks && !document.hidden && !heldLock && state() === "on") takeLock({ steal: true });
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
  takeLockInSight();
}

function showState() {
  for (const label of document.querySelectorAll("[data-notifications]")) label.textContent = LABELS[state()];
}

addEventListener("click", (event) => {
  if (event.target.closest?.("[data-action='notifications']")) toggle();
});
document.addEventListener("visibilitychange", takeLockInSight);
showState();
takeLockInSight();
