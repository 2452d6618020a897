/** The block of a turn whose first text came just now, made from the page's <template data-turn>. */

/**
 * @param {{seq: number, at: string | number, group: string, agent?: string}} event
 * @returns {HTMLElement}
 */
export const newTurn = ({ seq, at, group, agent }) => {
  const template = document.querySelector("template[data-turn]");
  const block = template.content.firstElementChild.cloneNode(true);
  Object.assign(block.dataset, { seq, group });
  block.id = `e${seq}`;
  const link = block.querySelector(".seq");
  link.textContent = seq;
  link.href = `#e${seq}`;
  link.setAttribute("aria-label", `Link to event ${seq}`);
  setTime(block.querySelector(":scope > time"), at);
  if (agent) setVoice(block, agent);
  return block;
};

const setTime = (time, at) => {
  const date = new Date(typeof at === "number" ? at / 1000 : at); // a number is µs UTC
  if (Number.isNaN(date.valueOf())) return;
  time.dateTime = date.toISOString();
  time.textContent = date.toLocaleTimeString("en-GB");
};

const setVoice = (block, agent) => {
  block.dataset.voice = agent;
  block.querySelector(".name").textContent = agent;
  const mark = markOf(agent);
  if (!mark) return;
  block.querySelector(".mark")?.replaceWith(mark);
  if (mark.dataset.hue) block.querySelector(".name").dataset.hue = mark.dataset.hue;
};

const markOf = (agent) => {
  const voice = document.querySelector(`[data-voice="${CSS.escape(agent)}"] .mark`);
  if (!voice) return null;
  const mark = voice.cloneNode(true);
  mark.removeAttribute("data-size");
  return mark;
};
