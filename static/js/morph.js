/** Change a drawn block into its newer drawing without taking it out: focus, selection and what the reader opened stay. */

/** Attributes that belong to the reader, not to the drawing. */
const READERS = { DETAILS: ["open"], ARTICLE: ["aria-current", "data-follow"], "BY-RIGHT": ["title"], BUTTON: ["disabled"], INPUT: ["disabled"] };

/**
 * @param {Node} old in the document
 * @param {Node} fresh its newer drawing, used up
 */
export const morph = (old, fresh) => {
  if (old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
  if (old instanceof CharacterData) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return undefined;
  }
  if (old instanceof Element && old.hasAttribute("data-inner")) return undefined; // rows of their own stand there
  morphAttributes(old, fresh);
  return morphChildren(old, fresh);
};

const morphAttributes = (old, fresh) => {
  const kept = READERS[old.nodeName] ?? [];
  for (const { name } of [...old.attributes])
    if (!fresh.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes)
    if (old.getAttribute(name) !== value && !kept.includes(name)) old.setAttribute(name, value);
};

const morphChildren = (old, fresh) => {
  const newer = [...fresh.childNodes];
  [...old.childNodes].slice(newer.length).forEach((node) => node.remove());
  const older = [...old.childNodes];
  newer.forEach((node, n) => (older[n] ? morph(older[n], node) : old.append(node)));
};
