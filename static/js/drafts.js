/** Words not yet sent, by conversation, in this browser. Where storage is off they last as long as the page. */

const PREFIX = "switchboard-draft:";

/** @typedef {{content: string, to: string, clientId: string, action: string}} Draft */

/** @returns {Draft | null} */
export function read(key) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + key));
  } catch {
    return null;
  }
}

/** @param {string} key @param {Draft | null} draft null: it was sent */
export function keep(key, draft) {
  try {
    if (draft) localStorage.setItem(PREFIX + key, JSON.stringify(draft));
    else localStorage.removeItem(PREFIX + key);
  } catch {
    /* full or switched off: the field itself still has the words */
  }
}

/** A new id, also where the page is not in a secure context. */
export const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
