/**
 * `<utc-field>`: a moment that the address holds in UTC, typed in the viewer's own zone. Without scripts it is typed in
 * UTC; a name within `[data-zone]` beside it says which zone is meant.
 */
class UtcField extends HTMLElement {
  connectedCallback() {
    const kept = this.querySelector("input");
    if (kept.type === "hidden" || kept.getAttribute("aria-invalid") === "true") return; // what was typed is shown as it is
    const typed = kept.cloneNode();
    typed.type = "datetime-local";
    typed.removeAttribute("name");
    typed.removeAttribute("placeholder");
    typed.value = local(kept.value);
    kept.type = "hidden";
    kept.after(typed);
    typed.addEventListener("input", () => (kept.value = utc(typed.value)));
    const zone = this.closest("fieldset")?.querySelector("[data-zone]");
    if (zone) zone.textContent = `in your time, ${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
  }
}

/** "2026-11-22T08:30Z" as the clock on the wall has it, to the minute. */
function local(text) {
  const at = new Date(text);
  if (!text || Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** The reverse. */
function utc(text) {
  const at = new Date(text);
  return !text || Number.isNaN(at.getTime()) ? "" : `${at.toISOString().slice(0, 16)}Z`;
}

customElements.define("utc-field", UtcField);
