/**
 * Thumbs and notes below the rows of the events that they are about. The server renders them with the page; later ones
 * arrive in the annotation's own row (`[data-about]`) and are copied from there to the row of their event. Used by
 * `transcript-rows`.
 */

const rowOf = (seq) => document.getElementById(`e${seq}`)?.closest("[data-seq]") ?? null;
const notesOf = (row) => row.querySelector(":scope > .notes, :scope > .lane-card > .lane-foot > .notes");

/** Copy the annotations among these rows to the rows of their events. @param {Element} root */
export function placeNotes(root) {
  for (const annotation of root.querySelectorAll(".note[data-about]")) place(annotation);
}

/** Carry a row's notes over to its newer rendering, which comes without them. */
export function keepNotes(oldRow, newRow) {
  const notes = notesOf(oldRow);
  if (notes && !notesOf(newRow)) insert(newRow, notes.cloneNode(true));
}

function place(annotation) {
  const row = rowOf(annotation.dataset.about);
  if (!row) return; // not on this page, which is rendered with its notes once it is loaded
  const { note: seq, author } = annotation.dataset;
  let notes = notesOf(row);
  if (notes?.querySelector(`[data-note="${seq}"]`)) return;
  const notesOfAuthor = [...(notes?.children ?? [])].filter((note) => note.dataset.author === author);
  const newNote = annotation.cloneNode(true);
  newNote.removeAttribute("data-about");
  const thumb = newNote.querySelector("[data-thumb]");
  if (thumb) {
    const hasNewerThumb = (note) => Number(note.dataset.note) > Number(seq) && note.querySelector("[data-thumb]");
    if (notesOfAuthor.some(hasNewerThumb)) thumb.remove();
    else notesOfAuthor.filter((note) => Number(note.dataset.note) < Number(seq)).forEach(removeThumb);
    if (thumb.dataset.thumb === "withdrawn") thumb.remove();
  }
  if (!isEmpty(newNote)) {
    notes ??= insert(row, emptyList());
    const laterNote = [...notes.children].find((note) => Number(note.dataset.note) > Number(seq));
    notes.insertBefore(newNote, laterNote ?? null);
  }
  if (notes && !notes.children.length) notes.remove();
}

const isEmpty = (note) => !note.querySelector("[data-thumb], .words");

function removeThumb(note) {
  note.querySelector("[data-thumb]")?.remove();
  if (isEmpty(note)) note.remove();
}

function emptyList() {
  const notes = Object.assign(document.createElement("ul"), { className: "notes", ariaLabel: "Notes" });
  notes.dataset.key = "notes";
  return notes;
}

/** Insert the list after the row's own content, before the rows nested in it. */
function insert(row, notes) {
  const foot = row.querySelector(":scope > .lane-card > .lane-foot");
  if (foot) foot.prepend(notes);
  else row.insertBefore(notes, row.querySelector(":scope > [data-inner]"));
  return notes;
}
