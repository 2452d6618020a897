/** The one place where text becomes markup. Only markup that our server rendered may come here (§7). */
const policy = globalThis.trustedTypes?.createPolicy("switchboard", { createHTML: (html) => html });

/**
 * Turn markup rendered by our server into nodes, ready to insert.
 * @param {string} html
 * @returns {DocumentFragment}
 */
export function render(html) {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(html) : html;
  return template.content;
}
