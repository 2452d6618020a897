/**
 * The way to the approval requests that wait in a conversation: `n` leads from one to the next, and so do the links "Go to
 * the request", which are there while one waits. Where its block is not drawn, its event is opened.
 */
import { onKey } from "./keys.js";

const OPEN = ".approval:has(decision-form)";
const links = () => document.querySelectorAll("[data-to-request]");

/**
 * The block of the next request that waits after a place, else the first that does.
 * @param {Node} place
 * @returns {HTMLElement | undefined}
 */
export function nextOpen(place) {
  const open = [...document.querySelectorAll(OPEN)];
  return open.find((block) => place.compareDocumentPosition(block) & Node.DOCUMENT_POSITION_FOLLOWING) ?? open[0];
}

/** Focus a request's block, at whatever level of detail its row is shown. @param {HTMLElement} block */
function goTo(block) {
  document.querySelector("detail-level")?.reveal(block.closest("[data-seq]")?.dataset.level);
  block.focus();
}

function goOn() {
  const block = nextOpen(document.activeElement ?? document.body);
  const link = document.querySelector("[data-to-request]:not([hidden])");
  if (block) goTo(block);
  else if (link) location.assign(link.href);
}

function follow(event) {
  if (!event.target.closest?.("[data-to-request]")) return;
  const block = nextOpen(document.body);
  if (!block) return; // the link leads to its event
  event.preventDefault();
  goTo(block);
}

function draw({ detail }) {
  const { request } = detail.fresh.querySelector("[data-standing]").dataset;
  for (const link of links()) {
    link.hidden = request === "0";
    if (!link.hidden) link.setAttribute("href", `?event=${request}#e${request}`);
  }
}

/** On a page that was opened at a request: the browser lets go of the focus where it draws what the address names. */
function begin() {
  const row = document.getElementById(location.hash.slice(1))?.closest("[data-seq]");
  if (document.activeElement?.closest(".approval, .conversation-head, .composer")) return;
  row?.querySelector(OPEN)?.focus({ preventScroll: true, focusVisible: false });
}

const onceDrawn = (act) => requestAnimationFrame(() => requestAnimationFrame(act));

if (links().length) {
  if (document.readyState === "complete") onceDrawn(begin);
  else addEventListener("load", () => onceDrawn(begin), { once: true });
  document.addEventListener("click", follow);
  document.addEventListener("standing:drawn", draw);
  onKey("n", goOn);
}
