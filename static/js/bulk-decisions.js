/**
 * Decide several questions at once, each by its own decision: what became of each is told at the question and above the
 * list. Used by the approvals page.
 */
import { RequestError, json, sentenceOf } from "./fetch.js";

const DONE = { approve: "approved", reject: "rejected" };

/**
 * @param {HTMLFormElement} bar says the decision and the message
 * @param {HTMLElement[]} picked the questions
 * @param {HTMLElement} outcomes a list
 * @returns {Promise<string>} how many were decided, in words; empty when nothing could be asked
 */
export const decideAll = async (bar, picked, outcomes, decision) => {
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

/** Tell one that was not decided, beside its buttons too where it still has any. */
const told = ({ approval_id: key, error }, picked) => {
  const row = picked.find((one) => one.dataset.key === key);
  const said = row?.querySelector(".verbs [data-said]");
  if (said) said.textContent = sentenceOf(error);
  return `${row?.querySelector(".asks code")?.textContent ?? key}: ${sentenceOf(error)}`;
};

const line = (words) => {
  const made = document.createElement("li");
  made.dir = "auto";
  made.textContent = words;
  return made;
};
