/** The state of the socket as every page shows it: the dot in the top bar, the strips, and the button to reconnect now. */
import { socket } from "./socket.js";

const LABELS = { live: "Live", connecting: "Connecting", down: "Reconnecting", crowded: "Not live", "signed-out": "Signed out", forbidden: "Not live", "other-person": "Not live" };
const GRACE_MS = 1_000; // a shorter loss of the connection is not shown

/** `<live-state>`: the dot. Hidden on pages without a subscription. */
class LiveState extends HTMLElement {
  #timer;

  connectedCallback() {
    socket.addEventListener("state", this);
    this.handleEvent();
  }

  disconnectedCallback() {
    socket.removeEventListener("state", this);
    clearTimeout(this.#timer);
  }

  handleEvent() {
    const isLost = socket.state === "down" || socket.state === "connecting";
    if (isLost && this.#timer) return; // another attempt does not restart the grace period
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#render(), isLost ? GRACE_MS : 0);
  }

  #render() {
    this.#timer = undefined;
    this.hidden = !(socket.state in LABELS);
    this.dataset.state = socket.state;
    this.textContent = LABELS[socket.state] ?? "";
  }
}

/** `<connection-strip>`: shows the strip whose `data-state` is the socket's, or `other-person` once `fetch.js` reports it. */
class ConnectionStrip extends HTMLElement {
  #isOtherPerson = false;

  connectedCallback() {
    socket.addEventListener("state", this);
    document.addEventListener("other-person", this);
    this.handleEvent();
  }

  disconnectedCallback() {
    socket.removeEventListener("state", this);
    document.removeEventListener("other-person", this);
  }

  /** @param {Event} [event] */
  handleEvent(event) {
    this.#isOtherPerson ||= event?.type === "other-person";
    const state = this.#isOtherPerson ? "other-person" : socket.state;
    for (const strip of this.children) strip.hidden = strip.dataset.state !== state;
  }
}

/**
 * `<reconnect-now>`: a button in the strip of a lost connection. Inactive from a press until that attempt ends. Once nothing
 * reconnects, or too many pages are open, the strip is hidden: the page's own says why.
 */
class ReconnectNow extends HTMLElement {
  #abort = new AbortController();

  connectedCallback() {
    const { signal } = this.#abort;
    this.addEventListener("click", () => this.#reconnect(), { signal });
    socket.addEventListener("state", () => this.#handleState(), { signal });
  }

  disconnectedCallback() {
    this.#abort.abort();
  }

  #reconnect() {
    if (socket.state !== "down" && socket.state !== "crowded") return;
    this.#update(true);
    socket.tryNow();
  }

  #handleState() {
    this.#update(false);
    const isSaidElsewhere = (socket.isClosedForGood || socket.state === "crowded") && !this.closest("connection-strip");
    if (isSaidElsewhere && !this.hidden) this.parentElement.hidden = true;
  }

  #update(isTrying) {
    const button = this.querySelector("button");
    button.ariaDisabled = isTrying ? "true" : null; // `disabled` would take the focus away
    button.textContent = isTrying ? "Trying…" : "Try now";
  }
}

customElements.define("live-state", LiveState);
customElements.define("reconnect-now", ReconnectNow);
customElements.define("connection-strip", ConnectionStrip);
