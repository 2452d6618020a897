/** Heads of lanes, from the page's template. Used by `lane-heads`. */

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

/** Return a lane's properties from its head. @param {HTMLElement} head */
export const laneOf = (head) => ({ head, hue: head.dataset.hue, isTool: head.dataset.kind === "tool" });
