/**
 * `<bulk-actions>`: verbs over the rows whose box is ticked. What is ticked stays so while rows move, change and are drawn
 * again; a new filter clears it. Rows themselves come by the socket; here is only told what could not be done.
 */
import { RequestError, json } from "./fetch.js";
import { askReason } from "./reason-dialog.js";

const MAX_CONVERSATIONS = 200; // of one request

class BulkActions extends HTMLElement {
  #stop;
  #picked = new Set();
  #watch;
  #isSending = false;

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    const list = document.querySelector("[data-list]");
    list.addEventListener("change", ({ target }) => target.name === "conversation" && this.#pick(target), { signal });
    document.addEventListener("submit", (event) => this.#submit(event), { signal });
    document.addEventListener("filter", () => this.#clear(), { signal }); // what is no longer shown is not acted on
    this.querySelector("[data-clear]").addEventListener("click", () => this.#clear(), { signal });
    this.#watch = new MutationObserver(() => this.#tick());
    this.#watch.observe(list, { childList: true, subtree: true });
    for (const box of boxes()) if (box.checked) this.#picked.add(keyOf(box)); // as the browser kept them
    this.#draw();
  }

  disconnectedCallback() {
    this.#watch.disconnect();
    this.#stop.abort();
  }

  #pick(box) {
    if (box.checked) this.#picked.add(keyOf(box));
    else this.#picked.delete(keyOf(box));
    this.#draw();
  }

  #clear() {
    this.#picked.clear();
    this.#tick();
    this.#draw();
  }

  #tick() {
    for (const box of boxes()) box.checked = this.#picked.has(keyOf(box));
  }

  #draw() {
    const form = this.querySelector("#bulk");
    form.toggleAttribute("data-none", this.#picked.size === 0);
    form.querySelector("[data-count]").textContent = `${this.#picked.size} selected`;
  }

  #submit(event) {
    if (!["bulk", "stop-one"].includes(event.target.id) || !event.submitter) return;
    event.preventDefault();
    if (event.target.id === "bulk") this.#do(event.target, event.submitter);
    else this.#stopOne(event.submitter);
  }

  async #do(form, button) {
    const reason = button.dataset.asks ? await askReason(this.querySelector("dialog"), button) : "";
    const conversations = [...this.#picked].slice(0, MAX_CONVERSATIONS);
    if (reason === null || !conversations.length) return;
    await this.#ask(form.getAttribute("action"), { action: button.value, conversations, reason }, ({ items }) => {
      const failed = items.filter(({ error }) => error);
      this.#picked = new Set(failed.map((one) => one.conversation_id));
      this.#tick();
      this.#draw();
      const first = failed.length ? ` ${failed[0].conversation_id}: ${failed[0].error.message}` : "";
      return `${items.length - failed.length} of ${items.length} done.${first}`;
    });
  }

  async #stopOne(button) {
    await this.#ask(button.getAttribute("formaction"), { action: "stop", reason: "Looked stuck" }, () => "Stopping after this turn.");
  }

  async #ask(address, body, told) {
    if (this.#isSending) return;
    this.#isSending = true;
    const place = this.querySelector("[data-said]");
    try {
      place.textContent = told(await json(address, { body }));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      place.textContent = `Not done. ${error.sentence}`;
    } finally {
      this.#isSending = false;
    }
  }
}

/** Which conversation a box is of: its row says it. A box has no text of others in it. */
const keyOf = (box) => box.closest("[data-key]").dataset.key;

const boxes = () => document.querySelectorAll("[data-list] .pick input");

customElements.define("bulk-actions", BulkActions);
