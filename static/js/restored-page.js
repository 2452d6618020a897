/** Loads the page again after the record was restored from a backup, since all of the page may show what is gone, and remembers to say so. */
import { windowStore } from "./safe-storage.js";

const KEY = "switchboard-restored";

export const reloadRestored = () => {
  windowStore.set(KEY, "1");
  location.reload();
};

/** Whether the page was loaded again for that reason; true once. */
export const takeRestored = () => {
  const isRestored = windowStore.get(KEY) !== null;
  windowStore.set(KEY, null);
  return isRestored;
};
