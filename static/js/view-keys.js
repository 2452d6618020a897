/** Keys `g t`, `g l` …: switch to another view of the conversation, at the selected event or the one in the address. */
import { onKey } from "./keys.js";
import { visit } from "./plain-links.js";

const currentEvent = () =>
  document.querySelector('.column [data-seq][aria-current="true"]')?.dataset.seq ??
  new URLSearchParams(location.search).get("event");

const addressOf = (link) => {
  const address = new URL(link.href);
  const event = currentEvent();
  const at = new URLSearchParams(location.search).get("at");
  if (at) address.searchParams.set("at", at);
  if (!event) return address;
  address.searchParams.set("event", event);
  address.hash = `e${event}`;
  return address;
};

for (const link of document.querySelectorAll("[data-view-key]")) {
  onKey(`g ${link.dataset.viewKey}`, () => visit(addressOf(link)));
  link.addEventListener("click", () => (link.href = addressOf(link)));
}
