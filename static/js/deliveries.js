/** What became of messages that people sent, under them in the transcript. Used by `conversation-control`. */
import { morph } from "./morph.js";

const MAX_MESSAGES = 60; // messages of one question: the newest

/** The query that asks for those that something may still become of. */
export function unsettled() {
  const slots = [...document.querySelectorAll(".transcript [data-delivery]:not([data-settled])")].slice(-MAX_MESSAGES);
  return slots.map((slot) => `of=${slot.closest("[data-seq]").dataset.seq}`).join("&");
}

/**
 * Put what was answered in its places.
 * @param {Element} told  drawn deliveries, each `data-of` a seq
 * @returns {number} ms after which to ask again although no event came; 0: not
 */
export function place(told) {
  for (const fresh of [...told.children]) {
    const slot = document.querySelector(`.transcript #e${fresh.dataset.of} [data-delivery]`);
    if (slot) morph(slot, fresh);
  }
  return Number(told.dataset.again) * 1000;
}
