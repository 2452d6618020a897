/**
 * `<recording-upload data-to data-piece data-largest>`: sends a file in pieces before its form goes, and says how far it is. Without
 * scripts the form itself has the file, as far as a page may send one.
 */
import { RequestError, bytes } from "./fetch.js";

class RecordingUpload extends HTMLElement {
  #form;

  connectedCallback() {
    this.#form = this.querySelector("form");
    this.#form.addEventListener("submit", this.#begin);
    addEventListener("pageshow", this.#again);
  }

  disconnectedCallback() {
    this.#form.removeEventListener("submit", this.#begin);
    removeEventListener("pageshow", this.#again);
  }

  /** Back from what became of a file: another one may be sent. */
  #again = ({ persisted }) => {
    if (!persisted) return;
    const { file, job } = this.#form.elements;
    file.disabled = this.#form.querySelector("button").disabled = false;
    job.value = "";
    this.querySelector("[data-progress]").hidden = true;
  };

  #begin = async (event) => {
    event.preventDefault();
    const [file] = this.#form.elements.file.files;
    const button = this.#form.querySelector("button");
    button.disabled = true;
    try {
      this.#form.elements.job.value = await this.#send(file);
      this.#form.elements.file.disabled = true; // it is there already
      this.#form.submit();
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#say(error.sentence);
      button.disabled = false;
    }
  };

  async #send(file) {
    const largest = Number(this.dataset.largest);
    if (!file.size || file.size > largest) {
      throw new RequestError(413, { code: "too_large", message: `The file must have 1 to ${largest.toLocaleString("en")} bytes.` });
    }
    let told = { job: "", received: 0 };
    while (told.received < file.size) {
      const piece = file.slice(told.received, told.received + Number(this.dataset.piece));
      const query = new URLSearchParams({ name: file.name, size: file.size, offset: told.received, job: told.job });
      told = await bytes(`${this.dataset.to}?${query}`, piece);
      this.#say(`${Math.floor((100 * told.received) / file.size)} % sent`, (100 * told.received) / file.size);
    }
    return told.job;
  }

  #say(words, percent) {
    const line = this.querySelector("[data-progress]");
    line.hidden = false;
    line.querySelector("span").textContent = words;
    line.querySelector("progress").hidden = percent === undefined;
    line.querySelector("progress").value = percent ?? 0;
  }
}

customElements.define("recording-upload", RecordingUpload);
