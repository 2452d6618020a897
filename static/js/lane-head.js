/** The head of a lane, as the page's template has it. Used by `lane-heads`. */

/**
 * Make the head of a lane. `mark` and `name` are those that a card shows.
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

/** What is known of a lane by its head. @param {HTMLElement} head */
export const laneOf = (head) => ({ head, hue: head.dataset.hue, isTool: head.dataset.kind === "tool" });
