/**
 * Forms that no element sends, on every page: the browser sends them once the server is known to respond, since its own error
 * page would replace this one and lose what was typed.
 */
const TIMEOUT_MS = 10_000;
const AWAY = [502, 503, 504]; // statuses of a proxy whose server does not respond

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
  noteOf(form)?.remove();
  const isThere = await responds();
  waiting.delete(form);
  if (!isThere) return show(form, submitter);
  checked.add(form);
  form.requestSubmit(submitter);
  checked.delete(form);
}

async function responds() {
  try {
    const response = await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
    return !AWAY.includes(response.status);
  } catch {
    return false;
  }
}

function show(form, submitter) {
  const note = document.createElement("p");
  note.className = "hint";
  note.dataset.tone = "failed";
  note.dataset.notSent = "";
  note.role = "alert";
  note.textContent = "Not sent: the server did not respond. What you entered is still here; try again.";
  (submitter && !form.contains(submitter) ? submitter.parentElement : form).append(note);
}

const noteOf = (form) => form.querySelector("[data-not-sent]");
