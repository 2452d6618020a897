/** What became of a decision, said once for the page: read out, and shown until the next one or until it is dismissed. */

/**
 * @param {string} words
 * @param {"done" | "failed"} tone
 */
export function report(words, tone) {
  const place = found() ?? made();
  place.dataset.tone = tone;
  place.querySelector("span").textContent = words;
  place.hidden = false;
}

const found = () => document.querySelector(".report");

function made() {
  const place = Object.assign(document.createElement("div"), { className: "report" });
  const words = document.createElement("span");
  words.setAttribute("role", "status");
  words.dir = "auto";
  const close = Object.assign(document.createElement("button"), { type: "button", className: "bare", textContent: "×", title: "Dismiss" });
  close.setAttribute("aria-label", "Dismiss");
  close.addEventListener("click", () => (place.hidden = true));
  place.append(words, close);
  (document.querySelector("main") ?? document.body).append(place);
  return place;
}
