/** Text that is cut for want of room: a pointer that rests on it gets the whole, and a tap opens it where it does nothing else. */
const CUT = ".clip, .crumb, .what, .by";
const BUSY = "a, button, label, summary, input, textarea, [data-item]"; // what a tap is for already
const REST_MS = 250; // before what is pointed at is measured: text that streams by is not

const given = new WeakSet(); // elements whose title is from here: their text may be another by now

document.addEventListener("pointerover", ({ target }) => {
  const text = target.closest?.(CUT);
  if (text && (given.has(text) || !text.closest("[title]"))) setTimeout(() => tell(text), REST_MS);
});

document.addEventListener("click", (event) => {
  const text = event.pointerType === "touch" && event.target.closest(CUT);
  if (text && !text.closest(BUSY) && (isCut(text) || "whole" in text.dataset)) text.toggleAttribute("data-whole");
});

const tell = (text) => {
  given.add(text);
  if (isCut(text)) text.title = text.textContent.trim();
  else text.removeAttribute("title");
};

const isCut = (text) => text.scrollWidth > text.clientWidth;
