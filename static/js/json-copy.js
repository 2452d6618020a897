/** Copies JSON: one value, its path, or the whole text. The text of a `[data-source]` is the JSON itself. */
import { copy } from "./clipboard.js";

/** Around everything that holds `[data-copy]` buttons. Tells, bubbling: `said` {words}. */
class JsonCopy extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", (event) => {
      const button = event.target.closest("[data-copy]");
      if (button) this.#copy(button);
    });
  }

  async #copy(button) {
    const { what, text, shown } = COPIES[button.dataset.copy](button);
    const isCopied = await copy(text, shown);
    const words = isCopied ? `${what} copied` : `${what} selected. Press Ctrl+C to copy.`;
    button.dispatchEvent(new CustomEvent("said", { bubbles: true, detail: { words } }));
    if (!isCopied) return;
    button.dataset.state = "done";
    setTimeout(() => delete button.dataset.state, 1500);
  }
}

const COPIES = {
  whole: (button) => {
    const shown = button.closest("[data-copies]").querySelector("[data-source], .result");
    return { what: "Text", text: shown.textContent.trim(), shown };
  },
  path: (button) => {
    const shown = button.closest("[data-path]");
    return { what: "Path", text: shown.dataset.path, shown };
  },
  value: (button) => {
    const shown = button.closest("[data-path]");
    return { what: "Value", text: valueOf(shown), shown };
  },
};

/** A row's text without its own key and comma, moved to the left edge. */
const valueOf = (row) => {
  const value = row.cloneNode(true);
  const own = ":scope > .around, :scope > details > .around, :scope > details > summary > .around";
  value.querySelectorAll(own).forEach((part) => part.remove());
  const text = value.textContent.trim();
  const margin = /\n( *)[^\n]*$/.exec(text)?.[1] ?? "";
  return margin ? text.replaceAll(`\n${margin}`, "\n") : text;
};

customElements.define("json-copy", JsonCopy);
