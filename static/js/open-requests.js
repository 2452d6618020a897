/**
 * Navigation to the pending approval requests of a conversation: the key `n` goes to the next one, and the links to a request,
 * shown while one is pending, to the first. If its block is not on the page, the page of its event is opened.
 */
import { onKey } from "./keys.js";
import { visit } from "./plain-links.js";

const PENDING = ".approval:has(decision-form)";
const links = () => document.querySelectorAll("[data-to-request]");

/**
 * Returns the block of the first pending request after a node, or else the first one on the page.
 * @param {Node} node
 * @returns {HTMLElement | undefined}
 */
export function nextOpen(node) {
  const open = [...document.querySelectorAll(PENDING)];
  return open.find((block) => node.compareDocumentPosition(block) & Node.DOCUMENT_POSITION_FOLLOWING) ?? open[0];
}

/**
 * Focus a request's block and show it, from its start if it is higher than the view: who wants what stands there. The level of
 * detail is raised if it hides the row.
 * @param {HTMLElement} block
 */
function goTo(block) {
  document.querySelector("detail-level")?.reveal(block.closest("[data-seq]")?.dataset.level);
  block.focus({ preventScroll: true });
  const viewHeight = block.closest(".transcript")?.clientHeight ?? innerHeight;
  block.scrollIntoView({ block: block.offsetHeight > viewHeight ? "start" : "nearest" });
}

function goToNext() {
  const block = nextOpen(document.activeElement ?? document.body);
  const link = document.querySelector("[data-to-request]:not([hidden])");
  if (block) goTo(block);
  else if (link) visit(link.href);
}

function followLink(event) {
  if (!event.target.closest?.("[data-to-request]")) return;
  const block = nextOpen(document.body);
  if (!block) return; // the browser follows the link to the event
  event.preventDefault();
  goTo(block);
}

function updateLinks({ detail }) {
  const { request } = detail.fresh.querySelector("[data-standing]").dataset;
  for (const link of links()) {
    link.hidden = request === "0";
    if (!link.hidden) link.setAttribute("href", `?event=${request}#e${request}`);
  }
}

/** On a page opened at a request, focus its block: the browser drops the focus when it scrolls to the address's fragment. */
function focusLinked() {
  const seq = document.querySelector("event-picker")?.dataset.event || location.hash.slice(2); // the address loses it at the tail
  const row = document.getElementById(`e${seq}`)?.closest("[data-seq]");
  if (document.activeElement?.closest(".approval, .conversation-head, .composer")) return;
  row?.querySelector(PENDING)?.focus({ preventScroll: true, focusVisible: false });
}

const afterPaint = (callback) => requestAnimationFrame(() => requestAnimationFrame(callback));

if (links().length) {
  if (document.readyState === "complete") afterPaint(focusLinked);
  else addEventListener("load", () => afterPaint(focusLinked), { once: true });
  document.addEventListener("click", followLink);
  document.addEventListener("standing:drawn", updateLinks);
  onKey("n", goToNext);
}
