/** The one WebSocket of a page, read-only, for many topics (§3.5). Pages and elements subscribe here. */
import { Subscription } from "./subscription.js";

const FIRST_MS = 250; // back-off: doubles from here
const LONGEST_MS = 8_000; // to here
const SILENCE_MS = 40_000; // a head comes every 15 s; none for so long means the line is dead
const LOOK_MS = 5_000;
const FINAL = { 4401: "signed-out", 4403: "forbidden", 4409: "other-person" };

/**
 * Tells `state` events: detail `{state, awayMs}`, state one of idle, connecting, live, down, signed-out, forbidden,
 * other-person.
 */
class Socket extends EventTarget {
  #topics = new Map();
  #wire = null;
  #state = "idle";
  #tries = 0;
  #retry;
  #watch;
  #heardAt = 0;
  #hasHeads = false; // silence counts only once heads were heard
  #downAt = 0;

  constructor() {
    super();
    addEventListener("online", () => this.tryNow());
    document.addEventListener("visibilitychange", () => document.hidden || this.tryNow());
    addEventListener("pagehide", () => this.#hangUp()); // an open socket would keep the page out of the back cache
    addEventListener("pageshow", (event) => event.persisted && this.#topics.size && this.#connect());
  }

  /** @returns {string} see the class */
  get state() {
    return this.#state;
  }

  /**
   * Follow a topic. Without `after` the newest page comes first; state topics (`fleet`) take neither.
   * @param {string} topic
   * @param {{after?: number, epoch?: string, render?: "html" | "lanes"}} from
   * @param {import("./subscription.js").Handlers} handlers
   * @returns {() => void} stop
   */
  subscribe(topic, from, handlers) {
    if (this.#topics.has(topic)) throw new Error(`already subscribed to ${topic}`);
    const { person } = document.body.dataset;
    const send = (frame) => this.#wire.send(JSON.stringify({ ...frame, person }));
    const subscription = new Subscription(topic, from, handlers, send);
    this.#topics.set(topic, subscription);
    if (this.#state === "live") subscription.ask();
    else this.#connect();
    return () => this.#leave(subscription);
  }

  /** Connect without waiting for the next try; a try that is under way is left to end. */
  tryNow() {
    if (this.#state === "down") this.#connect();
  }

  #leave(subscription) {
    subscription.rest();
    if (this.#topics.get(subscription.topic) !== subscription) return;
    this.#topics.delete(subscription.topic);
    if (!this.#topics.size) this.#hangUp();
    else if (this.#state === "live") this.#wire.send(JSON.stringify({ op: "unsubscribe", topic: subscription.topic }));
  }

  #connect() {
    if (this.#wire || Object.values(FINAL).includes(this.#state)) return;
    clearTimeout(this.#retry);
    const address = new URL("/ws/", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const wire = (this.#wire = new WebSocket(address));
    const mine = (act) => (event) => wire === this.#wire && act(event);
    wire.addEventListener("open", mine(() => this.#opened()));
    wire.addEventListener("message", mine((event) => this.#take(JSON.parse(event.data))));
    wire.addEventListener("close", mine((event) => this.#closed(event.code)));
    this.#heardAt = performance.now();
    this.#hasHeads = false;
    this.#watch ??= setInterval(() => this.#listen(), LOOK_MS);
    if (this.#state === "idle") this.#tell("connecting");
  }

  #opened() {
    const awayMs = this.#downAt ? performance.now() - this.#downAt : 0;
    this.#downAt = 0;
    this.#tell("live", awayMs);
    for (const subscription of [...this.#topics.values()]) {
      subscription.ask();
      subscription.regain(awayMs);
    }
  }

  #take(frame) {
    this.#tries = 0;
    this.#heardAt = performance.now();
    if (frame.t === "head") this.#hasHeads = true;
    const to = frame.topic === undefined ? [...this.#topics.values()] : [this.#topics.get(frame.topic)];
    for (const subscription of to) subscription?.take(frame);
  }

  #closed(code) {
    this.#drop();
    if (!this.#downAt) {
      this.#downAt = performance.now();
      for (const subscription of this.#topics.values()) subscription.lose();
    }
    if (FINAL[code]) return this.#tell(FINAL[code]);
    this.#tell("down");
    const wait = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.#tries++);
    this.#retry = setTimeout(() => this.#connect(), wait * (0.5 + Math.random() / 2));
  }

  /** Look whether the line is dead: closing it properly would wait for an answer that cannot come. */
  #listen() {
    const silence = performance.now() - this.#heardAt;
    const isStuck = this.#wire?.readyState === WebSocket.CONNECTING && silence > 2 * LOOK_MS;
    if (this.#wire && (isStuck || (this.#hasHeads && silence > SILENCE_MS))) this.#closed(0);
  }

  #hangUp() {
    clearTimeout(this.#retry);
    this.#drop();
    clearInterval(this.#watch);
    this.#watch = undefined;
    if (this.#state === "live" || this.#state === "connecting" || this.#state === "down") this.#tell("idle");
  }

  #drop() {
    const wire = this.#wire;
    this.#wire = null;
    wire?.close();
    for (const subscription of this.#topics.values()) subscription.rest();
  }

  #tell(state, awayMs = 0) {
    this.#state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { state, awayMs } }));
  }
}

export const socket = new Socket();
