/** What the command palette offers: this page's actions, an event by its number, pages, conversations, what a search finds. */
import { swapTimes } from "./clock.js";
import { choose, theme } from "./theme.js";

/** @typedef {import("./options.js").Option} Option */

/** What the page itself can do: begin a conversation; a conversation's request, verbs and views. @returns {Option[]} */
export function pageActions() {
  return [
    ...all("[data-to-request]:not([hidden])").slice(0, 1).map((link) => ({ symbol: "gate", words: "Go to the request that waits", key: "n", act: later(() => link.click()) })),
    ...all("[data-verbs] button").map((button) => ({ symbol: symbolOf(button), words: button.title, key: button.querySelector("kbd")?.textContent, act: later(() => button.click()) })),
    ...all("a[data-view-key]:not([aria-current])").map((link) => ({ symbol: symbolOf(link), words: link.title, key: `g ${link.dataset.viewKey}`, act: () => link.click() })),
    ...all(".beginning > summary").map((summary) => ({ symbol: "plus", words: "New conversation", act: later(() => begin(summary)) })),
  ];
}

/** What is sought: `kind` by the sign before the words, else "". @param {string} typed @returns {{kind: string, words: string}} */
export function queryOf(typed) {
  const text = typed.trim();
  return /^[>@#]/u.test(text) ? { kind: text[0], words: text.slice(1).trim() } : { kind: "", words: text };
}

/** The event that a number names, on the page of a conversation. @param {string} words @returns {Option[]} */
export function eventByNumber(words) {
  const number = Number(/^#?(\d{1,15})$/.exec(words)?.[1] ?? 0);
  const head = Number(document.querySelector("[data-standing]")?.dataset.head ?? 0);
  if (!number || number > head) return [];
  const place = new URL(location.href);
  place.searchParams.set("event", number);
  place.hash = `e${number}`;
  return [{ symbol: "list", words: `Event ${number} of this conversation`, href: place.href }];
}

/** Pages, and what can be done on each. @returns {Option[]} */
export function everyPage() {
  const links = new Map(all(".nav > a, .menu > a").map((link) => [link.href, link]));
  return [
    ...[...links.values()].map((link) => ({ symbol: "right", words: wordsOf(link), note: waitingOf(link), href: link.href })),
    ...["system", "light", "dark"]
      .filter((name) => name !== theme())
      .map((name) => ({ symbol: "theme", words: `Theme: ${name}`, act: () => choose(name) })),
    { symbol: "clock", words: "Toggle relative and clock times", act: swapTimes },
    { symbol: "list", words: "Keyboard shortcuts", key: "?", act: later(() => document.querySelector("[data-action='help']")?.click()) },
    { symbol: "x", words: "Sign out", act: () => document.querySelector(".menu > form").requestSubmit() },
  ];
}

/** @returns {Option} */
export const everywhere = (words) => ({
  symbol: "search",
  words: words ? `Search everywhere for “${words}”` : "Search everywhere",
  note: words ? "messages, calls, errors" : "",
  href: `/search/${words ? `?${new URLSearchParams({ q: words })}` : ""}`,
});

/** @returns {Option} */
export const ofConversation = ({ title, conversation_id: id, url, shown_state: state, last_activity_at: at }) => ({
  symbol: `s-${state.state}`,
  state,
  at,
  words: title || id,
  note: title ? id : "",
  href: url,
});

/** A page of an agent. @returns {Option} */
export const ofAgent = ({ name, team, url, mark }) => ({ mark, words: name, note: team, href: url });

/** The conversations of a participant. @returns {Option} */
export const ofParticipant = ({ name, url }) => ({ symbol: "talk", words: name, href: url });

/** An event that a search found. @returns {Option} */
export const ofHit = ({ title, conversation_id: id, seq, at, mark, excerpts, url }) => ({
  mark,
  at: new Date(at / 1000).toISOString(),
  words: excerpts[0]?.text ?? `Event ${seq}`,
  note: `${title || id}, ${seq}`,
  href: url,
});

const all = (selector) => [...document.querySelectorAll(selector)];

/** Once the palette is closed: what opens a dialog has its focus. */
const later = (act) => () => setTimeout(act);

const symbolOf = (control) => control.querySelector("use").getAttribute("href").replace("#i-", "");

/** The words of a link without the number beside them. */
const wordsOf = (link) => [...link.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join("").trim();

/** What waits behind a link, "" where nothing does. */
function waitingOf(link) {
  const count = link.querySelector(".count:not([hidden]) > :last-child");
  return count ? `${count.textContent} waiting` : "";
}

function begin(summary) {
  summary.parentElement.open = true;
  summary.scrollIntoView({ block: "nearest" });
  (summary.parentElement.querySelector("textarea") ?? summary).focus();
}
