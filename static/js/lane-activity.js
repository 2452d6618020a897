/** Activity bars on the cards of a conversation in lanes: who holds a run at each event, and which tool is called. */

const RUN_STARTS = new Set(["run.started", "run.resumed"]);
const RUN_PAUSES_OR_ENDS = new Set(
  ["waiting", "done", "delivered", "failed", "cancelled", "interrupted", "incompatible"].map((status) => `run.${status}`),
);
const SHOWS_WORK = new Set(["tool_step", "output", "token"]); // of external agents, whose runs have no events

export class LaneActivity {
  #holders = new Map();
  #lastSeq = 0;

  /** Draw the bars of cards that are about to enter the page; each bar has the key of a participant who holds a run. @param {Element[]} cards in order */
  draw(cards) {
    const older = new Map(); // older cards do not change who holds the newest runs
    for (const card of cards) {
      const shown = document.getElementById(card.id);
      const isNewer = Number(card.dataset.seq) > this.#lastSeq;
      if (isNewer) this.#lastSeq = Number(card.dataset.seq);
      if (!isNewer && shown?.matches(".lane-event") && shown !== card) copyBars(shown, card);
      else setBars(card, activeKeys(card.dataset, isNewer ? this.#holders : older));
      if (isAtTool(card.dataset)) addBar(card, card.dataset.recipient).toggleAttribute("data-tool", true);
    }
  }

  /** Forget who holds runs: events before the next card are missing, and the ends of runs may be among them. */
  forget() {
    this.#holders.clear();
  }

  /** Forget all cards: others replace them. */
  reset() {
    this.forget();
    this.#lastSeq = 0;
  }
}

/** Returns the keys of those at work at an event, and updates `holders` (run → key) for the next event. */
const activeKeys = ({ run, kind, sender, recipient }, holders) => {
  if (!run) return new Set([...holders.values(), ...(SHOWS_WORK.has(kind) ? [sender] : [])]);
  if (RUN_STARTS.has(kind) || !holders.has(run)) holders.set(run, sender);
  const keys = new Set([...holders.values(), sender]);
  if (kind === "agent.handoff" && recipient) holders.set(run, recipient);
  if (RUN_PAUSES_OR_ENDS.has(kind)) holders.delete(run);
  return keys;
};

/** Whether a call has reached its tool. */
const isAtTool = ({ calls, state }) => calls !== undefined && state !== "waiting" && state !== "rejected";

const setBars = (card, keys) => {
  for (const bar of barsOf(card)) bar.remove();
  for (const key of keys) addBar(card, key);
};

const addBar = (card, key) => {
  const bar = Object.assign(document.createElement("i"), { className: "activity" });
  bar.dataset.of = key;
  card.append(bar);
  return bar;
};

const copyBars = (shown, card) => {
  for (const bar of barsOf(shown)) if (!bar.hasAttribute("data-tool")) card.append(bar.cloneNode());
};

const barsOf = (card) => card.querySelectorAll(":scope > .activity");
