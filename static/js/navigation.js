/** The navigation where it is wider than the screen: the page one is on stands in view. */
const here = document.querySelector(".nav > [aria-current]");

if (here) {
  const nav = here.parentElement;
  nav.scrollLeft += here.getBoundingClientRect().left - (nav.clientWidth - here.offsetWidth) / 2;
}
