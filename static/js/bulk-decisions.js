/**
 * Decide several questions at once, each by its own decision: what became of each is told at the question and above the
 * list. Used by the approvals page.
 */
import { RequestError, json, sentenceOf } from "./fetch.js";

const DONE = { approve: "approved", reject: "rejected" };

/** The bar over the list, for the rows that are picked. */
export class BulkDecisions {
  #root;
  #rows;
  #say;
  #isSending = false;

  /**
   * @param {HTMLElement} root has the bar and the place of the outcomes
   * @param {import("./approval-rows.js").ApprovalRows} rows
   * @param {(words: string) => void} say reads out
   * @param {AbortSignal} signal
   */
  constructor(root, rows, say, signal) {
    [this.#root, this.#rows, this.#say] = [root, rows, say];
    if (!this.#bar) return; // drawn for whoever may decide
    root.addEventListener("change", (event) => event.target.matches("[data-pick]") && this.show(), { signal });
    this.#bar.addEventListener("submit", (event) => (event.preventDefault(), this.#decide(event.submitter.value)), { signal });
    this.show();
  }

  /** Show how many rows are picked. */
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
      const words = await decideAll(this.#bar, this.#rows.picked, this.#root.querySelector("[data-outcomes]"), decision);
      if (words) this.#say(words);
    } finally {
      this.#isSending = false;
    }
    this.show();
  }
}

/**
 * @param {HTMLFormElement} bar says the decision and the message
 * @param {HTMLElement[]} picked the questions
 * @param {HTMLElement} outcomes a list
 * @returns {Promise<string>} how many were decided, in words; empty when nothing could be asked
 */
const decideAll = async (bar, picked, outcomes, decision) => {
  const { message } = bar.elements;
  const said = bar.querySelector("[data-said]");
  said.textContent = "Sending…";
  try {
    const approvals = picked.map((row) => row.dataset.key);
    const { items } = await json("/api/v1/approvals/decisions", { body: { decision, message: message.value, approvals } });
    message.value = said.textContent = "";
    for (const pick of picked.flatMap((row) => [...row.querySelectorAll("[data-pick]")])) pick.checked = false;
    return tell(items, picked, outcomes, DONE[decision]);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    said.textContent = `Not done. ${error.sentence}`;
    return "";
  }
};

const tell = (items, picked, outcomes, word) => {
  const failed = items.filter(({ error }) => error);
  const done = items.length - failed.length;
  outcomes.replaceChildren(...[`${done} ${word}`, ...failed.map((one) => told(one, picked))].map(line));
  outcomes.hidden = false;
  return `${done} ${word}${failed.length ? `, ${failed.length} not` : ""}`;
};

/** Tell one that was not decided, in its row too. */
const told = ({ approval_id: key, error }, picked) => {
  const row = picked.find((one) => one.dataset.key === key);
  const said = row?.querySelector("[data-said]");
  if (said) said.textContent = sentenceOf(error);
  return `${row?.querySelector(".what")?.textContent ?? key}: ${sentenceOf(error)}`;
};

const line = (words) => {
  const made = document.createElement("li");
  made.dir = "auto";
  made.textContent = words;
  return made;
};
