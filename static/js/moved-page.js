/** A conversation whose id was erased has another address: its pages go there, any other page is loaded again. */

/**
 * @param {string} from  the id that it had
 * @param {string} to  the id that it has now
 */
export function goTo(from, to) {
  const segments = location.pathname.split("/");
  const at = segments.indexOf("conversations") + 1;
  const there = decodeURIComponent(segments[at] ?? "");
  if (at === 0 || (there !== from && !there.startsWith("~"))) return location.reload();
  segments[at] = encodeURIComponent(to);
  return location.replace(segments.join("/") + location.search + location.hash);
}
