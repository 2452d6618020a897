/** The page of a fork to be made: a long history takes a moment to copy, and a second press must not fork twice. */
import "./json-copy.js";

const form = document.querySelector("[data-fork]");

const before = form.querySelector(".transcript");
before.scrollTop = before.scrollHeight; // its last entry is where the fork begins

let pressable = []; // what was before it was sent

form.addEventListener("submit", () => {
  form.querySelector("[data-said]").textContent = "Copying…";
  requestAnimationFrame(() => {
    pressable = [...form.querySelectorAll("button:enabled")];
    for (const button of pressable) button.disabled = true; // after the pressed one is on its way
  });
});

addEventListener("pageshow", () => {
  form.querySelector("[data-said]").textContent = "";
  for (const button of pressable) button.disabled = false;
});
