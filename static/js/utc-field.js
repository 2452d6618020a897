/**
 * `<utc-field>`: a date and time that is submitted in UTC and entered in the reader's own time zone. Without scripts it is
 * entered in UTC; `[data-zone]` beside it shows the name of the zone.
 */
class UtcField extends HTMLElement {
  connectedCallback() {
    const utcInput = this.querySelector("input");
    if (utcInput.type === "hidden" || utcInput.getAttribute("aria-invalid") === "true") return; // an invalid value is shown as it was entered
    const localInput = utcInput.cloneNode();
    localInput.type = "datetime-local";
    localInput.removeAttribute("name");
    localInput.removeAttribute("placeholder");
    localInput.value = toLocal(utcInput.value);
    utcInput.type = "hidden";
    utcInput.after(localInput);
    localInput.addEventListener("input", () => (utcInput.value = toUtc(localInput.value)));
    const zone = this.closest("fieldset")?.querySelector("[data-zone]");
    if (zone) zone.textContent = `in your time, ${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
  }
}

/** Converts "2026-11-22T08:30Z" to local time, in minutes. */
function toLocal(text) {
  const at = new Date(text);
  if (!text || Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Converts local time to UTC. */
function toUtc(text) {
  const at = new Date(text);
  return !text || Number.isNaN(at.getTime()) ? "" : `${at.toISOString().slice(0, 16)}Z`;
}

customElements.define("utc-field", UtcField);
