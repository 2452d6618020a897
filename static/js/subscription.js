/** One topic of the socket: what was seen, what to ask for, what to drop (the client's rule of §3.5). */

import { erasedId, goTo, showsErasedId } from "./moved-page.js";

const SNAPSHOT = 100; // rows that a topic begins with: those that changed last (`realtime/state_topics.py`), and escalated ones
const PATIENCE_MS = 2_000; // how long the head may be ahead of us before we ask again

/**
 * @typedef {object} Handlers  What a page may do with frames; each is optional.
 * @property {(frame: {topic: string, epoch: string, events: object[]}) => void} [events]  new ones only, in order
 * @property {(frame: {seq: number}) => void} [caughtUp]
 * @property {(frame: {from: number, to: number, reason: string}) => void} [gap]
 * @property {(frame: {epoch: string}) => void} [reset]  history is another one: what is drawn may be wrong
 * @property {(frame: {rows: object[], isSnapshot: boolean}) => void} [rows]  the latest version of each key
 * @property {() => void} [missed]  more rows changed while the connection was lost than it is told: what is drawn is old
 * @property {(frame: {people: object[]}) => void} [presence]
 * @property {(frame: {code: string, message: string}) => void} [error]
 * @property {() => void} [down]  the connection is lost
 * @property {(back: {awayMs: number}) => void} [up]  it is back; events that were missed follow
 */

export class Subscription {
  #send;
  #render;
  #last;
  #epoch;
  #isFirstPage; // the newest page may start anywhere
  #isAsked = false;
  #versions = new Map();
  #known; // what was there before it asked again; undefined: it asks for the first time
  #check;
  #isLost = false; // what it follows was told that the connection is

  /**
   * @param {string} topic
   * @param {{after?: number, epoch?: string, render?: "html" | "lanes"}} from
   * @param {Handlers} handlers
   * @param {(frame: object) => void} send
   */
  constructor(topic, { after, epoch, render }, handlers, send) {
    this.topic = topic;
    this.handlers = handlers;
    this.#send = send;
    this.#render = render;
    this.#last = after;
    this.#epoch = epoch;
  }

  /** The seq of the last event handed on; undefined before the first. */
  get last() {
    return this.#last;
  }

  /** Ask for what is missing: on connecting, and where a frame shows a hole. */
  ask() {
    this.#isAsked = true;
    this.#isFirstPage = this.#last === undefined;
    if (this.#versions.size || this.#known) this.#known = new Map(this.#versions);
    this.#versions.clear();
    this.#forget();
    const place = this.topic.startsWith("stream:") ? { after: this.#last, epoch: this.#epoch, erased_id: erasedId() } : {};
    this.#send({ op: "subscribe", topic: this.topic, ...place, render: this.#render });
  }

  /** Stop waiting for anything: the connection is gone, or nobody listens. */
  rest() {
    this.#forget();
    this.#isAsked = false;
  }

  /** The connection is lost. */
  lose() {
    this.#isLost = true;
    this.handlers.down?.();
  }

  /** It is back. Who began to follow meanwhile has lost nothing. @param {number} awayMs */
  regain(awayMs) {
    if (this.#isLost) this.handlers.up?.({ awayMs });
    this.#isLost = false;
  }

  /** @param {{t: string}} frame  one from the server, for this topic */
  take(frame) {
    switch (frame.t) {
      case "events": return this.#events(frame);
      case "caught_up": return this.#caughtUp(frame);
      case "gap": return this.#gap(frame);
      case "reset": return this.#reset(frame);
      case "moved": return goTo(this.topic.slice("stream:".length), frame.to);
      case "head": return this.#head(frame.seq);
      case "rows": return this.#rows(frame);
      case "presence": return this.handlers.presence?.(frame);
      case "error": return this.handlers.error?.(frame);
    }
  }

  #events(frame) {
    this.#epoch = frame.epoch ?? this.#epoch;
    const fresh = [];
    for (const event of frame.events) {
      if (this.#last !== undefined && event.seq <= this.#last) continue;
      if (!this.#isFirstPage && event.seq > this.#last + 1) {
        if (!this.#isAsked) this.ask();
        break;
      }
      this.#last = event.seq;
      fresh.push(event);
    }
    if (fresh.length) this.handlers.events?.({ ...frame, events: fresh });
  }

  #caughtUp(frame) {
    this.#epoch = frame.epoch ?? this.#epoch;
    this.#isAsked = this.#isFirstPage = false;
    this.#last ??= frame.seq;
    this.#head(frame.seq);
    this.handlers.caughtUp?.(frame);
  }

  #gap(frame) {
    this.#last = Math.max(this.#last ?? 0, frame.to);
    this.handlers.gap?.(frame);
  }

  #reset(frame) {
    this.#last = undefined;
    this.#epoch = frame.epoch;
    this.#isFirstPage = true;
    this.#versions.clear();
    this.handlers.reset?.(frame);
  }

  #head(seq) {
    if (this.#last === undefined || seq <= this.#last || this.#check || this.#isAsked) return; // asked: it is on its way
    this.#check = setTimeout(() => {
      this.#check = undefined;
      if (this.#last < seq) this.ask();
    }, PATIENCE_MS);
  }

  #rows(frame) {
    const isSnapshot = this.#isAsked;
    this.#isAsked = false;
    if (this.handlers.reset && showsErasedId(frame.erased_at)) return this.#reset({});
    if (isSnapshot && this.handlers.missed && this.#misses(frame.rows)) return this.handlers.missed();
    this.#known ??= new Map();
    const rows = frame.rows.filter((row) => row.version > (this.#versions.get(row.key) ?? -1));
    for (const row of rows) this.#versions.set(row.key, row.version);
    if (rows.length || isSnapshot) this.handlers.rows?.({ ...frame, rows, isSnapshot });
  }

  /** Whether more changed meanwhile than a snapshot has: but for escalated rows, it has nothing that is as it was. */
  #misses(rows) {
    if (!this.#known || rows.length < SNAPSHOT) return false;
    const isNew = ({ key, version }) => this.#known.get(key) !== version;
    return rows.some(isNew) && rows.every((row) => row.escalated || isNew(row));
  }

  #forget() {
    clearTimeout(this.#check);
    this.#check = undefined;
  }
}
