/**
 * Change a drawn block into its newer drawing without taking it out: focus, selection and what the reader opened stay.
 * Children are of one thing where they have the same `data-key` or `id`; those without are paired in their order.
 */

/** Attributes that belong to the reader, not to the drawing. */
const READERS = { DETAILS: ["open"], ARTICLE: ["aria-current", "data-follow"], BUTTON: ["disabled"], INPUT: ["disabled"] };

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
  const left = Map.groupBy(newer, identity); // what may still come, by identity
  let at = old.firstChild;
  for (const node of newer) {
    const same = identity(node);
    while (at && identity(at) !== same && (at instanceof Text || !left.get(identity(at))?.length)) at = removed(at);
    left.get(same).pop();
    const pair = at && identity(at) === same ? at : isKeyed(node) && later(at, same);
    if (!pair) old.insertBefore(node, at);
    else if (pair === at || isInUse(pair)) at = behind(at, pair);
    else old.insertBefore(pair, at);
    if (pair) morph(pair, node);
  }
  while (at) at = removed(at);
};

/** What a node is of: its kind and its key. */
const identity = (node) => `${node.nodeName} ${keyOf(node) ?? ""}`;
const isKeyed = (node) => Boolean(keyOf(node));
const keyOf = (node) => (node instanceof Element ? node.getAttribute("data-key") ?? node.getAttribute("id") : null);

const later = (at, same) => {
  while (at && identity(at) !== same) at = at.nextSibling;
  return at;
};

/** Where the reader is: a node that is moved loses the focus and what is selected. */
const isInUse = (node) => node.contains(document.activeElement) || getSelection().containsNode(node, true);

/** Put what stands between two siblings behind the second; answer what follows that. */
const behind = (at, pair) => {
  const next = pair.nextSibling;
  const passed = [];
  for (; at !== pair; at = at.nextSibling) passed.push(at);
  pair.after(...passed);
  return passed[0] ?? next;
};

const removed = (node) => {
  const next = node.nextSibling;
  node.remove();
  return next;
};
