/** Prepares the print view of a conversation: times in the reader's time zone, days between rows. Then opens the browser's print dialog. */
import { drawTimes } from "./clock.js";
import { separateRows } from "./row-separators.js";

drawTimes(document);
separateRows([...document.querySelectorAll(".rows > [data-seq]")]);
document.querySelector("[data-print]").addEventListener("click", () => print());
addEventListener("load", () => print(), { once: true });
