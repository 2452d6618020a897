/** What became of words that were sent, and the question when somebody answered meanwhile. Used by `message-composer`. */
import { timeOfDay } from "./clock.js";
import { socket } from "./socket.js";

export class SendReport {
  #line;
  #asked;
  #timer = 0;

  /**
   * @param {HTMLElement} root  holds `[data-said]` and, where one may be asked, `[data-asked]`
   * @param {() => void} anyway  sends it all the same
   * @param {AbortSignal} signal  ends it
   */
  constructor(root, anyway, signal) {
    this.#line = root.querySelector("[data-said]");
    this.#asked = root.querySelector("[data-asked]");
    this.#asked?.querySelector("button").addEventListener("click", anyway, { signal });
    socket.addEventListener("state", () => this.#isBack(), { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  /** @param {string} state @param {string} words @param {number} [lastsMs] then they go */
  say(state, words, lastsMs = 0) {
    clearTimeout(this.#timer);
    if (this.#asked) this.#asked.hidden = true;
    this.#line.dataset.state = state;
    this.#line.textContent = words;
    if (lastsMs) this.#timer = setTimeout(() => this.say("", ""), lastsMs);
  }

  /** @param {string} why */
  fail(why) {
    this.say("failed", `Not sent. ${why} Your message is saved; press Send to try again.`);
  }

  /**
   * Ask whether to send although another person spoke.
   * @param {{by: string, at: string, seq: string}} who @param {boolean} mayFocus  the writer is still there
   */
  ask({ by, at, seq }, mayFocus) {
    this.say("asked", `${by.replace(/^user:/u, "")} replied at ${timeOfDay(new Date(at))} while you were typing. Your message is saved.`);
    const there = this.#asked.querySelector("a");
    there.href = `?event=${seq}#e${seq}`;
    there.textContent = `View event ${seq}`;
    this.#asked.hidden = false;
    if (mayFocus) this.#asked.querySelector("button").focus();
  }

  #isBack() {
    if (socket.state === "live" && this.#line.dataset.state === "failed") this.say("kept", "Reconnected. Your message is saved; press Send.");
  }
}
