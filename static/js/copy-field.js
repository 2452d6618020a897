/** `<copy-field>`: a read-only input or text area with a copy button; without a clipboard the text is selected instead. */
class CopyField extends HTMLElement {
  #copy = async () => {
    const input = this.querySelector("input, textarea");
    const words = this.querySelector("[role=status]");
    input.select();
    try {
      await navigator.clipboard.writeText(input.value);
      words.textContent = "Copied";
    } catch {
      words.textContent = "Selected. Press Ctrl+C to copy.";
    }
  };

  connectedCallback() {
    this.querySelector("button").addEventListener("click", this.#copy);
  }

  disconnectedCallback() {
    this.querySelector("button").removeEventListener("click", this.#copy);
  }
}

customElements.define("copy-field", CopyField);
