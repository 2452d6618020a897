/** The options of the command palette: actions of the page, an event by its number, pages, conversations, search results. */
import { swapTimes } from "./clock.js";
import { choose, theme } from "./theme.js";

/** @typedef {import("./options.js").Option} Option */

/** Returns the page's own actions: begin what its forms add; a conversation's pending request, verbs and views. @returns {Option[]} */
export function pageActions() {
  return [
    ...all("[data-to-request]:not([hidden])")
      .slice(0, 1)
      .map((link) => ({ symbol: "gate", label: "Go to the request that waits", key: "n", act: afterClose(() => link.click()) })),
    ...all("[data-verbs] button").map((button) => {
      const key = button.querySelector("kbd")?.textContent;
      return { symbol: symbolOf(button), label: button.title, key, act: afterClose(() => button.click()) };
    }),
    ...all("a[data-view-key]:not([aria-current])").map((link) => ({ symbol: symbolOf(link), label: link.title, key: `g ${link.dataset.viewKey}`, act: () => link.click() })),
    ...all(".beginning > summary").map((summary) => ({ symbol: "plus", label: summary.textContent.trim(), act: afterClose(() => openForm(summary)) })),
  ];
}

/** Splits the input into its prefix, `>`, `@`, `#` or "", and the query after it. @param {string} typed @returns {{prefix: string, query: string}} */
export function parseInput(typed) {
  const text = typed.trim();
  return /^[>@#]/u.test(text) ? { prefix: text[0], query: text.slice(1).trim() } : { prefix: "", query: text };
}

/** Returns the event with the number in the query, on the page of a conversation. @param {string} query @returns {Option[]} */
export function eventByNumber(query) {
  const number = Number(/^#?(\d{1,15})$/.exec(query)?.[1] ?? 0);
  const head = Number(document.querySelector("[data-standing]")?.dataset.head ?? 0);
  if (!number || number > head) return [];
  const place = new URL(location.href);
  place.searchParams.set("event", number);
  place.hash = `e${number}`;
  return [{ symbol: "list", label: `Event ${number} of this conversation`, href: place.href }];
}

/** Returns the pages, and the actions that every page has. @returns {Option[]} */
export function pagesAndActions() {
  const links = new Map(all(".nav > a, .menu > a").map((link) => [link.href, link]));
  return [
    ...[...links.values()].map((link) => ({ symbol: "right", label: textOf(link), note: waitingNote(link), href: link.href })),
    ...["system", "light", "dark"]
      .filter((name) => name !== theme())
      .map((name) => ({ symbol: "theme", label: `Theme: ${name}`, act: () => choose(name) })),
    { symbol: "clock", label: "Toggle relative and clock times", act: swapTimes },
    { symbol: "list", label: "Keyboard shortcuts", key: "?", act: afterClose(() => document.querySelector("[data-action='help']")?.click()) },
    { symbol: "x", label: "Sign out", act: () => document.querySelector(".menu > form").requestSubmit() },
  ];
}

/** Returns the link to the search page. @param {string} query @returns {Option} */
export const searchOption = (query) => ({
  symbol: "search",
  label: query ? `Search everywhere for “${query}”` : "Search everywhere",
  note: query ? "messages, calls, errors" : "",
  href: `/search/${query ? `?${new URLSearchParams({ q: query })}` : ""}`,
});

/** Returns the link to a conversation. @returns {Option} */
export const conversationOption = ({ title, conversation_id: id, url, shown_state: state, last_activity_at: at }) => ({
  symbol: `s-${state.state}`,
  state,
  at,
  label: title || id,
  note: title ? id : "",
  href: url,
});

/** Returns the link to an agent's page. @returns {Option} */
export const agentOption = ({ name, team, url, mark }) => ({ mark, label: name, note: team, href: url });

/** Returns the link to a participant's conversations. @returns {Option} */
export const participantOption = ({ name, url }) => ({ symbol: "talk", label: name, href: url });

/** Returns the link to an event that the search found. @returns {Option} */
export const eventOption = ({ title, conversation_id: id, seq, at, mark, excerpts, url }) => ({
  mark,
  at: new Date(at / 1000).toISOString(),
  label: excerpts[0]?.text ?? `Event ${seq}`,
  note: `${title || id}, ${seq}`,
  href: url,
});

const all = (selector) => [...document.querySelectorAll(selector)];

/** Returns an action that runs once the palette is closed, since closing it moves the focus. */
const afterClose = (act) => () => setTimeout(act);

const symbolOf = (control) => control.querySelector("use").getAttribute("href").replace("#i-", "");

/** Returns the text of a link without the count beside it. */
const textOf = (link) => [...link.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join("").trim();

/** Returns how many requests wait behind a link, as text; "" if there are none. */
function waitingNote(link) {
  const count = link.querySelector(".count:not([hidden]) > :last-child");
  return count ? `${count.textContent} waiting` : "";
}

function openForm(summary) {
  summary.parentElement.open = true;
  summary.scrollIntoView({ block: "nearest" });
  (summary.parentElement.querySelector("textarea") ?? summary).focus();
}
