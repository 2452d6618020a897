/** `g t`, `g l` …: from one view of a conversation to another, at the event that is picked, or that the address names. */
import { onKey } from "./keys.js";

const here = () =>
  document.querySelector('.column [data-seq][aria-current="true"]')?.dataset.seq ??
  new URLSearchParams(location.search).get("event");

const address = (link) => {
  const there = new URL(link.href);
  const event = here();
  const at = new URLSearchParams(location.search).get("at");
  if (at) there.searchParams.set("at", at);
  if (!event) return there;
  there.searchParams.set("event", event);
  there.hash = `e${event}`;
  return there;
};

for (const link of document.querySelectorAll("[data-view-key]")) {
  onKey(`g ${link.dataset.viewKey}`, () => location.assign(address(link)));
  link.addEventListener("click", () => (link.href = address(link)));
}
