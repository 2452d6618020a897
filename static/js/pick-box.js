/** A box on a row of the list, for who may steer: what is ticked is steered together (`bulk-actions`). */
export function addBox(row) {
  if (row.querySelector(".pick") || !document.body.dataset.may.split(" ").includes("control")) return row;
  const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "conversation" });
  box.setAttribute("form", "bulk");
  box.setAttribute("aria-label", `Select ${row.querySelector(":is(h2, h3) > a").textContent}`);
  const label = Object.assign(document.createElement("label"), { className: "pick" });
  label.append(box);
  row.prepend(label);
  return row;
}
