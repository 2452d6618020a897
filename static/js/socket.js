/** The page's single WebSocket, read-only and shared by all topics (§3.5). Pages and elements subscribe here. */
import { Subscription } from "./subscription.js";

const MIN_RETRY_MS = 250; // back-off: doubles with each failed attempt
const MAX_RETRY_MS = 8_000;
const TOO_MANY = 4429; // close code: this person has as many sockets as the server allows
const MIN_CROWDED_MS = 8_000; // back-off after that: others must be closed first
const MAX_CROWDED_MS = 300_000;
const SILENCE_MS = 40_000; // the server sends a head every 15 s; after so long without a frame the connection is dead
const CHECK_INTERVAL_MS = 5_000; // between checks for silence
const LAST_OF_RESPONSE = ["caught_up", "rows", "error"]; // the frame that ends the response to a subscribe
/** States without reconnecting, by close code: `down` is not reported. */
const FINAL = { 4401: "signed-out", 4403: "forbidden", 4409: "other-person" };

/**
 * Dispatches `state` {state, awayMs}: state is idle, connecting, live, down, crowded, signed-out, forbidden or
 * other-person; `awayMs` is how long the connection was lost. Dispatches `current` once it is back and all missed frames were passed on.
 */
class Socket extends EventTarget {
  #topics = new Map();
  #webSocket = null;
  #state = "idle";
  #isOpen = false; // `live`, but after `crowded` only with the first frame
  #attempts = 0;
  #retryTimer;
  #silenceTimer;
  #lastFrameAt = clocks();
  #lostAt = 0;
  #outdated = new Set(); // topics whose missed frames are still to come

  constructor() {
    super();
    addEventListener("online", () => this.tryNow());
    document.addEventListener("visibilitychange", () => document.hidden || this.tryNow());
    addEventListener("pagehide", () => this.#disconnect()); // an open socket would keep the page out of the back/forward cache
    addEventListener("pageshow", (event) => event.persisted && this.#topics.size && this.#connect());
  }

  /** @returns {string} see the class */
  get state() {
    return this.#state;
  }

  /** Whether the server refuses this page: it does not reconnect. */
  get isClosedForGood() {
    return Object.values(FINAL).includes(this.#state);
  }

  /**
   * Subscribe to a topic. Without `after`, the newest page comes first; state topics (`fleet`) take neither `after` nor `epoch`.
   * @param {string} topic
   * @param {{after?: number, epoch?: string, render?: "html" | "lanes"}} from  without `render`, the stored bodies
   * @param {import("./subscription.js").Handlers} handlers
   * @returns {() => void} unsubscribes
   */
  subscribe(topic, from, handlers) {
    if (this.#topics.has(topic)) throw new Error(`already subscribed to ${topic}`);
    const { person } = document.body.dataset;
    const send = (frame) => this.#webSocket.send(JSON.stringify({ ...frame, person }));
    const subscription = new Subscription(topic, from, handlers, send, this.#lostAt > 0);
    this.#topics.set(topic, subscription);
    if (this.#isOpen) subscription.request();
    else this.#connect();
    return () => this.#unsubscribe(subscription);
  }

  /** Reconnect without waiting for the back-off, or for the next check for silence; an attempt in progress continues. */
  tryNow() {
    this.#checkSilence();
    if (this.#state === "down" || this.#state === "crowded") this.#connect();
  }

  #unsubscribe(subscription) {
    subscription.pause();
    if (this.#topics.get(subscription.topic) !== subscription) return;
    this.#topics.delete(subscription.topic);
    this.#markCurrent(subscription.topic);
    if (!this.#topics.size) this.#disconnect();
    else if (this.#isOpen) this.#webSocket.send(JSON.stringify({ op: "unsubscribe", topic: subscription.topic }));
  }

  #connect() {
    if (this.#webSocket || this.isClosedForGood) return;
    clearTimeout(this.#retryTimer);
    const address = new URL("/ws/", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const webSocket = (this.#webSocket = new WebSocket(address));
    const ifCurrent = (listener) => (event) => webSocket === this.#webSocket && listener(event);
    webSocket.addEventListener("open", ifCurrent(() => this.#handleOpen()));
    webSocket.addEventListener("message", ifCurrent((event) => this.#receive(JSON.parse(event.data))));
    webSocket.addEventListener("close", ifCurrent((event) => this.#handleClose(event.code)));
    this.#lastFrameAt = clocks();
    this.#silenceTimer ??= setInterval(() => this.#checkSilence(), CHECK_INTERVAL_MS);
    if (this.#state === "idle") this.#setState("connecting");
  }

  #handleOpen() {
    this.#isOpen = true;
    this.#lastFrameAt = clocks();
    for (const subscription of [...this.#topics.values()]) subscription.request();
    if (this.#state !== "crowded") this.#goLive();
  }

  #goLive() {
    const awayMs = this.#lostAt ? performance.now() - this.#lostAt : 0;
    this.#outdated = new Set(this.#lostAt ? this.#topics.keys() : []);
    this.#lostAt = 0;
    this.#setState("live", awayMs);
    for (const subscription of [...this.#topics.values()]) subscription.connectionRestored(awayMs);
  }

  #receive(frame) {
    this.#attempts = 0;
    this.#lastFrameAt = clocks();
    if (this.#state === "crowded") this.#goLive();
    const recipients = frame.topic === undefined ? [...this.#topics.values()] : [this.#topics.get(frame.topic)];
    for (const subscription of recipients) subscription?.receive(frame);
    if (LAST_OF_RESPONSE.includes(frame.t)) this.#markCurrent(frame.topic);
  }

  #markCurrent(topic) {
    if (this.#outdated.delete(topic) && !this.#outdated.size) this.dispatchEvent(new Event("current"));
  }

  #handleClose(code) {
    this.#closeSocket();
    if (FINAL[code]) return this.#setState(FINAL[code]);
    if (!this.#lostAt) {
      this.#lostAt = performance.now();
      for (const subscription of this.#topics.values()) subscription.connectionLost();
    }
    const [state, minMs, maxMs] = code === TOO_MANY ? ["crowded", MIN_CROWDED_MS, MAX_CROWDED_MS] : ["down", MIN_RETRY_MS, MAX_RETRY_MS];
    this.#setState(state);
    const delayMs = Math.min(maxMs, minMs * 2 ** this.#attempts++);
    this.#retryTimer = setTimeout(() => this.#connect(), delayMs * (0.5 + Math.random() / 2));
  }

  /** Drop a dead connection without a closing handshake, which would wait for a response that cannot come. */
  #checkSilence() {
    const silenceMs = Math.max(...clocks().map((now, n) => now - this.#lastFrameAt[n]));
    const isConnecting = this.#webSocket?.readyState === WebSocket.CONNECTING;
    if (this.#webSocket && silenceMs > (isConnecting ? 2 * CHECK_INTERVAL_MS : SILENCE_MS)) this.#handleClose(0);
  }

  #disconnect() {
    clearTimeout(this.#retryTimer);
    this.#closeSocket();
    clearInterval(this.#silenceTimer);
    this.#silenceTimer = undefined;
    if (this.#state !== "idle" && !this.isClosedForGood) this.#setState("idle");
  }

  #closeSocket() {
    const webSocket = this.#webSocket;
    this.#webSocket = null;
    this.#isOpen = false;
    webSocket?.close();
    for (const subscription of this.#topics.values()) subscription.pause();
  }

  #setState(state, awayMs = 0) {
    this.#state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { state, awayMs } }));
  }
}

/** Two clocks, in ms: the first is never set, the second goes on while the computer sleeps. */
const clocks = () => [performance.now(), Date.now()];

export const socket = new Socket();
