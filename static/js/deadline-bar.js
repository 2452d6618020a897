/** The bar in the form of an approval request that shows the time left until its deadline. */
import { serverNow } from "./server-time.js";

const TICK_MS = 1_000; // between two updates
const URGENT_PERCENT = 20; // of the time until the deadline

export class DeadlineBar {
  #form;

  /** @param {HTMLElement} form contains the bar if there is a deadline @param {AbortSignal} signal */
  constructor(form, signal) {
    this.#form = form;
    const timer = setInterval(() => this.update(), TICK_MS);
    signal.addEventListener("abort", () => clearInterval(timer));
  }

  update() {
    const bar = this.#form.querySelector("svg[data-until]");
    if (!bar) return;
    const [since, until] = [bar.dataset.since, bar.dataset.until].map(Date.parse);
    const percentLeft = Math.max(0, Math.min(100, (100 * (until - serverNow())) / (until - since)));
    bar.firstElementChild.setAttribute("width", percentLeft.toFixed(1));
    bar.toggleAttribute("data-urgent", percentLeft < URGENT_PERCENT);
  }
}
