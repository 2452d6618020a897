/** Adds to a row of the conversation list the checkbox that selects it for `bulk-actions`, for people with the permission. */
export function addBox(row) {
  if (row.querySelector(".pick") || !document.body.dataset.may.split(" ").includes("control")) return row;
  const checkbox = Object.assign(document.createElement("input"), { type: "checkbox", name: "conversation" });
  checkbox.setAttribute("form", "bulk");
  checkbox.setAttribute("aria-label", `Select ${row.querySelector(":is(h2, h3) > a").textContent}`);
  const label = Object.assign(document.createElement("label"), { className: "pick" });
  label.append(checkbox);
  row.prepend(label);
  return row;
}
