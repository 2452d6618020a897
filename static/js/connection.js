/** How the connection stands: the dot in the top bar, the strips that say it ended for good, and the button to try at once. */
import { socket } from "./socket.js";

const WORDS = { live: "Live", connecting: "Connecting", down: "Reconnecting", "signed-out": "Signed out", forbidden: "Not live", "other-person": "Not live" };
const BLINK_MS = 1_000; // a shorter loss is not worth a word

/** `<live-state>`: the dot. Hidden on pages that follow nothing. */
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
    if (isLost && this.#timer) return; // a further try does not start the wait anew
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#draw(), isLost ? BLINK_MS : 0);
  }

  #draw() {
    this.#timer = undefined;
    this.hidden = !(socket.state in WORDS);
    this.dataset.state = socket.state;
    this.textContent = WORDS[socket.state] ?? "";
  }
}

/** `<connection-strip>`: shows the strip whose `data-state` is the socket's, or that a request found another person. */
class ConnectionStrip extends HTMLElement {
  #isOther = false;

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
    this.#isOther ||= event?.type === "other-person";
    const state = this.#isOther ? "other-person" : socket.state;
    for (const strip of this.children) strip.hidden = strip.dataset.state !== state;
  }
}

/** `<reconnect-now>`: a button in the strip of a lost connection. Pressed, it rests until the try has come to an end. */
class ReconnectNow extends HTMLElement {
  #stop = new AbortController();

  connectedCallback() {
    const { signal } = this.#stop;
    this.addEventListener("click", () => this.#press(), { signal });
    socket.addEventListener("state", () => this.#show(false), { signal });
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  #press() {
    if (socket.state !== "down") return;
    this.#show(true);
    socket.tryNow();
  }

  #show(isTrying) {
    const button = this.querySelector("button");
    button.ariaDisabled = isTrying ? "true" : null; // `disabled` would take the focus away
    button.textContent = isTrying ? "Trying…" : "Try now";
  }
}

customElements.define("live-state", LiveState);
customElements.define("reconnect-now", ReconnectNow);
customElements.define("connection-strip", ConnectionStrip);
