/**
 * Spares the page markup that is outdated before it is drawn: of the events of a block that wait to be drawn together, only
 * the newest markup is parsed and inserted, and none of the text that it replaces.
 */

const KEEPS_FIRST_PLACE = "call:"; // a call's row stands where the call began; that of a turn, where its output is

export class QueuedBlocks {
  /** @type {Map<string, object[]>} group → its events that are queued, none of them drawn */
  #queued = new Map();

  /** Remove from queued events what these replace, and note these. Call before they are queued. @param {object[]} events */
  add(events) {
    for (const event of events) if (event.group) this.#add(event);
  }

  /** Call before an event is drawn: what comes later for its block updates the row. @param {object} event */
  draws({ group }) {
    if (group) this.#queued.delete(group);
  }

  /** Forget all events: they will not be drawn. */
  clear() {
    this.#queued.clear();
  }

  #add(event) {
    const queued = this.#queued.get(event.group);
    if (!queued) this.#queued.set(event.group, [event]);
    else if (event.html === undefined) queued.push(event);
    else this.#replace(queued, event);
  }

  #replace(queued, event) {
    const { html } = event;
    for (const older of [...queued, event]) older.html = older.text = older.opens = undefined;
    const shown = event.group.startsWith(KEEPS_FIRST_PLACE) ? queued[0] : event;
    shown.html = html;
    this.#queued.set(event.group, [shown]);
  }
}
