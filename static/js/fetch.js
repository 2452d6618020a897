/** Requests to our own server, with the CSRF header and one class of errors. Used by all elements and pages. */
import { withLocalTimes } from "./clock.js";
import { noteServerTime } from "./server-time.js";

const REACH_MS = 10_000; // within which the server must respond
const PROXY_ERRORS = [502, 503, 504]; // statuses of a proxy whose server does not respond

/** A request without a successful response. `status` 0: no response at all. */
export class RequestError extends Error {
  /**
   * @param {number} status
   * @param {{code?: string, message?: string, field?: string}} [error] as in the response; its other members are in `details`
   */
  constructor(status, { code = "unreachable", message = "The server did not respond.", field, ...details } = {}) {
    super(message);
    this.name = "RequestError";
    Object.assign(this, { status, code, field, details });
  }

  /** Whether nobody responded, or only a proxy in front of the server, whose own errors are JSON. */
  get isUnreachable() {
    return this.status === 0 || (PROXY_ERRORS.includes(this.status) && this.code === "error");
  }

  /** Whether the same request may succeed later: there was no response, too many requests, or an error of the server. */
  get isTemporary() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  /** The message as a page shows it. */
  get sentence() {
    return sentenceOf(this);
  }
}

/**
 * Returns an error's message as a sentence, with the field's name before a mere predicate ("must be …"). A principal's name
 * at its start is not capitalized; times are in the browser's time zone.
 * @param {{message: string, field?: string}} error
 */
export function sentenceOf({ message, field }) {
  const name = field?.includes(".") ? field : field?.replace(/_s$/u, "").replaceAll("_", " ");
  const text = withLocalTimes(name && /^(must|is) /u.test(message) ? `${name} ${message}` : message);
  const isPrincipal = /^\w+:\w/u.test(text);
  const sentence = isPrincipal ? text.replace(/^user:/u, "") : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/u.test(sentence) ? sentence : `${sentence}.`;
}

/**
 * Fetch JSON, or send `body` as JSON. Throws `RequestError`, or `AbortError` if `signal` was aborted.
 * @param {string} address
 * @param {{method?: string, body?: object, signal?: AbortSignal, keepalive?: boolean}} [options]  `keepalive`: the request outlives the page
 * @returns {Promise<any>}
 */
export async function json(address, { method, body, signal, keepalive } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const options = { method: method ?? (body === undefined ? "GET" : "POST"), body: JSON.stringify(body), headers, signal, keepalive };
  return send(address, options, (response) => (response.status === 204 ? null : response.json()));
}

/**
 * Send bytes. Returns the JSON of the response. Throws as `json` does.
 * @param {string} address
 * @param {Blob} body
 * @returns {Promise<any>}
 */
export async function bytes(address, body) {
  const headers = { Accept: "application/json", "Content-Type": "application/octet-stream", "X-Requested-With": "fetch" };
  return send(address, { method: "POST", body, headers }, (response) => response.json());
}

/**
 * Fetch HTML that our server rendered. Throws as `json` does.
 * @param {string} address
 * @param {{signal?: AbortSignal}} [options]
 * @returns {Promise<string>}
 */
export async function markup(address, { signal } = {}) {
  return send(address, { headers: { Accept: "text/html", "X-Requested-With": "fetch" }, signal }, (response) => response.text());
}

/** Returns whether the server responds. @returns {Promise<boolean>} */
export async function isReachable() {
  return markup("/healthz", { signal: AbortSignal.timeout(REACH_MS) }).then(() => true, (error) => !error.isUnreachable);
}

/**
 * Send a form to a page. Returns its JSON, `{html, …}`, whether the form was accepted or not. Throws as `json` does. The
 * form's own CSRF token is left out: it is older than the cookie's if the same person has signed in again since.
 * @param {string} address
 * @param {FormData} body
 * @returns {Promise<any>}
 */
export async function submit(address, body) {
  const headers = { Accept: "application/json", "X-Requested-With": "fetch" };
  const hasHtml = ({ html }) => html !== undefined;
  body.delete("csrfmiddlewaretoken");
  const answer = await send(address, { method: "POST", body, headers }, (response) => response.json(), hasHtml);
  if (!hasHtml(answer)) throw new RequestError(0);
  return answer;
}

/**
 * Send a request and read its response. One that breaks off or cannot be read (a proxy's, say) counts as no response. The
 * JSON of an unsuccessful response is returned if `isResult` accepts it. Dispatches `other-person` on the document if
 * somebody else has signed in since the page was loaded.
 */
async function send(address, options, read, isResult = () => false) {
  const isGet = (options.method ?? "GET") === "GET"; // reading a cookie waits for another process: only when needed
  const headers = isGet ? { ...options.headers } : { ...options.headers, "X-CSRFToken": cookie("switchboard_csrf") };
  const { person } = document.body.dataset;
  if (person) headers["X-Switchboard-Person"] = encodeURIComponent(person); // the server refuses if somebody else has signed in
  try {
    const response = await fetch(address, { ...options, headers, credentials: "same-origin", redirect: "error" });
    noteServerTime(Date.parse(response.headers.get("Date")));
    if (response.ok) return await read(response);
    const body = await response.json().catch(() => ({}));
    if (isResult(body)) return body;
    if (body.error?.code === "other_person") document.dispatchEvent(new CustomEvent("other-person"));
    throw new RequestError(response.status, body.error ?? { code: "error", message: `The server responded with ${response.status}.` });
  } catch (error) {
    throw error.name === "AbortError" || error instanceof RequestError ? error : new RequestError(0);
  }
}

function cookie(name) {
  return document.cookie.split("; ").find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";
}
