/** The only module that turns text into DOM nodes. Pass it only HTML that our server rendered (§7). */
const policy = globalThis.trustedTypes?.createPolicy("switchboard", { createHTML: (html) => html });

/**
 * Parse HTML rendered by our server into nodes to insert.
 * @param {string} html
 * @returns {DocumentFragment}
 */
export function render(html) {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(html) : html;
  return template.content;
}
