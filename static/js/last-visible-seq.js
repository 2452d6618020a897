/** Returns the seq of the newest event that is shown to the reader; 0 without a transcript. */
export function lastVisibleSeq() {
  const transcript = document.querySelector("live-transcript");
  if (transcript?.isSubscribed) return Number(transcript.dataset.head);
  return Number([...document.querySelectorAll(".transcript .rows > [data-seq]")].at(-1)?.dataset.seq ?? 0);
}
