// The wire as a sequence diagram: time runs down, one arrow for each message. The newest are drawn.

import { bytes, clock, h, svg } from "./dom.js";

const DRAWN = 80;
const STEP = 34;
const LEFT = 90;
const RIGHT = 330;
const WIDTH = 420;

export function sequence(entries, label, onpick) {
  const shown = entries.slice(-DRAWN);
  const height = shown.length * STEP + 60;
  const line = (x) => svg("line", { class: "life", x1: x, y1: 34, x2: x, y2: height - 6 });
  const actor = (x, name) => [svg("rect", { class: "actor", x: x - 42, y: 6, width: 84, height: 26, rx: 6 }), svg("text", { class: "actor-name", x, y: 24 }, name)];
  const arrows = shown.map((entry, index) => {
    const y = 62 + index * STEP;
    const [from, to] = entry.from === "client" ? [LEFT, RIGHT] : [RIGHT, LEFT];
    const tip = to > from ? -7 : 7;
    const text = label(entry);
    const pick = () => onpick(entry);
    return svg("g", { class: `msg k-${entry.kind} ${entry.from}`, tabindex: "0", role: "button", onclick: pick,
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(); } } },
    svg("title", null, `from the ${entry.from}`),
    svg("rect", { class: "hit", x: 0, y: y - 22, width: WIDTH, height: STEP - 2 }),
    svg("line", { class: "arrow-line", x1: from, y1: y, x2: to, y2: y }),
    svg("path", { class: "tip", d: `M${to} ${y}l${tip} -4v8z` }),
    svg("text", { class: "msg-name", x: (LEFT + RIGHT) / 2, y: y - 6 }, text.length > 36 ? `${text.slice(0, 35)}…` : text),
    svg("text", { class: "msg-time", x: 6, y: y + 4 }, clock(entry.at)),
    svg("text", { class: "msg-size", x: WIDTH - 4, y: y + 4 }, bytes(entry.size)));
  });
  return [
    entries.length > shown.length ? h("p.note.pad", null, `The newest ${shown.length} of ${entries.length} messages.`) : null,
    svg("svg", { class: "sequence", viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, role: "group", "aria-label": "Messages between client and server" },
      line(LEFT), line(RIGHT), actor(LEFT, "Client"), actor(RIGHT, "Server"), arrows),
  ];
}
