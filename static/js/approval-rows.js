/** The rows of the list of approval requests: those that wait, those that were just decided, those whose run is over. */
import { drawTimes } from "./clock.js";
import { render } from "./html.js";
import { morph } from "./morph.js";

const MAX_DECIDED = 10; // rows that are shown of those that left

export class ApprovalRows {
  #root;
  #after = new Map(); // key of a row that left → that of the row behind it

  /** @param {HTMLElement} root has `data-view`, and `data-live` where what is new belongs to this page */
  constructor(root) {
    this.#root = root;
  }

  get first() { return this.#list.firstElementChild; }
  get all() { return [...this.#root.querySelectorAll(".ask")]; }
  get picked() { return [...this.#root.querySelectorAll("[data-pick]:checked")].map((pick) => pick.closest("[data-key]")); }
  get #list() { return this.#root.querySelector("[data-questions]"); }

  /** The row of a request. @returns {HTMLElement | null} */
  find(key) {
    return key ? this.#root.querySelector(`.ask[data-key="${CSS.escape(key)}"]`) : null;
  }

  /** The address of a request in the list that is shown. */
  address(key) {
    const { href } = this.find(key).querySelector("a");
    const { query } = this.#root.dataset;
    return query ? `${href}?${query}` : href;
  }

  /** Draw rows in their places. Answers how many more wait. */
  take(rows) {
    let fresh = 0;
    for (const { key, status, html, escalated } of [...rows].reverse()) {
      const row = render(html).querySelector(".ask");
      if (!row) continue;
      drawTimes(row);
      fresh += this.#put(key, status, row, escalated);
    }
    this.#root.querySelector("[data-empty]").hidden = Boolean(this.first);
    return fresh;
  }

  /** The row to go on with after this one was decided: it may have left already. */
  next(key) {
    const row = this.#after.has(key) ? this.find(this.#after.get(key)) : nextOpen(this.find(key));
    return row && isOpen(row) ? row : null;
  }

  /** Show which one is open. */
  mark(key) {
    for (const row of this.all) {
      const link = row.querySelector("a");
      if (row.dataset.key === key) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  /** Move the focus to the next row or the one before, from this one. @returns {string | undefined} its key */
  step(from, step) {
    const rows = this.all.filter((row) => row.checkVisibility());
    const next = rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(this.find(from)) + step))];
    next?.querySelector("a").focus();
    return next?.dataset.key;
  }

  #put(key, status, row, escalated) {
    const old = this.find(key);
    const isNews = status === "pending" && (!old || Boolean(escalated && !("escalated" in old.dataset)));
    if (old) {
      const hasLeft = isOpen(old) && status !== "pending";
      morph(old, row);
      if (hasLeft && !this.#root.dataset.view) this.#part(old);
      else if (isNews && !old.contains(document.activeElement)) this.#list.prepend(old);
      return isNews;
    }
    if (!this.#takes(status) || !this.#passes(row)) return false;
    if (this.#root.dataset.view) this.#list.prepend(row);
    else this.#list.append(row); // the oldest is decided first
    return isNews;
  }

  #takes(status) {
    const { view, live } = this.#root.dataset;
    return live !== undefined && (view === "all" || status === (view === "decided" ? "decided" : "pending"));
  }

  /** Whether the filters let a row through. */
  #passes({ dataset: { agent, tool, risk } }) {
    const { onlyAgent = agent, onlyTool = tool, onlyRisk = risk } = this.#root.dataset;
    return agent === onlyAgent && tool === onlyTool && risk === onlyRisk;
  }

  /** Move a row that was decided out of those that wait. */
  #part(row) {
    const next = nextOpen(row);
    this.#after.set(row.dataset.key, next?.dataset.key);
    if (row.contains(document.activeElement)) next?.querySelector("a").focus();
    const place = this.#root.querySelector(row.dataset.status === "cancelled" ? "[data-over-rows]" : "[data-decided-rows]");
    place.prepend(row);
    while (place.children.length > MAX_DECIDED) place.lastElementChild.remove();
    place.parentElement.hidden = false;
  }
}

const isOpen = (row) => row.dataset.status === "pending";

/** The request after this one that waits, else the first that does. */
function nextOpen(row) {
  const rows = row ? [...row.parentElement.children] : [];
  const here = rows.indexOf(row);
  return [...rows.slice(here + 1), ...rows.slice(0, Math.max(0, here))].find(isOpen) ?? null;
}
