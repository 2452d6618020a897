/**
 * Patches a node in the document to match a newer rendering: focus, selection and what the reader opened stay. Children
 * match by `data-key` or `id`; those without a key match in their order.
 */
import { isDragged } from "./field-size.js";

/** Attributes that the reader's actions or scripts set; a newer rendering does not overwrite them. */
const PRESERVED = { DETAILS: ["open"], ARTICLE: ["aria-current", "data-follow"], BUTTON: ["disabled"], INPUT: ["disabled"] };

/**
 * @param {Node} node in the document
 * @param {Node} newer its newer rendering; nodes are moved out of it
 */
export const morph = (node, newer) => {
  if (node.nodeName !== newer.nodeName || symbolOf(node) !== symbolOf(newer)) return node.replaceWith(newer);
  if (node instanceof CharacterData) {
    if (node.data !== newer.data) node.data = newer.data;
    return undefined;
  }
  if (node instanceof Element && node.hasAttribute("data-inner")) return undefined; // contains rows that are rendered by themselves
  morphAttributes(node, newer);
  return morphChildren(node, newer);
};

const morphAttributes = (node, newer) => {
  const preserved = node.nodeName === "TEXTAREA" && isDragged(node) ? ["style"] : PRESERVED[node.nodeName] ?? [];
  for (const { name } of [...node.attributes])
    if (!newer.hasAttribute(name) && !preserved.includes(name)) node.removeAttribute(name);
  for (const { name, value } of newer.attributes)
    if (node.getAttribute(name) !== value && !preserved.includes(name)) node.setAttribute(name, value);
};

const morphChildren = (parent, newerParent) => {
  const newerChildren = [...newerParent.childNodes];
  const remaining = Map.groupBy(newerChildren, identity); // newer children that are still to be matched, by identity
  let current = parent.firstChild;
  for (const newer of newerChildren) {
    const wanted = identity(newer);
    while (current && identity(current) !== wanted && (current instanceof Text || !remaining.get(identity(current))?.length)) current = remove(current);
    remaining.get(wanted).pop();
    const match = current && identity(current) === wanted ? current : isKeyed(newer) && findSibling(current, wanted);
    if (!match) parent.insertBefore(newer, current);
    else if (match === current || isInUse(match)) current = moveBehind(current, match);
    else parent.insertBefore(match, current);
    if (match) morph(match, newer);
  }
  while (current) current = remove(current);
};

/** Returns an icon's symbol. A changed one is another element: Safari would go on turning the icon of a run that has ended. */
const symbolOf = (node) => (node instanceof SVGElement && node.matches(".icon") ? node.firstElementChild?.getAttribute("href") : null);

/** Returns what a node is matched by: its name and its key. */
const identity = (node) => `${node.nodeName} ${keyOf(node) ?? ""}`;
const isKeyed = (node) => Boolean(keyOf(node));
const keyOf = (node) => (node instanceof Element ? node.getAttribute("data-key") ?? node.getAttribute("id") : null);

/** Returns the first node from `node` on with an identity, or null. */
const findSibling = (node, wanted) => {
  while (node && identity(node) !== wanted) node = node.nextSibling;
  return node;
};

/** Whether a node has the focus or selected text, which it would lose if it were moved. */
const isInUse = (node) => node.contains(document.activeElement) || getSelection().containsNode(node, true);

/** Move the siblings from `node` up to `match` behind `match`. Returns the sibling that then follows `match`. */
const moveBehind = (node, match) => {
  const next = match.nextSibling;
  const skipped = [];
  for (; node !== match; node = node.nextSibling) skipped.push(node);
  match.after(...skipped);
  return skipped[0] ?? next;
};

/** Remove a node. Returns its next sibling. */
const remove = (node) => {
  const next = node.nextSibling;
  node.remove();
  return next;
};
