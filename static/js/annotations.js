/**
 * Thumbs and notes under the rows of the events that they are about. The server draws them with a page; what is said later
 * comes in the annotation's own row (`[data-about]`), and is put under its event from there. Used by `transcript-rows`.
 */

const rowOf = (seq) => document.getElementById(`e${seq}`)?.closest("[data-seq]") ?? null;
const notesOf = (row) => row.querySelector(":scope > .notes, :scope > .lane-card > .lane-foot > .notes");

/** Put what the annotations among these rows say under their events. @param {Element} root */
export function placeNotes(root) {
  for (const said of root.querySelectorAll(".note[data-about]")) place(said);
}

/** Have a row's newer drawing, which knows nothing of them, keep its notes. */
export function keepNotes(old, fresh) {
  const notes = notesOf(old);
  if (notes && !notesOf(fresh)) insert(fresh, notes.cloneNode(true));
}

function place(said) {
  const row = rowOf(said.dataset.about);
  if (!row) return; // its page is drawn with it
  const { note: seq, author } = said.dataset;
  let notes = notesOf(row);
  if (notes?.querySelector(`[data-note="${seq}"]`)) return;
  const mine = [...(notes?.children ?? [])].filter((one) => one.dataset.author === author);
  const fresh = said.cloneNode(true);
  fresh.removeAttribute("data-about");
  const thumb = fresh.querySelector("[data-thumb]");
  if (thumb) {
    if (mine.some((one) => Number(one.dataset.note) > Number(seq) && one.querySelector("[data-thumb]"))) thumb.remove();
    else mine.filter((one) => Number(one.dataset.note) < Number(seq)).forEach(takeThumb);
    if (thumb.dataset.thumb === "withdrawn") thumb.remove();
  }
  if (!isEmpty(fresh)) {
    notes ??= insert(row, list());
    const later = [...notes.children].find((one) => Number(one.dataset.note) > Number(seq));
    notes.insertBefore(fresh, later ?? null);
  }
  if (notes && !notes.children.length) notes.remove();
}

const isEmpty = (note) => !note.querySelector("[data-thumb], .words");

function takeThumb(note) {
  note.querySelector("[data-thumb]")?.remove();
  if (isEmpty(note)) note.remove();
}

function list() {
  const notes = Object.assign(document.createElement("ul"), { className: "notes", ariaLabel: "Notes" });
  notes.dataset.key = "notes";
  return notes;
}

/** After the row's own, before what happened inside it. */
function insert(row, notes) {
  const foot = row.querySelector(":scope > .lane-card > .lane-foot");
  if (foot) foot.prepend(notes);
  else row.insertBefore(notes, row.querySelector(":scope > [data-inner]"));
  return notes;
}
