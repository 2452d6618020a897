/** Text of turns that are still streaming, appended to text nodes in stretches that end at a line break. */

const STRETCH = 2000; // characters; one growing node stays cheap to lay out (measured: 16,000 tokens/s at 60 frames/s)
const MAX_LINE = 8 * STRETCH; // characters; a longer line is continued in a stretch of its own
const MAX_STRETCHES = 250; // of one turn; older ones are removed, as the server leaves out the beginning of a turn above 512 kB

export class LiveText {
  /** @type {Map<string, {node: Text}>} */
  #current = new Map();
  /** @type {Map<string, string[]>} */
  #queued = new Map();

  /** Queue `text` for a group until `flush`. */
  add(group, text) {
    const queued = this.#queued.get(group);
    if (queued) queued.push(text);
    else this.#queued.set(group, [text]);
  }

  /** Forget a group: its output has arrived and replaces the text. */
  end(group) {
    this.#queued.delete(group);
    this.#current.delete(group);
  }

  /** Forget all groups: the rows were replaced. */
  clear() {
    this.#queued.clear();
    this.#current.clear();
  }

  /** Append the queued text, with one write per group. @param {(group: string) => Element | undefined} find returns a group's block */
  flush(find) {
    for (const [group, texts] of this.#queued) {
      const block = find(group)?.querySelector("[data-live-text]");
      if (block) this.#append(group, block, texts.join(""));
    }
    this.#queued.clear();
    for (const [group, { node }] of this.#current) if (!node.isConnected) this.#current.delete(group); // it would keep its detached stretch in memory
  }

  #append(group, block, text) {
    const current = this.#current.get(group);
    const node = current?.node.isConnected ? current.node : lastText(block);
    const cut = node.length + text.length > STRETCH ? text.indexOf("\n") : -1;
    node.appendData(cut < 0 ? text : text.slice(0, cut));
    const isFull = cut >= 0 || node.length > MAX_LINE;
    this.#current.set(group, { node: isFull ? nextStretch(block, cut < 0 ? "" : text.slice(cut + 1)) : node });
  }
}

const lastText = (block) => {
  const last = block.lastElementChild ?? block;
  if (last.lastChild instanceof Text) return last.lastChild;
  return last.appendChild(document.createTextNode(""));
};

const nextStretch = (block, text) => {
  const node = document.createTextNode(text);
  const span = document.createElement("span");
  span.className = "stretch";
  span.append(node);
  block.append(span);
  if (block.childNodes.length > MAX_STRETCHES) removeOldest(block);
  return node;
};

/** Remove the oldest stretches, behind a note that says so. */
const removeOldest = (block) => {
  const textContent = "The beginning of this turn is too long to show here.\n";
  if (!block.firstElementChild.matches(".faint")) block.prepend(Object.assign(document.createElement("span"), { className: "stretch faint", textContent }));
  while (block.childNodes.length > MAX_STRETCHES) block.childNodes[1].remove();
};
