/** `<permission-gate data-right>`: verbs within drawn blocks, which are the same for everybody. Those the reader may not use are disabled. */
const WORDS = {
  decide: "Only approvers and admins can decide this.",
  respond: "Only operators and admins can answer this.",
  control: "Only operators and admins can do this.",
};

class PermissionGate extends HTMLElement {
  connectedCallback() {
    const { right } = this.dataset;
    if (document.body.dataset.may.split(" ").includes(right)) return;
    for (const link of this.querySelectorAll("a.rerun")) link.hidden = true;
    for (const control of this.querySelectorAll("button, input, textarea")) control.disabled = true;
    this.title = WORDS[right] ?? "";
  }
}
customElements.define("permission-gate", PermissionGate);
