/** Copies JSON: one value, its path, or all of it, which is the text of a `[data-source]`. Used by pages that show JSON. */
import { copy } from "./clipboard.js";
import { COPY_KEYS } from "./platform-keys.js";

/** Contains the `[data-copy]` buttons. Dispatches `said` {words} from the pressed one (bubbles). */
class JsonCopy extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", (event) => {
      const button = event.target.closest("[data-copy]");
      if (button) this.#copy(button);
    });
  }

  async #copy(button) {
    const { label, text, shown } = SOURCES[button.dataset.copy](button);
    const isCopied = await copy(text, shown);
    const words = isCopied ? `${label} copied` : `${label} selected. Press ${COPY_KEYS} to copy.`;
    button.dispatchEvent(new CustomEvent("said", { bubbles: true, detail: { words } }));
    if (!isCopied) return;
    button.dataset.state = "done";
    setTimeout(() => delete button.dataset.state, 1500);
  }
}

/** `data-copy` → what the button copies; `shown` is selected if the clipboard is refused. */
const SOURCES = {
  whole: (button) => {
    const part = button.closest("[data-copies]");
    const source = part.querySelector("[data-source]");
    return { label: "Text", text: source.textContent.trim(), shown: part.querySelector(".result") ?? source };
  },
  path: (button) => {
    const shown = button.closest("[data-path]");
    return { label: "Path", text: shown.dataset.path, shown };
  },
  value: (button) => {
    const shown = button.closest("[data-path]");
    return { label: "Value", text: valueOf(shown), shown };
  },
};

/** Returns a row's text without its key and its comma, unindented. */
const valueOf = (row) => {
  const value = row.cloneNode(true);
  const keyAndComma = ":scope > .around, :scope > details > .around, :scope > details > summary > .around";
  value.querySelectorAll(keyAndComma).forEach((part) => part.remove());
  const text = value.textContent.trim();
  const indent = /\n( *)[^\n]*$/.exec(text)?.[1] ?? "";
  return indent ? text.replaceAll(`\n${indent}`, "\n") : text;
};

customElements.define("json-copy", JsonCopy);
