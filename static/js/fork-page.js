/** The page that makes a fork: a long history takes a moment to copy. `plain-forms.js` sends it once. */
import "./json-copy.js";

const form = document.querySelector("[data-fork]");

const transcript = form.querySelector(".transcript");
transcript.scrollTop = transcript.scrollHeight; // the fork begins after its last row

addEventListener("submit", (event) => { // after `plain-forms.js`, which may hold it back
  if (!event.defaultPrevented) form.querySelector("[data-said]").textContent = "Copying…";
});

addEventListener("pageshow", () => { // also when the reader comes back to the page
  form.querySelector("[data-said]").textContent = "";
});
