/** `<copy-field>`: a read-only input or text area with a copy button. Without a clipboard its text is selected instead. */
import { copy } from "./clipboard.js";
import { COPY_KEYS } from "./platform-keys.js";

class CopyField extends HTMLElement {
  #copy = async () => {
    const input = this.querySelector("input, textarea");
    const status = this.querySelector("[role=status]");
    input.select();
    status.textContent = (await copy(input.value)) ? "Copied" : `Selected. Press ${COPY_KEYS} to copy.`;
  };

  connectedCallback() {
    this.querySelector("button").addEventListener("click", this.#copy);
  }

  disconnectedCallback() {
    this.querySelector("button").removeEventListener("click", this.#copy);
  }
}

customElements.define("copy-field", CopyField);
