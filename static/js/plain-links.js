/**
 * Navigation while the connection is lost, on every page: where the browser's own error page would replace this one, the page
 * stays open, and the address is opened once the server responds. With a connection, the browser follows links by itself.
 */
import { isReachable } from "./fetch.js";
import { report, withdrawReport } from "./page-report.js";
import { socket } from "./socket.js";

const TEXT = "The server is not reachable; this page stays open. The link opens once the server is back.";

let target = ""; // the address to open; empty: none

/** Open an address, as a link does. @param {string | URL} address */
export function visit(address) {
  if (socket.state === "down") openOnceReachable(address);
  else location.assign(address);
}

async function openOnceReachable(address) {
  const wanted = (target = String(address));
  const canOpen = await isReachable();
  if (target !== wanted) return;
  if (canOpen) open();
  else report(TEXT, "failed", () => (target = ""));
}

function open() {
  const address = target;
  cancel();
  if (address) location.assign(address);
}

function cancel() {
  if (target) withdrawReport();
  target = "";
}

function handleClick(event) {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.hasAttribute("download") || !["", "_self"].includes(link.getAttribute("target") ?? "")) return;
  const address = new URL(link.getAttribute("href"), document.baseURI);
  if (socket.state !== "down" || address.origin !== location.origin || isOnPage(address)) return;
  event.preventDefault();
  link.closest("dialog")?.close(); // it would cover what is said
  link.closest("[popover]")?.hidePopover();
  openOnceReachable(address);
}

/** Whether an address is a place on this page. */
const isOnPage = ({ pathname, search, hash }) => hash && pathname === location.pathname && search === location.search;

/** A form that only opens an address, such as that of a search. */
function handleSubmit(event) {
  const { target: form, submitter } = event;
  if (socket.state !== "down" || event.defaultPrevented || (submitter?.getAttribute("formmethod") ?? form.method) !== "get") return;
  event.preventDefault();
  const address = new URL(submitter?.getAttribute("formaction") ?? form.getAttribute("action") ?? "", document.baseURI);
  address.search = new URLSearchParams(new FormData(form, submitter));
  openOnceReachable(address);
}

addEventListener("click", handleClick); // on the window: after the elements that handle clicks themselves
addEventListener("submit", handleSubmit);
addEventListener("input", cancel); // whoever goes on typing stays
addEventListener("pagehide", cancel);
socket.addEventListener("state", () => (socket.state === "live" || socket.isClosedForGood) && open());
