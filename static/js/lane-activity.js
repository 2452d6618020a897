/** Bars on lanes: who holds a run while each event of a conversation in lanes happens. Used by `lane-heads`. */

const BEGINS = new Set(["run.started", "run.resumed"]);
const LEAVES = new Set(["run.waiting", "run.done", "run.failed", "run.cancelled", "run.interrupted", "run.incompatible"]);
const WORKS = new Set(["tool_step", "output", "token"]); // of agents elsewhere, whose runs nobody tells

export class LaneActivity {
  #holders = new Map();
  #last = 0;

  /** Draw the bars of cards that are about to enter the page. @param {Element[]} cards @param {(lane: string) => string} hueOf */
  draw(cards, hueOf) {
    const isNewer = Number(cards[0]?.dataset.seq) > this.#last;
    const holders = isNewer ? this.#holders : new Map(); // an older page is read by itself
    for (const card of cards) {
      const old = document.getElementById(card.id);
      if (!isNewer && old?.matches(".lane-event") && old !== card) copy(old, card);
      else put(card, active(card.dataset, holders), hueOf);
    }
    if (isNewer) this.#last = Number(cards.at(-1).dataset.seq);
  }
}

/** The lanes that are at work while an event happens; what it changes is kept for the next. */
const active = ({ run, kind, at, far }, holders) => {
  if (!run) return new Set([...holders.values(), ...(WORKS.has(kind) ? [at] : [])]);
  if (BEGINS.has(kind) || !holders.has(run)) holders.set(run, at);
  const lanes = new Set([...holders.values(), at]);
  if (kind === "agent.handoff" && far) holders.set(run, far);
  if (LEAVES.has(kind)) holders.delete(run);
  return lanes;
};

const put = (card, lanes, hueOf) => {
  for (const bar of card.querySelectorAll(":scope > .activity")) bar.remove();
  for (const lane of lanes) {
    const bar = Object.assign(document.createElement("i"), { className: "activity" });
    bar.dataset.at = lane;
    const hue = hueOf(lane);
    if (hue) bar.dataset.hue = hue;
    card.append(bar);
  }
};

const copy = (old, card) => {
  for (const bar of old.querySelectorAll(":scope > .activity")) card.append(bar.cloneNode());
};
