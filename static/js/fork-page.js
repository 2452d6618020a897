/** The page that makes a fork. A long history takes a moment to copy, and a second press must not fork twice. */
import "./json-copy.js";

const form = document.querySelector("[data-fork]");

const transcript = form.querySelector(".transcript");
transcript.scrollTop = transcript.scrollHeight; // the fork begins after its last row

let disabledButtons = []; // those that were enabled before the form was sent

addEventListener("submit", (event) => { // after `plain-forms.js`, which may hold it back
  if (event.defaultPrevented) return;
  form.querySelector("[data-said]").textContent = "Copying…";
  requestAnimationFrame(() => { // once the form is on its way, with the value of the pressed button
    disabledButtons = [...form.querySelectorAll("button:enabled")];
    for (const button of disabledButtons) button.disabled = true;
  });
});

addEventListener("pageshow", () => { // also when the reader comes back to the page
  form.querySelector("[data-said]").textContent = "";
  for (const button of disabledButtons) button.disabled = false;
});
