/**
 * `<recording-upload data-to data-piece data-largest>`: uploads a file in pieces before its form is submitted, and shows the
 * progress. Without scripts the form itself contains the file, up to the size limit of a request.
 */
import { RequestError, bytes } from "./fetch.js";

class RecordingUpload extends HTMLElement {
  #form;
  #isSending = false; // its button is not disabled, which would lose the focus

  connectedCallback() {
    this.#form = this.querySelector("form");
    this.#form.addEventListener("submit", this.#submit);
    addEventListener("pageshow", this.#reset);
  }

  disconnectedCallback() {
    this.#form.removeEventListener("submit", this.#submit);
    removeEventListener("pageshow", this.#reset);
  }

  /** Reset the form when the reader comes back from the result page: another file may be uploaded. */
  #reset = ({ persisted }) => {
    if (!persisted) return;
    const { file, job } = this.#form.elements;
    file.disabled = this.#isSending = false;
    job.value = "";
    this.querySelector("[data-progress]").hidden = true;
  };

  #submit = async (event) => {
    event.preventDefault();
    const [file] = this.#form.elements.file.files;
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      this.#form.elements.job.value = await this.#upload(file);
      this.#form.elements.file.disabled = true; // it is uploaded already
      this.#form.submit();
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#showProgress(error.sentence);
      this.#isSending = false;
    }
  };

  async #upload(file) {
    const maxBytes = Number(this.dataset.largest);
    if (!file.size || file.size > maxBytes) {
      throw new RequestError(413, { code: "too_large", message: `The file must have 1 to ${maxBytes.toLocaleString("en")} bytes.` });
    }
    let upload = { job: "", received: 0 };
    while (upload.received < file.size) {
      const piece = file.slice(upload.received, upload.received + Number(this.dataset.piece));
      const query = new URLSearchParams({ name: file.name, size: file.size, offset: upload.received, job: upload.job });
      upload = await bytes(`${this.dataset.to}?${query}`, piece);
      this.#showProgress(`${Math.floor((100 * upload.received) / file.size)} % sent`, (100 * upload.received) / file.size);
    }
    return upload.job;
  }

  #showProgress(text, percent) {
    const line = this.querySelector("[data-progress]");
    line.hidden = false;
    line.querySelector("span").textContent = text;
    line.querySelector("progress").hidden = percent === undefined;
    line.querySelector("progress").value = percent ?? 0;
  }
}

customElements.define("recording-upload", RecordingUpload);
