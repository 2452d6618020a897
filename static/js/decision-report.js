/** Reports the results of decisions over the page. */
import { noteFailure } from "./failure-note.js";
import { report, reportLine, withdrawReport } from "./page-report.js";

/** Report that a decision failed whose form is no longer in the page. @param {import("./fetch.js").RequestError} error */
export function reportFailure(error) {
  const text = `${error.sentence} The request shows what was decided.`;
  report(text, "failed");
  noteFailure(reportLine(), error, { text, remove: withdrawReport });
}

/**
 * Report that a request whose form was being filled in was decided by somebody else, or can no longer be decided.
 * @param {HTMLElement} block of the request, with the decision or why there is none
 * @param {boolean} hasEdits  whether fields were edited; the edits are lost
 */
export function reportOtherDecision(block, hasEdits) {
  const undecided = block.querySelector(".verdict [data-undecided]")?.textContent.trim();
  const verdict = [...(block.querySelector(".verdict")?.children ?? [])].map((part) => part.textContent.trim()).join(" ");
  const outcome = undecided ?? `Decided elsewhere: ${verdict || "no longer waiting"}.`;
  report(`${outcome}${hasEdits ? " Your edits were not used." : ""}`, "failed");
}
