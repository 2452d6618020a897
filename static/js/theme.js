/** The color theme: the system's unless the person chose one. The choice is a cookie, so that the server renders the page with it. */
const ORDER = ["system", "light", "dark"];
const YEAR = 365 * 24 * 3600; // seconds

/** Returns the chosen theme. @returns {"system"|"light"|"dark"} */
export const theme = () => document.documentElement.dataset.theme ?? "system";

/** Switch to the next of system, light, dark. */
function chooseNext() {
  choose(ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length]);
}

/** Apply a theme and store the choice. @param {"system"|"light"|"dark"} choice */
export function choose(choice) {
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  document.cookie = `switchboard_theme=${choice}; path=/; max-age=${choice === "system" ? 0 : YEAR}; samesite=strict`;
  for (const label of document.querySelectorAll("[data-theme-name]")) label.textContent = choice;
}

addEventListener("click", (event) => {
  if (event.target.closest?.("[data-action='theme']")) chooseNext();
});
