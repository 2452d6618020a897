/**
 * Forms that no element sends, on every page: the browser sends them once the server is known to respond, since its own error
 * page would replace this one and lose what was typed.
 */
import { markup } from "./fetch.js";

const TIMEOUT_MS = 10_000;
const AWAY = [0, 502, 503, 504]; // no response, and statuses of a proxy whose server does not respond

const checked = new WeakSet(); // forms whose server has just responded
const waiting = new WeakSet();

addEventListener("submit", (event) => { // on the window: after the elements that send forms themselves
  const { target: form, submitter } = event;
  if (event.defaultPrevented || form.getAttribute("method") !== "post" || checked.has(form)) return;
  event.preventDefault();
  if (!waiting.has(form)) send(form, submitter);
});

async function send(form, submitter) {
  waiting.add(form);
  form.querySelector("[data-not-sent]")?.remove();
  const status = await markup("/healthz", { signal: AbortSignal.timeout(TIMEOUT_MS) }).then(() => 200, (error) => error.status);
  waiting.delete(form);
  if (AWAY.includes(status)) return show(form, submitter);
  checked.add(form);
  form.requestSubmit(submitter);
  checked.delete(form);
}

function show(form, submitter) {
  const note = Object.assign(document.createElement("p"), {
    className: "hint",
    role: "alert",
    textContent: "Not sent: the server did not respond. What you entered is still here; try again.",
  });
  Object.assign(note.dataset, { tone: "failed", notSent: "" });
  (submitter && !form.contains(submitter) ? submitter.parentElement : form).append(note);
}
