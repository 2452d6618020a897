/** Requests to our own server: the CSRF header set, errors in one shape. Called by elements and pages. */

import { noteServerTime } from "./server-time.js";

/** An answer that is no success. `status` 0: there was no answer. */
export class RequestError extends Error {
  /** @param {number} status @param {{code?: string, message?: string, field?: string}} [error]; `told`: what else it says */
  constructor(status, { code = "unreachable", message = "The server did not respond.", field, ...told } = {}) {
    super(message);
    this.name = "RequestError";
    Object.assign(this, { status, code, field, told });
  }

  /** The message as a page shows it. */
  get sentence() {
    return sentenceOf(this);
  }
}

/**
 * An error's message as a whole sentence: with the field where it says only what that must be. A name stays as written.
 * @param {{message: string, field?: string}} error
 */
export function sentenceOf({ message, field }) {
  const name = field?.includes(".") ? field : field?.replace(/_s$/u, "").replaceAll("_", " ");
  const text = name && /^(must|is) /u.test(message) ? `${name} ${message}` : message;
  const isPrincipal = /^\w+:\w/u.test(text);
  const words = isPrincipal ? text.replace(/^user:/u, "") : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/u.test(words) ? words : `${words}.`;
}

/**
 * Ask for JSON; with `body`, send JSON. Throws `RequestError`, or `AbortError` when `signal` fired.
 * @param {string} address
 * @param {{method?: string, body?: object, signal?: AbortSignal, keepalive?: boolean}} [options]  `keepalive`: although the page goes
 * @returns {Promise<any>}
 */
export async function json(address, { method, body, signal, keepalive } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const options = { method: method ?? (body === undefined ? "GET" : "POST"), body: JSON.stringify(body), headers, signal, keepalive };
  return send(address, options, (answer) => (answer.status === 204 ? null : answer.json()));
}

/**
 * Send bytes as they are; answer the JSON that comes. Throws as `json`.
 * @param {string} address
 * @param {Blob} body
 * @returns {Promise<any>}
 */
export async function bytes(address, body) {
  const headers = { Accept: "application/json", "Content-Type": "application/octet-stream", "X-Requested-With": "fetch" };
  return send(address, { method: "POST", body, headers }, (answer) => answer.json());
}

/**
 * Ask for markup that our server rendered. Throws as `json`.
 * @param {string} address
 * @param {{signal?: AbortSignal}} [options]
 * @returns {Promise<string>}
 */
export async function markup(address, { signal } = {}) {
  return send(address, { headers: { Accept: "text/html", "X-Requested-With": "fetch" }, signal }, (answer) => answer.text());
}

/**
 * Send a form to a page; answer what it tells a script, `{html, …}`, whether it took the form or not. Throws as `json`.
 * @param {string} address
 * @param {FormData} body
 * @returns {Promise<any>}
 */
export async function submit(address, body) {
  const headers = { Accept: "application/json", "X-Requested-With": "fetch" };
  const told = await send(address, { method: "POST", body, headers }, (answer) => answer.json(), (answer) => answer.html !== undefined);
  if (told.html === undefined) throw new RequestError(0);
  return told;
}

/** Ask, and read the answer: one that breaks off, or that somebody else gave in our place, is none. */
async function send(address, options, read, isAnswer = () => false) {
  const isRead = (options.method ?? "GET") === "GET"; // reading a cookie waits for another process: only where it is needed
  const headers = isRead ? { ...options.headers } : { ...options.headers, "X-CSRFToken": cookie("switchboard_csrf") };
  const { person } = document.body.dataset;
  if (person) headers["X-Switchboard-Person"] = encodeURIComponent(person); // who signed in since does not act here
  try {
    const answer = await fetch(address, { ...options, headers, credentials: "same-origin", redirect: "error" });
    noteServerTime(Date.parse(answer.headers.get("Date")));
    if (answer.ok) return await read(answer);
    const told = await answer.json().catch(() => ({}));
    if (isAnswer(told)) return told;
    if (told.error?.code === "other_person") document.dispatchEvent(new CustomEvent("other-person"));
    throw new RequestError(answer.status, told.error ?? { code: "error", message: `The server responded with ${answer.status}.` });
  } catch (error) {
    throw error.name === "AbortError" || error instanceof RequestError ? error : new RequestError(0);
  }
}

function cookie(name) {
  return document.cookie.split("; ").find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";
}
