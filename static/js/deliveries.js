/** Delivery states of messages that people sent, shown below each in the transcript. */
import { morph } from "./morph.js";

const MAX_MESSAGES = 60; // of one request: the newest

/** Returns the query for the messages whose delivery may still change. */
export function unsettledQuery() {
  const slots = [...document.querySelectorAll(".transcript [data-delivery]:not([data-settled])")].slice(-MAX_MESSAGES);
  return slots.map((slot) => `of=${slot.closest("[data-seq]").dataset.seq}`).join("&");
}

/**
 * Show each delivery of a response below its message.
 * @param {Element} deliveries its children have the seq of their message in `data-of`
 * @returns {number} ms after which to request them again even if no event arrives; 0: not at all
 */
export function placeDeliveries(deliveries) {
  for (const delivery of [...deliveries.children]) {
    const slot = document.querySelector(`.transcript #e${delivery.dataset.of} [data-delivery]`);
    if (slot) morph(slot, delivery);
  }
  return Number(deliveries.dataset.again) * 1000;
}
