/** The thin bar over a transcript: the connection went, what it brought back, what is missing. Only what was counted. */
import { gapText } from "./gap-notice.js";

const KEPT = 20_000; // ms that good news stay
const HEARD = ["down", "restored", "gap", "reset", "error"];
const TONES = {
  down: ["waiting", "s-stuck"],
  back: ["done", "s-done"],
  lost: ["failed", "break"],
  reset: ["waiting", "replay"],
};

/** Hears `connection:*` of a `live-transcript` beside it, under the same parent. */
class ConversationStrip extends HTMLElement {
  #clock = 0;
  #wentAt = 0;
  #hide = 0;

  connectedCallback() {
    for (const name of HEARD) this.parentElement.addEventListener(`connection:${name}`, this);
    this.querySelector("[data-dismiss]").addEventListener("click", () => this.#close());
  }

  disconnectedCallback() {
    clearInterval(this.#clock);
    clearTimeout(this.#hide);
  }

  handleEvent({ type, detail }) {
    if (type === "connection:down") this.#down(detail);
    else if (type === "connection:restored") this.#restored(detail);
    else if (type === "connection:gap") this.#gap(detail);
    else if (type === "connection:reset") this.#reset();
    else this.#say("lost", detail.message);
  }

  #down({ seq }) {
    this.#wentAt ||= Date.now();
    const age = document.createElement("span");
    age.setAttribute("aria-hidden", "true"); // it ticks: read out once, without it
    const tick = () => (age.textContent = ` for ${this.#away()}`);
    clearInterval(this.#clock);
    this.#clock = setInterval(tick, 1000);
    tick();
    this.#say("down", bold("No connection", age, "."), ` Showing events up to ${number(seq)}; reconnecting.`);
  }

  #restored({ count, first, last, isWhole }) {
    const away = this.#away();
    this.#wentAt = 0;
    clearInterval(this.#clock);
    if (!count && isWhole) {
      this.#say("back", `Reconnected after ${away}. No new events.`);
      return;
    }
    const range = first === last ? `event ${number(first)}` : `${number(first)} to ${number(last)}`;
    const rest = isWhole ? "Nothing is missing." : "Not everything could be restored.";
    const words = count === 1 ? "1 event restored" : `${number(count)} events restored`;
    this.#say(isWhole ? "back" : "lost", `Reconnected after ${away}. `, bold(words), `, ${range}. ${rest}`);
    this.#lead("First new event", first);
  }

  #gap({ from, to, reason }) {
    this.#say("lost", bold(gapText({ from, to })), reason ? ` ${reason}` : "");
    this.#lead("Show", from);
  }

  #reset() {
    this.#wentAt = 0;
    clearInterval(this.#clock);
    this.#say("reset", bold("The record was restored from a backup."), " This page was reloaded.");
  }

  #say(kind, ...words) {
    const [tone, symbol] = TONES[kind];
    clearTimeout(this.#hide);
    this.dataset.tone = tone;
    this.setAttribute("role", kind === "lost" ? "alert" : "status");
    this.querySelector("use").setAttribute("href", `#i-${symbol}`);
    this.querySelector("span").replaceChildren(...words);
    this.querySelector("a").hidden = true;
    this.querySelector("reconnect-now").hidden = kind !== "down";
    this.hidden = false;
    if (kind === "back") this.#hide = setTimeout(() => this.#close(), KEPT);
  }

  #lead(words, seq) {
    const link = this.querySelector("a");
    link.textContent = words;
    link.href = `#e${seq}`;
    link.hidden = false;
  }

  #close() {
    this.hidden = true;
  }

  #away() {
    const seconds = Math.round((Date.now() - this.#wentAt) / 1000);
    if (seconds < 1) return "less than a second";
    return seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  }
}

const number = (n) => n.toLocaleString("en");

const bold = (...words) => {
  const element = document.createElement("b");
  element.append(...words);
  return element;
};

customElements.define("conversation-strip", ConversationStrip);
