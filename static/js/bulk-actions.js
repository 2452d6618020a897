/**
 * `<bulk-actions>`: the actions for selected conversations. The selection survives when rows are moved, changed or rendered
 * again; a row that leaves the page is deselected, a changed filter clears all. The rows are updated through the socket; the
 * result is summarized here.
 */
import { noteFailure } from "./failure-note.js";
import { RequestError, json } from "./fetch.js";
import { askReason } from "./reason-dialog.js";

const MAX_CONVERSATIONS = 200; // per request

class BulkActions extends HTMLElement {
  #stop;
  #selectedKeys = new Set();
  #observer;
  #isSending = false;

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    const list = document.querySelector("[data-list]");
    list.addEventListener("change", ({ target }) => target.name === "conversation" && this.#select(target), { signal });
    document.addEventListener("submit", (event) => this.#submit(event), { signal });
    document.addEventListener("filter", () => this.#clear(), { signal }); // no action on rows that are no longer shown
    this.querySelector("[data-clear]").addEventListener("click", () => this.#clear(), { signal });
    this.#observer = new MutationObserver(() => this.#handleRows());
    this.#observer.observe(list, { childList: true, subtree: true });
    for (const checkbox of checkboxes()) if (checkbox.checked) this.#selectedKeys.add(keyOf(checkbox)); // restored by the browser
    this.#updateBar();
  }

  disconnectedCallback() {
    this.#observer.disconnect();
    this.#stop.abort();
  }

  #select(checkbox) {
    if (checkbox.checked) this.#selectedKeys.add(keyOf(checkbox));
    else this.#selectedKeys.delete(keyOf(checkbox));
    this.#updateBar();
  }

  #clear() {
    this.#selectedKeys.clear();
    this.#updateCheckboxes();
    this.#updateBar();
  }

  /** Deselect rows that have left the page: no action on rows that are not shown. */
  #handleRows() {
    const shownKeys = new Set([...checkboxes()].map(keyOf));
    const goneKeys = [...this.#selectedKeys].filter((key) => !shownKeys.has(key));
    this.#updateCheckboxes();
    if (!goneKeys.length) return;
    for (const key of goneKeys) this.#selectedKeys.delete(key);
    this.querySelector("[data-said]").textContent = `${goneKeys.length} deselected: no longer on this page.`;
    this.#updateBar();
  }

  #updateCheckboxes() {
    for (const checkbox of checkboxes()) checkbox.checked = this.#selectedKeys.has(keyOf(checkbox));
  }

  #updateBar() {
    const form = this.querySelector("#bulk");
    form.toggleAttribute("data-none", this.#selectedKeys.size === 0);
    form.querySelector("[data-count]").textContent = `${this.#selectedKeys.size} selected`;
    const compare = form.querySelector("[data-compare]");
    compare.hidden = this.#selectedKeys.size !== 2;
    const [a, b] = this.#selectedKeys;
    if (!compare.hidden) compare.href = `${compare.dataset.compare}?${new URLSearchParams({ a, b })}`;
  }

  #submit(event) {
    if (!["bulk", "stop-one"].includes(event.target.id) || !event.submitter) return;
    event.preventDefault();
    if (event.target.id === "bulk") this.#sendAction(event.target, event.submitter);
    else this.#stopConversation(event.submitter);
  }

  async #sendAction(form, button) {
    const reason = button.dataset.asks ? await askReason(this.querySelector("dialog"), button) : "";
    const [conversations, rest] = [[...this.#selectedKeys].slice(0, MAX_CONVERSATIONS), [...this.#selectedKeys].slice(MAX_CONVERSATIONS)];
    if (reason === null || !conversations.length) return;
    await this.#send(form.getAttribute("action"), { action: button.value, conversations, reason }, ({ items }) => {
      const failures = items.filter(({ error }) => error);
      this.#selectedKeys = new Set([...failures.map((failure) => failure.conversation_id), ...rest]);
      this.#updateCheckboxes();
      this.#updateBar();
      const firstFailure = failures.length ? ` ${failures[0].conversation_id}: ${failures[0].error.message}` : "";
      return `${items.length - failures.length} of ${items.length + rest.length} done.${firstFailure}`;
    });
  }

  async #stopConversation(button) {
    await this.#send(button.getAttribute("formaction"), { action: "stop", reason: "Looked stuck" }, () => "Stopping after this turn.");
  }

  /** Send a request and show its result. @param {(response: any) => string} resultText  returns the result of a successful one */
  async #send(address, body, resultText) {
    if (this.#isSending) return;
    this.#isSending = true;
    const status = this.querySelector("[data-said]");
    try {
      status.textContent = resultText(await json(address, { body }));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      noteFailure(status, error);
    } finally {
      this.#isSending = false;
    }
  }
}

/** Returns the key of a checkbox's conversation, from its row: a checkbox has no value. */
const keyOf = (checkbox) => checkbox.closest("[data-key]").dataset.key;

const checkboxes = () => document.querySelectorAll("[data-list] .pick input");

customElements.define("bulk-actions", BulkActions);
