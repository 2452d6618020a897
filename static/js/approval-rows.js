/** The rows of the approval requests: waiting, just decided, and those whose run is over. */
import { drawTimes } from "./clock.js";
import { render } from "./html.js";
import { morph } from "./morph.js";

const MAX_DECIDED = 10; // rows under "Just decided"

export class ApprovalRows {
  #root;
  #following = new Map(); // key of a row that was moved out → key of the waiting row that followed it

  /** @param {HTMLElement} root has `data-view`, and `data-live` if new requests are added to this page */
  constructor(root) {
    this.#root = root;
  }

  get first() { return this.#list.firstElementChild; }
  get all() { return [...this.#root.querySelectorAll(".ask")]; }
  get picked() { return [...this.#root.querySelectorAll("[data-pick]:checked")].map((box) => box.closest("[data-key]")); }
  get #list() { return this.#root.querySelector("[data-requests]"); }

  /** Returns the row of a request. @returns {HTMLElement | null} */
  find(key) {
    return key ? this.#root.querySelector(`.ask[data-key="${CSS.escape(key)}"]`) : null;
  }

  /** Returns the URL of a request, with the query of the list that is shown. */
  address(key) {
    const { href } = this.find(key).querySelector("a");
    const { query } = this.#root.dataset;
    return query ? `${href}?${query}` : href;
  }

  /** Render the rows of a frame in their places. Returns how many of them are newly waiting or newly escalated. */
  take(rows) {
    let newCount = 0;
    for (const { key, status, html, escalated } of [...rows].reverse()) {
      const row = render(html).querySelector(".ask");
      if (!row) continue;
      drawTimes(row);
      newCount += this.#put(key, status, row, escalated);
    }
    this.#showEmpty();
    return newCount;
  }

  /** Returns the waiting row to open after this one was decided, even if this one was already moved out of the list. */
  next(key) {
    const row = this.#following.has(key) ? this.find(this.#following.get(key)) : nextWaiting(this.find(key));
    return row && isWaiting(row) ? row : null;
  }

  /** Mark the row of the request that is shown. */
  mark(key) {
    for (const row of this.all) {
      const link = row.querySelector("a");
      if (row.dataset.key === key) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  /** Move the focus from a row to the next one (1) or the previous one (-1). @returns {string | undefined} its key */
  step(from, step) {
    const rows = this.all.filter((row) => row.checkVisibility());
    const next = rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(this.find(from)) + step))];
    next?.querySelector("a").focus();
    return next?.dataset.key;
  }

  /** Update or insert a row, in the order of `page` in conversations/runs/approvals/inbox.py. */
  #put(key, status, row, escalated) {
    const existing = this.find(key);
    const isNews = status === "pending" && (!existing || Boolean(escalated && !("escalated" in existing.dataset)));
    if (existing) {
      const wasDecided = isWaiting(existing) && status !== "pending";
      morph(existing, row);
      if (wasDecided && !this.#root.dataset.view) this.#moveOut(existing);
      else if (isNews && !existing.contains(document.activeElement)) this.#list.prepend(existing);
      return isNews;
    }
    if (!this.#accepts(status) || !this.#matchesFilters(row)) return false;
    if (this.#root.dataset.view) this.#list.prepend(row);
    else this.#list.append(row); // the oldest is decided first
    return isNews;
  }

  /** Say that the list is empty, or where it has a further page that only this one is. */
  #showEmpty() {
    const further = this.#root.querySelector("[data-further]");
    this.#root.querySelector("[data-empty]").hidden = Boolean(this.first || further);
    if (further) further.hidden = Boolean(this.first);
  }

  #accepts(status) {
    const { view, live } = this.#root.dataset;
    return live !== undefined && (view === "all" || status === (view === "decided" ? "decided" : "pending"));
  }

  #matchesFilters({ dataset: { agent, tool, risk } }) {
    const { onlyAgent = agent, onlyTool = tool, onlyRisk = risk } = this.#root.dataset;
    return agent === onlyAgent && tool === onlyTool && risk === onlyRisk;
  }

  /** Move a row that no longer waits to "Just decided", or to "Cannot go on" if it was cancelled. */
  #moveOut(row) {
    const next = nextWaiting(row);
    this.#following.set(row.dataset.key, next?.dataset.key);
    if (row.contains(document.activeElement)) next?.querySelector("a").focus();
    const target = this.#root.querySelector(row.dataset.status === "cancelled" ? "[data-over-rows]" : "[data-decided-rows]");
    target.prepend(row);
    while (target.children.length > MAX_DECIDED) target.lastElementChild.remove();
    target.parentElement.hidden = false;
  }
}

const isWaiting = (row) => row.dataset.status === "pending";

/** Returns the next waiting row after this one, else the first waiting row of the list. */
function nextWaiting(row) {
  const rows = row ? [...row.parentElement.children] : [];
  const index = rows.indexOf(row);
  return [...rows.slice(index + 1), ...rows.slice(0, Math.max(0, index))].find(isWaiting) ?? null;
}
