/** Keeps the speed of playback that a reader chose, for the other views of this window. Used by both playback bars. */
import { windowStore } from "./safe-storage.js";

const STORAGE_KEY = "switchboard-speed";

/** @param {HTMLSelectElement} select @param {string | null} wanted  a speed that goes before the stored one @param {AbortSignal} signal */
export function keepSpeed(select, wanted, signal) {
  const speed = [wanted, windowStore.get(STORAGE_KEY)].find((choice) => [...select.options].some(({ value }) => value === choice));
  if (speed) select.value = speed;
  select.addEventListener("change", () => windowStore.set(STORAGE_KEY, select.value), { signal });
}
