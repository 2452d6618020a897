/** The bar above a transcript: connection lost, what a reconnect restored, what is missing. Reports only what was counted. */
import { gapText } from "./gap-notice.js";
import { takeRestored } from "./restored-page.js";

const RESTORED_MS = 20_000; // for which a restored connection is reported
const EVENTS = ["down", "restored", "ended", "gap", "error"];
/** Kind of a report → its tone and its icon. */
const TONES = {
  down: ["waiting", "s-stuck"],
  back: ["done", "s-done"],
  lost: ["failed", "break"],
  reset: ["waiting", "replay"],
};

/** Listens to the `connection:*` events of a `live-transcript` with the same parent. */
class ConversationStrip extends HTMLElement {
  #ageTimer = 0;
  #downAt = 0; // in ms of `Date.now()`
  #hideTimer = 0;

  connectedCallback() {
    for (const name of EVENTS) this.parentElement.addEventListener(`connection:${name}`, this);
    this.querySelector("[data-dismiss]").addEventListener("click", () => this.#close());
    if (takeRestored()) this.#show("reset", bold("The record was restored from a backup."), " This page was reloaded.");
  }

  disconnectedCallback() {
    clearInterval(this.#ageTimer);
    clearTimeout(this.#hideTimer);
  }

  handleEvent({ type, detail }) {
    if (type === "connection:down") this.#showDown(detail);
    else if (type === "connection:restored") this.#showRestored(detail);
    else if (type === "connection:ended") this.#showEnded(detail);
    else if (type === "connection:gap") this.#showGap(detail);
    else this.#show("lost", detail.message);
  }

  #showDown({ seq }) {
    this.#downAt ||= Date.now();
    const age = document.createElement("span");
    age.setAttribute("aria-hidden", "true"); // it changes every second: the rest is read out once, without it
    const updateAge = () => (age.textContent = ` for ${this.#downTime()}`);
    clearInterval(this.#ageTimer);
    this.#ageTimer = setInterval(updateAge, 1000);
    updateAge();
    this.#show("down", bold("No connection", age, "."), ` Showing events up to ${number(seq)}; reconnecting.`);
  }

  #showRestored({ count, first, last, isWhole, awayMs }) {
    this.#downAt ||= Date.now() - awayMs; // a page that follows nothing is not told of a loss
    const downTime = this.#downTime();
    this.#downAt = 0;
    clearInterval(this.#ageTimer);
    const rest = isWhole ? "Nothing is missing." : "Not everything could be restored.";
    if (!count) {
      this.#show(isWhole ? "back" : "lost", `Reconnected after ${downTime}. ${isWhole ? "No new events." : rest}`);
      return;
    }
    const range = first === last ? `event ${number(first)}` : `${number(first)} to ${number(last)}`;
    const events = count === 1 ? "1 event restored" : `${number(count)} events restored`;
    this.#show(isWhole ? "back" : "lost", `Reconnected after ${downTime}. `, bold(events), `, ${range}. ${rest}`);
    this.#showLink("First new event", first);
  }

  #showEnded({ isLive }) {
    const downTime = this.#downTime();
    this.#downAt = 0;
    clearInterval(this.#ageTimer);
    if (isLive) this.#show("back", `Reconnected after ${downTime}.`);
    else this.#close();
  }

  #showGap({ from, to, reason }) {
    this.#show("lost", bold(gapText({ from, to })), reason ? ` ${reason}` : "");
    this.#showLink("Show", from);
  }

  #show(kind, ...content) {
    const [tone, icon] = TONES[kind];
    clearTimeout(this.#hideTimer);
    this.dataset.tone = tone;
    this.setAttribute("role", kind === "lost" ? "alert" : "status");
    this.querySelector("use").setAttribute("href", `#i-${icon}`);
    this.querySelector("span").replaceChildren(...content);
    this.#hide(this.querySelector("a"));
    if (kind === "down") this.querySelector("reconnect-now").hidden = false;
    else this.#hide(this.querySelector("reconnect-now"));
    this.hidden = false;
    if (kind === "back") this.#hideTimer = setTimeout(() => this.#close(), RESTORED_MS);
  }

  #showLink(label, seq) {
    const link = this.querySelector("a");
    link.textContent = label;
    link.href = `#e${seq}`;
    link.hidden = false;
  }

  #close() {
    this.#hide(this);
  }

  /** Hide an element. If it has the focus, the transcript gets it. */
  #hide(element) {
    if (element.contains(document.activeElement)) this.parentElement.querySelector(".transcript")?.focus({ preventScroll: true });
    element.hidden = true;
  }

  #downTime() {
    const seconds = Math.round((Date.now() - this.#downAt) / 1000);
    if (seconds < 1) return "less than a second";
    return seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  }
}

const number = (n) => n.toLocaleString("en");

const bold = (...content) => {
  const element = document.createElement("b");
  element.append(...content);
  return element;
};

customElements.define("conversation-strip", ConversationStrip);
