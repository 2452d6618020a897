/** Keeps the speed of playback that a reader chose, for the other views of this window. Used by both playback bars. */
import { windowStore } from "./safe-storage.js";

const STORAGE_KEY = "switchboard-speed";

/** @param {HTMLSelectElement} select @param {string | null} wanted  a speed that goes before the kept one @param {AbortSignal} signal */
export function keepSpeed(select, wanted, signal) {
  const kept = [wanted, windowStore.get(STORAGE_KEY)].find((speed) => [...select.options].some(({ value }) => value === speed));
  if (kept) select.value = kept;
  select.addEventListener("change", () => windowStore.set(STORAGE_KEY, select.value), { signal });
}
