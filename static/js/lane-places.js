/**
 * Assigns lanes to participants: in order of appearance, then the tools that they call. With many participants, only those
 * active in the visible rows have lanes of their own, and all others share the last lane.
 */

const MAX_OWN_LANES = 12; // up to so many participants each have a lane (dashboard/pages/lanes.py)
export const CROWDED = 6; // up to so many lanes have the name beside the mark, more have it below (templates/lanes.html)
const MAX_LANES = 40; // limit of static/css/lanes.css

export class LanePlaces {
  /** @type {Map<string, {hue?: string, isTool: boolean}>} all participants, in order of appearance */
  #participants = new Map();
  /** @type {Map<string, number>} */
  #lanes = new Map();

  /** @param {string} key @param {{hue?: string, isTool: boolean}} participant */
  add(key, participant) {
    if (!this.#participants.has(key)) this.#participants.set(key, participant);
  }

  /** Give lanes to these participants, in this order. @param {string[]} keys */
  assign(keys) {
    this.#lanes = new Map(keys.map((key, n) => [key, n + 1]));
  }

  /** Whether there are too many participants for each to have a lane. */
  get hasMany() {
    return this.#participants.size > MAX_OWN_LANES;
  }

  /** Keys of participants with a lane of their own, in order. */
  get keys() {
    return [...this.#lanes.keys()];
  }

  /** The number of the first tool's lane; 0 if there is none. */
  get firstTool() {
    return this.keys.findIndex((key) => this.#participants.get(key).isTool) + 1;
  }

  /** How many participants share the last lane. */
  get others() {
    return this.hasMany ? this.#participants.size - this.#lanes.size : 0;
  }

  /** The number of a participant's lane. */
  of(key) {
    return this.#lanes.get(key) ?? this.#lanes.size + 1;
  }

  get #inOrder() {
    const [people, tools] = [[], []];
    for (const [key, { isTool }] of this.#participants) (isTool ? tools : people).push(key);
    return [...people, ...tools];
  }

  hueOf(key) {
    return this.#participants.get(key)?.hue;
  }

  participant(key) {
    return this.#participants.get(key);
  }

  /** Whether all participants in view have lanes, and few lanes belong to participants who are not even near. @param {Set<string>} inView @param {Set<string>} near */
  fits(inView, near) {
    return [...inView].every((key) => this.#lanes.has(key)) && this.#lanes.size <= Math.max(MAX_OWN_LANES, 1.5 * near.size);
  }

  /** Give lanes to the active participants, or to all if they are few. Returns whether any lane changed. @param {Set<string>} active */
  fold(active) {
    const wanted = this.#inOrder.filter((key) => !this.hasMany || active.has(key)).slice(0, MAX_LANES - 1);
    const others = this.others;
    const isSame = wanted.length === this.#lanes.size && wanted.every((key, n) => this.#lanes.get(key) === n + 1);
    if (!isSame) this.assign(wanted);
    return !isSame || others !== this.others;
  }
}

/** Returns the keys of senders and recipients of rows. @param {Element[]} rows */
export const keysOf = (rows) => new Set(rows.flatMap(({ dataset: { sender, recipient } }) => (recipient ? [sender, recipient] : [sender])));
