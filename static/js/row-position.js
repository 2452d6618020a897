/** Maps a transcript's scroll position to its rows. */
import { firstPast, stretchesOf } from "./visible-rows.js";

/** Returns the first row that is at least partly in view; none in an empty transcript. @param {Element} scroller */
export const topRow = (scroller) => {
  const top = scroller.getBoundingClientRect().top;
  const below = (items) => items.slice(firstPast(items, (box) => box.bottom > top + 1));
  const [stretch] = below(stretchesOf(scroller));
  return stretch ? below([...stretch.children]).find((row) => row.matches("[data-seq]")) : null;
};

/**
 * Returns the seq of the selected event, unless it is scrolled out of the transcript: then that of its top row; 0 if there is none.
 * @param {Element | null} scroller  the transcript; null in another view
 */
export const readerSeq = (scroller) => {
  const picked = document.querySelector('.column [aria-current="true"][data-seq]');
  const row = picked && isInView(picked, scroller) ? picked : ((scroller && topRow(scroller)) ?? picked);
  return Number(row?.dataset.seq ?? 0);
};

const isInView = (row, scroller) => {
  if (!scroller?.contains(row)) return !scroller;
  const [{ top, bottom }, box] = [row.getBoundingClientRect(), scroller.getBoundingClientRect()];
  return bottom > box.top && top < box.bottom;
};

/** Scroll an event's row to the top; for event 1, scroll to the very top, with the content above it. @param {Element} scroller @param {number} seq */
export const scrollToEvent = (scroller, seq) => {
  const row = [...scroller.querySelectorAll(":scope > .rows > [data-seq]")].find(({ dataset }) => Number(dataset.seq) >= seq);
  if (seq > 1) row?.scrollIntoView({ block: "start" });
  else scroller.scrollTop = 0;
};
