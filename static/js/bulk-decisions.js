/**
 * Decides the selected approval requests in one HTTP request, in which each succeeds or fails by itself. The results are
 * shown above the list, a failure also in its row.
 */
import { noteFailure } from "./failure-note.js";
import { RequestError, json, sentenceOf } from "./fetch.js";
import { rejectByEnter } from "./reject-by-enter.js";

const PAST_TENSE = { approve: "approved", reject: "rejected" };

/** The bar above the list, shown while rows are selected. */
export class BulkDecisions {
  #root;
  #rows;
  #announce;
  #isSending = false;

  /**
   * @param {HTMLElement} root contains the bar and the list of results
   * @param {import("./approval-rows.js").ApprovalRows} rows
   * @param {(text: string) => void} announce writes to the page's live region
   * @param {AbortSignal} signal
   */
  constructor(root, rows, announce, signal) {
    [this.#root, this.#rows, this.#announce] = [root, rows, announce];
    if (!this.#bar) return; // rendered only for those who may decide
    root.addEventListener("change", (event) => event.target.matches("[data-pick]") && this.show(), { signal });
    this.#bar.addEventListener("keydown", rejectByEnter, { signal });
    this.#bar.addEventListener("submit", (event) => (event.preventDefault(), this.#decide(event.submitter.value)), { signal });
    this.show();
  }

  /** Update the number of selected rows. */
  show() {
    if (!this.#bar) return;
    const count = this.#rows.picked.length;
    this.#bar.hidden = !count;
    this.#bar.querySelector("[data-picked-count]").textContent = `${count} selected`;
  }

  get #bar() { return this.#root.querySelector("[data-bar]"); }

  async #decide(decision) {
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      const results = this.#root.querySelector("[data-outcomes]");
      const summary = await decideAll(this.#bar, this.#rows.picked, results, decision);
      if (summary) this.#announce(summary);
    } finally {
      this.#isSending = false;
    }
    this.show();
  }
}

/**
 * @param {HTMLFormElement} bar has the field for the message
 * @param {HTMLElement[]} rows those selected
 * @param {HTMLElement} results the list for the results
 * @param {"approve" | "reject"} decision
 * @returns {Promise<string>} how many were decided, as text to read out; empty if the request failed
 */
const decideAll = async (bar, rows, results, decision) => {
  const { message } = bar.elements;
  const status = bar.querySelector("[data-said]");
  if (decision === "approve" && rows.some(isEdited)) {
    status.textContent = "Not sent. You edited the arguments of a selected request: decide it by itself, or undo the edits.";
    return "";
  }
  status.textContent = "Sending…";
  try {
    const approvals = rows.map((row) => row.dataset.key);
    const { items } = await json("/api/v1/approvals/decisions", { body: { decision, message: message.value, approvals } });
    message.value = status.textContent = "";
    for (const box of rows.flatMap((row) => [...row.querySelectorAll("[data-pick]")])) box.checked = false;
    return showResults(items, rows, results, PAST_TENSE[decision]);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    noteFailure(status, error);
    return "";
  }
};

/** Returns whether the page shows this request's form with edits, which an approval of several would drop. */
const isEdited = ({ dataset }) => document.querySelector(`form[action$="/${CSS.escape(dataset.key)}/"] [data-undo]:not([hidden])`) !== null;

const showResults = (items, rows, results, pastTense) => {
  const failures = items.filter(({ error }) => error);
  const done = items.length - failures.length;
  results.replaceChildren(...[`${done} ${pastTense}`, ...failures.map((failure) => showFailure(failure, rows))].map(listItem));
  results.hidden = false;
  return `${done} ${pastTense}${failures.length ? `, ${failures.length} not` : ""}`;
};

/** Show in its row why a request was not decided. Returns the same for the list of results. */
const showFailure = ({ approval_id: key, error }, rows) => {
  const row = rows.find((candidate) => candidate.dataset.key === key);
  const status = row?.querySelector("[data-said]");
  if (status) status.textContent = sentenceOf(error);
  return `${row?.querySelector(".what")?.textContent ?? key}: ${sentenceOf(error)}`;
};

const listItem = (text) => {
  const item = document.createElement("li");
  item.dir = "auto";
  item.textContent = text;
  return item;
};
