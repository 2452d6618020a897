/**
 * Keys of every page. Letters act only outside fields and can be switched off (WCAG 2.1.4); `Ctrl K` always acts.
 * Pages add their own by `onKey`. Rows that `j` and `k` walk carry `data-item`.
 */
import { kept } from "./kept.js";

const LETTERS = "switchboard-letters"; // "off" is kept
const LEADER_MS = 1_000; // how long `g` waits for its letter
const FIELDS = "input, textarea, select, [contenteditable], dialog, [popover]:popover-open";

const keys = new Map();
let leader = "";
let leaderEnds;

/**
 * Act on a key (`"o"`, `"End"`) or on a letter after `g` (`"g c"`). The last one to ask gets it.
 * @param {string} combination
 * @param {(event: KeyboardEvent) => void} act
 * @returns {() => void} stop
 */
export function onKey(combination, act) {
  keys.set(combination, act);
  return () => keys.get(combination) === act && keys.delete(combination);
}

/** @param {number} step  rows to go on (1) or back (-1) */
export function move(step) {
  const items = [...document.querySelectorAll("[data-item]")];
  const here = items.indexOf(document.activeElement?.closest("[data-item]"));
  const next = items[here < 0 ? 0 : Math.max(0, Math.min(items.length - 1, here + step))];
  const target = next?.matches("a, button, [tabindex]") ? next : next?.querySelector("a, button, [tabindex]");
  target?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

const lettersAct = () => kept.get(LETTERS) !== "off";

/** Whether a key is of an input method, which composes a word by it. Safari tells of the last one by its number alone. */
export const composes = (event) => event.isComposing || event.keyCode === 229;

function take(event) {
  if (event.defaultPrevented || composes(event) || event.altKey || event.metaKey || event.ctrlKey) return;
  if (event.target.closest?.(FIELDS) || (event.key.length === 1 && !lettersAct())) return;
  const act = keys.get(leader + event.key);
  clearTimeout(leaderEnds);
  leader = "";
  if (act) {
    event.preventDefault();
    act(event);
  } else if (event.key === "g") {
    leader = "g ";
    leaderEnds = setTimeout(() => (leader = ""), LEADER_MS);
  }
}

/** `<key-help>`: the list of keys, and the switch for letters. */
class KeyHelp extends HTMLElement {
  #stop;

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    const letters = this.querySelector("[data-letters]");
    letters.checked = lettersAct();
    letters.addEventListener("change", () => kept.set(LETTERS, letters.checked ? "on" : "off"), { signal });
    addEventListener("click", (event) => event.target.closest?.("[data-action='help']") && this.#open(), { signal });
    signal.addEventListener("abort", onKey("?", () => this.#open()));
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  #open() {
    document.querySelector("[popover]:popover-open")?.hidePopover();
    const dialog = this.querySelector("dialog");
    if (!dialog.open) dialog.showModal();
  }
}

customElements.define("key-help", KeyHelp);
addEventListener("keydown", take);
onKey("j", () => move(1));
onKey("k", () => move(-1));
onKey("g c", () => location.assign(document.querySelector(".topbar > .brand").href));
onKey("g a", () => location.assign("/approvals/"));
onKey("g s", () => location.assign("/search/"));
onKey("g u", () => document.querySelector(".menu > [href='/audit/']")?.click()); // where it is drawn
onKey("/", () => {
  const field = document.querySelector("main [type=search]");
  if (field) field.select();
  else document.querySelector("[data-action='palette']")?.click();
});
