/** `f`: fork after the picked event, else after the last visible one. Used by the conversation page. */
import { onKey } from "./keys.js";
import { visit } from "./plain-links.js";

const currentRow = () =>
  document.querySelector('.transcript [data-seq][aria-current="true"]') ??
  [...document.querySelectorAll(".transcript [data-seq]")].findLast((row) => row.checkVisibility());

onKey("f", () => {
  const row = currentRow();
  const mayControl = document.body.dataset.may.split(" ").includes("control");
  if (row && mayControl) visit(`${location.pathname}fork/?event=${row.dataset.seq}`);
});
