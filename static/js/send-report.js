/** The status line of a message being sent, and the question if somebody replied meanwhile. */
import { timeOfDay } from "./clock.js";
import { socket } from "./socket.js";

export class SendReport {
  #line;
  #question;
  #timer = 0;
  #isUnreachable = false; // whether sending failed because the server did not respond

  /**
   * @param {HTMLElement} root  contains `[data-said]`, the status line, and in a conversation `[data-asked]`, the question
   * @param {() => void} anyway  sends the message despite the reply
   * @param {AbortSignal} signal  aborts when the composer is disconnected
   */
  constructor(root, anyway, signal) {
    this.#line = root.querySelector("[data-said]");
    this.#question = root.querySelector("[data-asked]");
    this.#question?.querySelector("button").addEventListener("click", anyway, { signal });
    socket.addEventListener("state", () => this.#handleReconnect(), { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  /** Show a status. @param {string} state @param {string} text @param {number} [lastsMs] after which it is cleared; 0: never */
  show(state, text, lastsMs = 0) {
    clearTimeout(this.#timer);
    if (this.#question) this.#question.hidden = true;
    this.#isUnreachable = false;
    this.#line.dataset.state = state;
    this.#line.textContent = text;
    if (lastsMs) this.#timer = setTimeout(() => this.show("", ""), lastsMs);
  }

  /** Show that sending failed. @param {import("./fetch.js").RequestError} error */
  fail({ sentence, isUnreachable }) {
    this.show("failed", `Not sent. ${sentence} Your message is saved; press Send to try again.`);
    this.#isUnreachable = isUnreachable;
  }

  /**
   * Ask whether to send although another person replied.
   * @param {{by: string, at: string, seq: string}} reply @param {boolean} mayFocus  the focus is still in the form
   */
  ask({ by, at, seq }, mayFocus) {
    this.show("asked", `${by.replace(/^user:/u, "")} replied at ${timeOfDay(new Date(at))} while you were typing. Your message is saved.`);
    const link = this.#question.querySelector("a");
    link.href = `?event=${seq}#e${seq}`;
    link.textContent = `View event ${seq}`;
    this.#question.hidden = false;
    if (mayFocus) this.#question.querySelector("button").focus();
  }

  #handleReconnect() {
    if (socket.state === "live" && this.#isUnreachable) this.show("kept", "Reconnected. Your message is saved; press Send.");
  }
}
