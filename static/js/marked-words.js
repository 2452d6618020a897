/** Highlights the words of a query in the options of the palette or in a row of a transcript, by the CSS highlight `found` (static/css/base.css): the DOM stays as it is. */

const OPTION = "[role=option] > :is(span:not(.mark), small)";

/** @param {Element} root @param {string} query  words separated by spaces @param {string} [within]  elements whose own texts are highlighted */
export function markWords(root, query, within = OPTION) {
  const terms = query.toLowerCase().split(/\s+/u).filter(Boolean);
  if (CSS.highlights) CSS.highlights.set("found", new Highlight(...textsOf(root, within).flatMap((text) => terms.flatMap((word) => rangesOf(text, word)))));
}

const textsOf = (root, within) => {
  const texts = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) if (walker.currentNode.parentElement.matches(within)) texts.push(walker.currentNode);
  return texts;
};

const rangesOf = (text, word) => {
  const content = text.data.toLowerCase();
  const ranges = [];
  if (content.length !== text.data.length) return ranges; // a letter has two in lower case, so the offsets would differ
  for (let at = content.indexOf(word); at >= 0; at = content.indexOf(word, at + word.length)) {
    const range = new Range();
    range.setStart(text, at);
    range.setEnd(text, at + word.length);
    ranges.push(range);
  }
  return ranges;
};
