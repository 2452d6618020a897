/** Follow the system unless the person chose. The choice is a cookie, so that the server draws the first paint right. */
const ORDER = ["system", "light", "dark"];
const YEAR = 365 * 24 * 3600; // seconds

/** @returns {"system"|"light"|"dark"} */
export const theme = () => document.documentElement.dataset.theme ?? "system";

/** Go to the next of system, light, dark. */
function nextTheme() {
  choose(ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length]);
}

/** @param {"system"|"light"|"dark"} choice */
export function choose(choice) {
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  document.cookie = `switchboard_theme=${choice}; path=/; max-age=${choice === "system" ? 0 : YEAR}; samesite=strict`;
  for (const name of document.querySelectorAll("[data-theme-name]")) name.textContent = choice;
}

addEventListener("click", (event) => {
  if (event.target.closest?.("[data-action='theme']")) nextTheme();
});
