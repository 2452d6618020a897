/** Heads of lanes, from the page's template. */

/**
 * Create the head of a lane. `mark` and `name` are elements of a card, which are copied.
 * @param {HTMLTemplateElement} template @param {string} key @param {HTMLElement} mark @param {HTMLElement} name
 * @returns {{head: HTMLElement, hue?: string, isTool: boolean}}
 */
export const headFrom = (template, key, mark, name) => {
  const head = template.content.firstElementChild.cloneNode(true);
  const symbol = mark.cloneNode(true);
  symbol.removeAttribute("data-size");
  head.querySelector(".mark").replaceWith(symbol);
  head.querySelector(".name").replaceChildren(...name.cloneNode(true).childNodes);
  head.title = name.title;
  head.dataset.key = key;
  if (mark.dataset.hue) head.dataset.hue = mark.dataset.hue;
  if (mark.dataset.kind === "tool") head.dataset.kind = "tool";
  return laneOf(head);
};

/** Return a lane's properties from its head, whose name may break at separators from now on. @param {HTMLElement} head */
export const laneOf = (head) => {
  allowBreaks(head.querySelector(".name"));
  return { head, hue: head.dataset.hue, isTool: head.dataset.kind === "tool" };
};

const BREAKS = /(?<=[_./:-])(?=[^_./:-])|(?<=[\p{Ll}\d])(?=\p{Lu})/u;

/** Let a name break after its separators and before capitals, rather than wherever the line ends. */
function allowBreaks(name) {
  const walker = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) {
    const parts = text.data.split(BREAKS);
    text.replaceWith(...parts.flatMap((part, n) => (n ? [document.createElement("wbr"), part] : [part])));
  }
}
