/** Bars on lanes: who holds a run while each event of a conversation in lanes happens, and which tool is called. Used by `lane-heads`. */

const BEGINS = new Set(["run.started", "run.resumed"]);
const LEAVES = new Set(["run.waiting", "run.done", "run.failed", "run.cancelled", "run.interrupted", "run.incompatible"]);
const WORKS = new Set(["tool_step", "output", "token"]); // of agents elsewhere, whose runs nobody tells

export class LaneActivity {
  #holders = new Map();
  #last = 0;

  /** Give cards that are about to enter the page their bars, each with the key of who holds a run. @param {Element[]} cards */
  draw(cards) {
    const isNewer = Number(cards[0]?.dataset.seq) > this.#last;
    const holders = isNewer ? this.#holders : new Map(); // an older page is read by itself
    for (const card of cards) {
      const old = document.getElementById(card.id);
      if (!isNewer && old?.matches(".lane-event") && old !== card) copy(old, card);
      else put(card, active(card.dataset, holders));
      if (isAtTool(card.dataset)) add(card, card.dataset.recipient).toggleAttribute("data-tool", true);
    }
    if (isNewer) this.#last = Number(cards.at(-1).dataset.seq);
  }
}

/** Who is at work while an event happens; what it changes is kept for the next. */
const active = ({ run, kind, sender, recipient }, holders) => {
  if (!run) return new Set([...holders.values(), ...(WORKS.has(kind) ? [sender] : [])]);
  if (BEGINS.has(kind) || !holders.has(run)) holders.set(run, sender);
  const keys = new Set([...holders.values(), sender]);
  if (kind === "agent.handoff" && recipient) holders.set(run, recipient);
  if (LEAVES.has(kind)) holders.delete(run);
  return keys;
};

/** Whether a call has come to its tool. */
const isAtTool = ({ calls, state }) => calls !== undefined && state !== "waiting" && state !== "rejected";

const put = (card, keys) => {
  for (const bar of barsOf(card)) bar.remove();
  for (const key of keys) add(card, key);
};

const add = (card, key) => {
  const bar = Object.assign(document.createElement("i"), { className: "activity" });
  bar.dataset.of = key;
  card.append(bar);
  return bar;
};

const copy = (old, card) => {
  for (const bar of barsOf(old)) if (!bar.hasAttribute("data-tool")) card.append(bar.cloneNode());
};

const barsOf = (card) => card.querySelectorAll(":scope > .activity");
