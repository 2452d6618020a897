/**
 * Forms that no element sends, on every page: the browser sends them once the server is known to respond, since its own error
 * page would replace this one and lose what was typed. The page that follows says what was done once, not after each reload.
 */
import { isReachable } from "./fetch.js";

const SENT_MS = 30_000; // for which a form that was sent is not sent again; the reader may have stopped the browser since

const RESULTS = ["done", "revoked", "saved", "always"]; // in the address after a form: what the page says of it

const checked = new WeakSet(); // forms whose server has just responded
const busy = new Set(); // forms that wait for that response, or were sent

addEventListener("submit", (event) => { // on the window: after the elements that send forms themselves
  const { target: form, submitter } = event;
  if (event.defaultPrevented || form.getAttribute("method") !== "post" || checked.has(form)) return;
  event.preventDefault();
  if (!busy.has(form)) send(form, submitter);
});
addEventListener("pageshow", () => busy.clear()); // also when the reader comes back to the page

async function send(form, submitter) {
  const pressed = submitter?.cloneNode(true); // the button may be changed, disabled or removed before the response
  busy.add(form);
  form.querySelector("[data-not-sent]")?.remove();
  if (!(await isReachable())) {
    busy.delete(form);
    return show(form, submitter);
  }
  setTimeout(() => busy.delete(form), SENT_MS);
  checked.add(form);
  submit(form, pressed);
  checked.delete(form);
  return undefined;
}

/** Submit a form as by the button that was pressed, though the page may no longer contain the form. */
function submit(form, pressed) {
  if (!form.isConnected) document.body.append(Object.assign(form, { hidden: true }));
  if (pressed) form.append(Object.assign(pressed, { hidden: true }));
  form.requestSubmit(pressed);
  pressed?.remove();
}

function show(form, submitter) {
  const hasForm = form.isConnected;
  const note = Object.assign(document.createElement("p"), {
    className: "hint",
    role: "alert",
    textContent: `Not sent: the server did not respond. ${hasForm ? "What you entered is still here; try again." : "Try again."}`,
  });
  Object.assign(note.dataset, { tone: "failed", notSent: "" });
  if (!hasForm) document.querySelector("main")?.prepend(note);
  else (submitter?.isConnected && !form.contains(submitter) ? submitter.parentElement : form).append(note);
}

function forgetResults() {
  const url = new URL(location.href);
  for (const name of RESULTS) url.searchParams.delete(name);
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}

forgetResults();
