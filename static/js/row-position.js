/** Where a transcript's scroller stands among its rows. Used by `tail-follow` and `transcript-outline`. */
import { firstPast, stretchesOf } from "./visible-rows.js";

/** The first row of which something is in view; none in an empty transcript. @param {Element} scroller */
export const topRow = (scroller) => {
  const top = scroller.getBoundingClientRect().top;
  const below = (items) => items.slice(firstPast(items, (box) => box.bottom > top + 1));
  const [stretch] = below(stretchesOf(scroller));
  return stretch ? below([...stretch.children]).find((row) => row.matches("[data-seq]")) : null;
};

/** Have an event's row be the first in view; the first event of all stands under what is above it. */
export const scrollToEvent = (scroller, seq) => {
  const row = [...scroller.querySelectorAll(":scope > .rows > [data-seq]")].find((one) => Number(one.dataset.seq) >= seq);
  if (seq > 1) row?.scrollIntoView({ block: "start" });
  else scroller.scrollTop = 0;
};
