/** `f`: fork after the event that is picked, else after the last one in view. */
import { onKey } from "./keys.js";

const here = () =>
  document.querySelector('.transcript [data-seq][aria-current="true"]') ??
  [...document.querySelectorAll(".transcript [data-seq]")].findLast((row) => row.checkVisibility());

onKey("f", () => {
  const row = here();
  const may = document.body.dataset.may.split(" ").includes("control");
  if (row && may) location.assign(`${location.pathname}fork/?event=${row.dataset.seq}`);
});
