/**
 * Keyboard shortcuts of every page; others are added with `onKey`. Letters work only outside fields and can be turned off
 * (WCAG 2.1.4); `Ctrl K` (`palette.js`; on a Mac `⌘K`) always works. `j` and `k` move through the elements with `data-item`. The list that
 * people read is in `templates/partials/dialogs.html`.
 */
import { visit } from "./plain-links.js";
import { localStore } from "./safe-storage.js";

const STORAGE_KEY = "switchboard-letters"; // "off": letters do nothing
const LEADER_MS = 1_000; // how long `g` waits for the next letter
const PAGES = { c: "/", a: "/approvals/", o: "/calls/", g: "/agents/", i: "/numbers/", s: "/search/" }; // letter after `g` → address
const LAYERS = "dialog, [popover]:popover-open"; // the browser closes them with Esc
const ENTRIES = "input, textarea, select, [contenteditable]";
const FIELDS = `${ENTRIES}, ${LAYERS}`;
const REPEATED = new Set(["j", "k", ",", ".", "+", "=", "-", "ArrowLeft", "ArrowRight"]); // keys that act on while they are held down: they only move

const actions = new Map(); // combination → action
let leader = ""; // "g " while its letter is awaited
let leaderTimer;

/**
 * Bind a key (`"o"`, `"End"`) or a letter after `g` (`"g c"`) to an action, in place of the one that is bound to it.
 * @param {string} combination
 * @param {(event: KeyboardEvent) => void} action
 * @returns {() => void} removes the binding, unless it was replaced
 */
export function onKey(combination, action) {
  actions.set(combination, action);
  return () => actions.get(combination) === action && actions.delete(combination);
}

/** Move the focus through the items. @param {number} step  1: to the next; -1: to the previous */
function move(step) {
  const items = [...document.querySelectorAll("[data-item]")];
  const current = items.indexOf(document.activeElement?.closest("[data-item]"));
  const next = items[current < 0 ? 0 : Math.max(0, Math.min(items.length - 1, current + step))];
  const target = next?.matches("a, button, [tabindex]") ? next : next?.querySelector("a, button, [tabindex]");
  target?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

const areLettersOn = () => localStore.get(STORAGE_KEY) !== "off";

/** Whether a key belongs to an input method's composition. In Safari the last one is marked by its key code alone. */
export const composes = (event) => event.isComposing || event.keyCode === 229;

function onKeydown(event) {
  if (event.defaultPrevented || composes(event) || event.altKey || event.metaKey || event.ctrlKey) return;
  if (event.key === "Escape" && event.target.matches?.(ENTRIES) && !event.target.closest(LAYERS)) event.target.blur(); // letters work again
  if (event.target.closest?.(FIELDS) || (event.key.length === 1 && !areLettersOn())) return;
  if (event.shiftKey && event.key.length > 1) return; // such as Shift+End, which extends a selection
  const action = actions.get(leader + event.key);
  if (event.repeat && !REPEATED.has(event.key)) return void (action && event.preventDefault());
  clearTimeout(leaderTimer);
  leader = "";
  if (action) {
    event.preventDefault();
    action(event);
  } else if (event.key === "g") {
    leader = "g ";
    leaderTimer = setTimeout(() => (leader = ""), LEADER_MS);
  }
}

/** `<key-help>`: the dialog with the list of keys and the switch for letters. */
class KeyHelp extends HTMLElement {
  #abort;

  connectedCallback() {
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    const letters = this.querySelector("[data-letters]");
    letters.checked = areLettersOn();
    letters.addEventListener("change", () => localStore.set(STORAGE_KEY, letters.checked ? "on" : "off"), { signal });
    addEventListener("click", (event) => event.target.closest?.("[data-action='help']") && this.#open(), { signal });
    signal.addEventListener("abort", onKey("?", () => this.#open()));
  }

  disconnectedCallback() {
    this.#abort.abort();
  }

  #open() {
    document.querySelector("[popover]:popover-open")?.hidePopover();
    const dialog = this.querySelector("dialog");
    if (!dialog.open) dialog.showModal();
  }
}

customElements.define("key-help", KeyHelp);
addEventListener("keydown", onKeydown);
onKey("j", () => move(1));
onKey("k", () => move(-1));
for (const [key, address] of Object.entries(PAGES)) onKey(`g ${key}`, () => visit(address));
onKey("g u", () => document.querySelector(".menu > [href='/audit/']")?.click()); // for those who may see the audit log
onKey("/", () => {
  const field = document.querySelector("main [type=search]");
  if (field) field.select();
  else document.querySelector("[data-action='palette']")?.click();
});
