/** Marks words in drawn text without a change of it, by the highlight `found` (static/css/base.css). Used by the palette. */

/** @param {Element} root @param {string} words typed, separated by spaces */
export function markWords(root, words) {
  const sought = words.toLowerCase().split(/\s+/u).filter(Boolean);
  if (CSS.highlights) CSS.highlights.set("found", new Highlight(...textsOf(root).flatMap((text) => sought.flatMap((word) => rangesOf(text, word)))));
}

const textsOf = (root) => {
  const texts = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) if (walker.currentNode.parentElement.matches("[role=option] > :is(span:not(.mark), small)")) texts.push(walker.currentNode);
  return texts;
};

const rangesOf = (text, word) => {
  const content = text.data.toLowerCase();
  const ranges = [];
  if (content.length !== text.data.length) return ranges; // a letter that is two in lower case: places would be others
  for (let at = content.indexOf(word); at >= 0; at = content.indexOf(word, at + word.length)) {
    const range = new Range();
    range.setStart(text, at);
    range.setEnd(text, at + word.length);
    ranges.push(range);
  }
  return ranges;
};
