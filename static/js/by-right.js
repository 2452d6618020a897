/** `<by-right data-right>`: verbs within drawn blocks, which are the same for everybody. Those the reader may not use are disabled. */
const WORDS = {
  decide: "An approver or an admin decides this.",
  respond: "An operator or an admin may answer this.",
  control: "An operator or an admin may do this.",
};

class ByRight extends HTMLElement {
  connectedCallback() {
    const { right } = this.dataset;
    if (document.body.dataset.may.split(" ").includes(right)) return;
    for (const link of this.querySelectorAll("a.rerun")) link.hidden = true;
    for (const control of this.querySelectorAll("button, input, textarea")) control.disabled = true;
    this.title = WORDS[right] ?? "";
  }
}
customElements.define("by-right", ByRight);
