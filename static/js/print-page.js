/** A conversation to be printed: times in the reader's zone, days between rows, then the browser's dialog. */
import { drawTimes } from "./clock.js";
import { separateRows } from "./row-separators.js";

drawTimes(document);
separateRows([...document.querySelectorAll(".rows > [data-seq]")]);
document.querySelector("[data-print]").addEventListener("click", () => print());
addEventListener("load", () => print(), { once: true });
