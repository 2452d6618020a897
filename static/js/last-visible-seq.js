/** Answer the seq of the newest event that the reader has before them; 0 where there is no transcript. */
export function lastVisibleSeq() {
  const transcript = document.querySelector("live-transcript");
  if (transcript?.isLive) return Number(transcript.dataset.head);
  return Number([...document.querySelectorAll(".transcript .rows > [data-seq]")].at(-1)?.dataset.seq ?? 0);
}
