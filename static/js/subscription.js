/**
 * One topic of the socket: detects missed and repeated events, and requests what is missing (the client's rule of §3.5). `socket.js` passes
 * it each frame of its topic, and it passes the new events to the page's handlers: those of a transcript are in `live-transcript.js`.
 */

import { erasedId, goTo, showsErasedId } from "./moved-page.js";

const SNAPSHOT = 100; // rows of a state topic's first frame: those that changed last (`realtime/state_topics.py`), and escalated ones
const MAX_LAG_MS = 2_000; // for which the head may be ahead of the last event before the topic is requested again

/**
 * @typedef {object} Handlers  Callbacks of a page, all optional.
 * @property {(frame: {topic: string, epoch: string, events: object[]}) => void} [events]  new events only, in order
 * @property {(frame: {seq: number}) => void} [caughtUp]
 * @property {(frame: {from: number, to: number, reason: string}) => void} [gap]
 * @property {(frame: {epoch: string}) => void} [reset]  the epoch changed, or an id was erased: what the page shows may be wrong
 * @property {(frame: {rows: object[], isSnapshot: boolean}) => void} [rows]  the latest version of each key
 * @property {() => void} [missed]  while the connection was lost, more rows changed than the server sends: what the page shows is outdated
 * @property {(frame: {people: object[]}) => void} [presence]
 * @property {(frame: {code: string, message: string}) => void} [error]
 * @property {() => void} [down]  the connection was lost
 * @property {(back: {awayMs: number}) => void} [up]  it is back; missed events follow
 */

export class Subscription {
  #send;
  #render;
  #last; // the seq of the last event passed on; undefined before the first
  #epoch;
  #isFirstPage; // whether the next events may start at any seq
  #isRequested = false; // whether the response to a subscribe is pending
  #versions = new Map(); // row key → version
  #previousVersions; // those before it subscribed again; undefined on the first time
  #lagTimer;
  #isLost; // whether the connection is lost: `up` is called when it is back

  /**
   * @param {string} topic
   * @param {{after?: number, epoch?: string, render?: "html" | "lanes"}} from  without `render`, the stored bodies
   * @param {Handlers} handlers
   * @param {(frame: object) => void} send
   * @param {boolean} isLost  whether the connection is lost already: it has missed what follows `after`
   */
  constructor(topic, { after, epoch, render }, handlers, send, isLost = false) {
    this.topic = topic;
    this.handlers = handlers;
    this.#send = send;
    this.#isLost = isLost;
    this.#render = render;
    this.#last = after;
    this.#epoch = epoch;
  }

  /** Send a subscribe for what is missing: on connecting, and when a frame shows a gap. */
  request() {
    this.#isRequested = true;
    this.#isFirstPage = this.#last === undefined;
    if (this.#versions.size || this.#previousVersions) this.#previousVersions = new Map(this.#versions);
    this.#versions.clear();
    this.#cancelCheck();
    const cursor = this.topic.startsWith("stream:") ? { after: this.#last, epoch: this.#epoch, erased_id: erasedId() } : {};
    this.#send({ op: "subscribe", topic: this.topic, ...cursor, render: this.#render });
  }

  /** Cancel timers and pending requests: the connection is closed, or the page has unsubscribed. */
  pause() {
    this.#cancelCheck();
    this.#isRequested = false;
  }

  /** Called by the socket. */
  connectionLost() {
    this.#isLost = true;
    this.handlers.down?.();
  }

  /** Called by the socket. @param {number} awayMs */
  connectionRestored(awayMs) {
    if (this.#isLost) this.handlers.up?.({ awayMs });
    this.#isLost = false;
  }

  /** @param {{t: string}} frame  from the server, for this topic */
  receive(frame) {
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
    const newEvents = [];
    for (const event of frame.events) {
      if (this.#last !== undefined && event.seq <= this.#last) continue;
      if (!this.#isFirstPage && event.seq > this.#last + 1) {
        if (!this.#isRequested) this.request();
        break;
      }
      this.#last = event.seq;
      newEvents.push(event);
    }
    if (newEvents.length) this.handlers.events?.({ ...frame, events: newEvents });
  }

  #caughtUp(frame) {
    this.#epoch = frame.epoch ?? this.#epoch;
    this.#isRequested = this.#isFirstPage = false;
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
    if (this.#last === undefined || seq <= this.#last || this.#lagTimer || this.#isRequested) return; // already on their way
    this.#lagTimer = setTimeout(() => {
      this.#lagTimer = undefined;
      if (this.#last < seq) this.request();
    }, MAX_LAG_MS);
  }

  #rows(frame) {
    const isSnapshot = this.#isRequested;
    this.#isRequested = false;
    if (this.handlers.reset && showsErasedId(frame.erased_at)) return this.#reset({});
    if (isSnapshot && this.handlers.missed && this.#missesRows(frame.rows)) return this.handlers.missed();
    this.#previousVersions ??= new Map();
    const rows = frame.rows.filter((row) => row.version > (this.#versions.get(row.key) ?? -1));
    for (const row of rows) this.#versions.set(row.key, row.version);
    if (rows.length || isSnapshot) this.handlers.rows?.({ ...frame, rows, isSnapshot });
  }

  /** Whether more rows may have changed than a snapshot contains: all of those that changed last are new. */
  #missesRows(rows) {
    const isNew = ({ key, version }) => this.#previousVersions.get(key) !== version;
    return this.#previousVersions !== undefined && rows.filter(isNew).length >= SNAPSHOT;
  }

  #cancelCheck() {
    clearTimeout(this.#lagTimer);
    this.#lagTimer = undefined;
  }
}
