/**
 * `<transcript-search data-address data-conversation data-at>`: searches the whole conversation, also what is not drawn, and goes
 * from result to result. Opened by `/`, by `[data-action="find"]` and by `?find=` in the page's URL, which a result on another
 * page of the transcript keeps. A conversation that goes on is searched again at the last result.
 */
import { RequestError } from "./fetch.js";
import { onKey } from "./keys.js";
import { markWords } from "./marked-words.js";
import { topRow } from "./row-position.js";
import { fetchResults } from "./search-results.js";

class TranscriptSearch extends HTMLElement {
  #stop = new AbortController();
  #searches = 0; // so far: the answer of an older one is dropped
  #words = ""; // of the results
  #results = []; // seqs, ascending
  #hasMore = false; // older results than these
  #isStale = false; // events have come since
  #current = 0; // the seq of the result that is shown; 0: none

  connectedCallback() {
    const { signal } = this.#stop;
    this.addEventListener("submit", (event) => this.#handleSubmit(event), { signal });
    this.addEventListener("keydown", (event) => this.#handleKey(event), { signal });
    this.addEventListener("click", (event) => this.#handleClick(event), { signal });
    document.addEventListener("click", (event) => event.target.closest?.("[data-action='find']") && this.#open(), { signal });
    document.addEventListener("transcript:drawn", () => (this.#isStale = true), { signal });
    document.addEventListener("record:redacted", () => this.#words && this.#search(), { signal });
    document.addEventListener("event:picked", ({ detail }) => this.#mark(detail.row), { signal });
    signal.addEventListener("abort", onKey("/", () => this.#open()));
    const { searchParams } = new URL(location.href);
    if (searchParams.get("find")) this.#restore(searchParams.get("find"), Number(searchParams.get("event")));
  }

  disconnectedCallback() { this.#stop.abort(); }
  get #field() { return this.querySelector("[type=search]"); }
  get #steps() { return this.querySelectorAll("button:is([value='1'], [value='-1'])"); }
  #count(text) { this.querySelector("[data-count]").textContent = text; }

  #open() {
    document.querySelector("[popover]:popover-open")?.hidePopover();
    this.hidden = false;
    this.#field.select();
  }

  /** Continue on the page that a result led to. */
  async #restore(words, seq) {
    [this.hidden, this.#field.value] = [false, words];
    await this.#search();
    this.#show(seq);
    this.#mark(document.querySelector(".transcript [aria-current='true'][data-seq]"));
    if (document.activeElement === document.body || document.activeElement.matches(".transcript")) this.#field.focus({ preventScroll: true });
  }

  #close() {
    this.hidden = true;
    this.#searches += 1; // a response under way is not shown
    [this.#words, this.#results] = ["", []];
    this.#mark(null);
    this.#draw();
    this.#setAddress("");
    document.querySelector(".transcript")?.focus({ preventScroll: true });
  }

  #setAddress(words) {
    const url = new URL(location.href);
    words ? url.searchParams.set("find", words) : url.searchParams.delete("find");
    history.replaceState(history.state, "", url);
  }

  #handleSubmit(event) {
    event.preventDefault();
    this.#step(1);
  }

  #handleKey(event) {
    if (event.key !== "Escape" && !(event.key === "Enter" && event.shiftKey && event.target === this.#field)) return;
    event.preventDefault();
    if (event.key === "Escape") this.#close();
    else this.#step(-1);
  }

  #handleClick({ target }) {
    const { value } = target.closest("button") ?? {};
    if (value === "close") this.#close();
    else if (value) this.#step(Number(value));
  }

  /** Go to the next (1) or previous (-1) result; of new words, to the first one from the reader's position on. */
  async #step(step) {
    const isNew = this.#field.value.trim() !== this.#words;
    const isLast = step > 0 && this.#current >= (this.#results.at(-1) ?? 0);
    if ((isNew || (isLast && this.#isStale)) && !(await this.#search())) return undefined;
    const results = this.#results;
    if (!results.length) return undefined;
    const at = results.indexOf(this.#current);
    if (at >= 0) return this.#follow(results[(at + step + results.length) % results.length]);
    const scroller = document.querySelector(".transcript");
    const top = Number((scroller && topRow(scroller))?.dataset.seq ?? 0);
    return this.#follow(results.find((seq) => seq >= top) ?? results.at(-1));
  }

  /** Follow the link to a result: `event-picker` opens its row if it is drawn, else the browser loads the page that has it. */
  #follow(seq) {
    this.#show(seq);
    const [link, url] = [this.querySelector("[data-outline]"), new URL(location.href)];
    url.searchParams.set("event", seq);
    url.searchParams.set("find", this.#words);
    url.hash = `e${seq}`;
    link.dataset.outline = seq;
    link.href = url.href;
    link.click();
  }

  #show(seq) {
    this.#current = this.#results.includes(seq) ? seq : 0;
    this.#draw();
  }

  /** Fetch the results of the words. Returns whether that succeeded. */
  async #search() {
    const [words, number] = [this.#field.value.trim(), (this.#searches += 1)];
    this.#isStale = false;
    try {
      const { seqs, hasMore } = words ? await fetchResults(this.dataset, words, this.#stop.signal) : { seqs: [], hasMore: false };
      if (number !== this.#searches) return false;
      [this.#words, this.#results, this.#hasMore] = [words, seqs, hasMore];
      this.#setAddress(words);
      this.#mark(null);
      this.#draw();
      return true;
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error;
      if (number === this.#searches) this.#count(error.sentence ?? "");
      return false;
    }
  }

  #draw() {
    const { length } = this.#results;
    const [total, at] = [`${length.toLocaleString("en")}${this.#hasMore ? "+" : ""}`, this.#results.indexOf(this.#current) + 1];
    this.#count(!this.#words ? "" : !length ? "No results" : at ? `${at.toLocaleString("en")} of ${total}` : `${total} result${length === 1 ? "" : "s"}`);
    for (const button of this.#steps) button.disabled = !length;
  }

  #mark(row) {
    if (this.#words || !row) markWords(row ?? this, row ? this.#words.replace(/["*]/gu, " ") : "", "*");
  }
}
customElements.define("transcript-search", TranscriptSearch);
