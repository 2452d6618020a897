/**
 * Tells what is wrong with the cards of a page after hostile words came into it: given a selector, `{found, cards}`.
 *
 * Clips of elements inside a card count. The card's own does not, since what it cuts off cannot be read, but for the ink
 * of stacked marks, which no box tells of.
 */
(cards) => {
  const found = [];
  const SLACK = 1;  // px
  const HEAP = /\p{M}{8}/u;  // one letter to the browser, which cannot break it: where ink is clipped, it may be cut off
  const SCRIPT = /^\s*(javascript|data|vbscript):/i;
  const WORDS = /^(title|alt|value|placeholder|aria-.*|data-(?!.*(src|href|url|action)$).*)$/;  // where no address is
  const ALL = { left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity };
  const both = (a, b) => ({ left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom) });
  const isIn = (a, b) => a.left >= b.left - SLACK && a.right <= b.right + SLACK
    && a.top >= b.top - SLACK && a.bottom <= b.bottom + SLACK;
  const tag = (one) => one.cloneNode(false).outerHTML.slice(0, 120);
  const say = (what, card) => found.push(`${what} in ${card.dataset.kind ?? card.className} ` +
    `${card.dataset.seq ?? ""}: ${card.textContent.slice(0, 160)}`);

  const isSpilt = (rects, clip, box) => [...rects].find((rect) => {
    const seen = both(rect, clip);
    return seen.right > seen.left && seen.bottom > seen.top && !isIn(seen, box);
  });

  /** Blanks at the end of a line may hang over the edge: only words count. */
  function ofWords(text, clip, box) {
    const range = document.createRange();
    range.selectNodeContents(text);
    if (!isSpilt(range.getClientRects(), clip, box)) return undefined;
    for (const { index, 0: word } of text.data.matchAll(/\S+/g)) {
      if (clip !== ALL && HEAP.test(word)) continue;
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      const rect = isSpilt(range.getClientRects(), clip, box);
      if (rect) return rect;
    }
    return undefined;
  }

  function look(node, clip, box, card) {
    const isText = node.nodeType === Node.TEXT_NODE;
    if (!isText && node.nodeType !== Node.ELEMENT_NODE) return;
    if (isText && clip === ALL && /\p{M}{4}/u.test(node.data)) say("ink is not clipped", card);
    const style = isText ? null : getComputedStyle(node);
    if (style?.display === "none" || style?.visibility === "hidden") return;
    const isBox = style && style.display !== "inline" && style.display !== "contents";
    const rect = isText ? ofWords(node, clip, box) : isBox && isSpilt(node.getClientRects(), clip, box);
    if (rect)
      return say(`<${node.localName ?? "text"}> at ${Object.values(both(rect, ALL))} is outside of ${Object.values(box)}, ` +
        `in ${tag(node.parentElement)}: "${node.textContent.slice(0, 60)}"`, card);
    const clips = isBox && (style.overflowX !== "visible" || style.clipPath !== "none");
    const inner = clips ? both(clip, node.getBoundingClientRect()) : clip;
    for (const child of node.childNodes) look(child, inner, box, card);
  }

  for (const stretch of document.querySelectorAll(".rows")) stretch.style.contentVisibility = "visible";
  const all = document.querySelectorAll(cards);
  for (const card of all) {
    const { left, top, right, bottom } = card.getBoundingClientRect();
    const isInkClipped = ["clip", "hidden"].includes(getComputedStyle(card).overflowX);
    const clip = isInkClipped ? { ...ALL } : ALL;
    if (right > left) for (const child of card.childNodes) look(child, clip, { left, top, right, bottom }, card);
    for (const one of card.querySelectorAll("*"))
      for (const { name, value } of one.attributes)
        if (name.startsWith("on") || name === "style" || SCRIPT.test(value) && !WORDS.test(name))
          say(`<${one.localName} ${name}=${value}>`, card);
  }
  const wide = document.scrollingElement.scrollWidth - innerWidth;
  const isWide = (one) => one.getBoundingClientRect().right > innerWidth;
  const culprits = () => [...document.querySelectorAll("main *")].filter(isWide).slice(0, 3).map(tag);
  if (wide > 0) found.push(`${location} is ${wide} px too wide: ${culprits()}`);
  const scrolls = innerWidth < 768 ? ".transcript" : ".transcript:not(.lanes)";  // wide lanes do, on purpose
  for (const one of document.querySelectorAll(`${scrolls}, .panel, .topbar, .conversation-head, main`))
    if (one.scrollWidth > one.clientWidth + SLACK) found.push(`${one.className || "main"} scrolls sideways`);
  const strange = document.querySelectorAll("iframe, object, embed, base, portal, math, style, meta[http-equiv], img, video, audio");
  for (const one of strange) found.push(`<${one.localName}> in the page`);
  return { found, cards: all.length };
}
