/** Changes the text of a label that may be pressed at that moment. Used by elements whose labels change by themselves. */

/**
 * Change an element's text in place: Safari drops the click of a press if the text node under it is replaced before its release.
 * @param {Element} element @param {string | number} text
 */
export const setLabel = (element, text) => {
  const label = String(text);
  const [node, ...others] = element.childNodes;
  if (!(node instanceof Text) || others.length) element.textContent = label;
  else if (node.data !== label) node.data = label; // each write is read out by screen readers
};
