/**
 * Whose lane is which: all participants in the order in which they came, then the tools that they call, and while these are
 * many, those alone who take part in what is in view; the last lane is then that of all others. Used by `lane-heads`.
 */

const MAX_OWN_LANES = 12; // participants who all have a lane (dashboard/pages/lanes.py)
export const CROWDED = 6; // lanes whose heads stand beside their marks; of more, below (templates/lanes.html)
const MAX_LANES = 40; // lanes (static/css/lanes.css)

export class LanePlaces {
  /** @type {Map<string, {hue?: string, isTool: boolean}>} everybody, in order */
  #voices = new Map();
  /** @type {Map<string, number>} */
  #lanes = new Map();

  /** @param {string} key @param {{hue?: string, isTool: boolean}} voice */
  add(key, voice) {
    if (!this.#voices.has(key)) this.#voices.set(key, voice);
  }

  /** Have these be those who are active, as when the server has chosen. @param {string[]} keys */
  begin(keys) {
    this.#lanes = new Map(keys.map((key, n) => [key, n + 1]));
  }

  get areMany() {
    return this.#voices.size > MAX_OWN_LANES;
  }

  /** Those with a lane of their own, in order. */
  get keys() {
    return [...this.#lanes.keys()];
  }

  /** The number of the first lane of tools; 0: there is none. */
  get firstTool() {
    return this.keys.findIndex((key) => this.#voices.get(key).isTool) + 1;
  }

  /** How many share the last lane. */
  get others() {
    return this.areMany ? this.#voices.size - this.#lanes.size : 0;
  }

  /** The number of a participant's lane. */
  of(key) {
    return this.#lanes.get(key) ?? this.#lanes.size + 1;
  }

  get #inOrder() {
    const [people, tools] = [[], []];
    for (const [key, { isTool }] of this.#voices) (isTool ? tools : people).push(key);
    return [...people, ...tools];
  }

  hueOf(key) {
    return this.#voices.get(key)?.hue;
  }

  voice(key) {
    return this.#voices.get(key);
  }

  /** Whether all of these have lanes, and not many have one who are not even near. @param {Set<string>} inView @param {Set<string>} near */
  suit(inView, near) {
    return [...inView].every((key) => this.#lanes.has(key)) && this.#lanes.size <= Math.max(MAX_OWN_LANES, 1.5 * near.size);
  }

  /** Give lanes to those who are active, or to all while they are few. Answers whether any lane changed. */
  fold(active) {
    const wanted = this.#inOrder.filter((key) => !this.areMany || active.has(key)).slice(0, MAX_LANES - 1);
    const others = this.others;
    const isSame = wanted.length === this.#lanes.size && wanted.every((key, n) => this.#lanes.get(key) === n + 1);
    if (!isSame) this.begin(wanted);
    return !isSame || others !== this.others;
  }
}

/** Who takes part in these rows. @param {Element[]} rows */
export const keysOf = (rows) => new Set(rows.flatMap(({ dataset: { sender, recipient } }) => (recipient ? [sender, recipient] : [sender])));
