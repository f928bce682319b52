// Log messages with a level filter, and changes of what is subscribed to.

import { post } from "./api.js";
import { clean, clock, h, replace } from "./dom.js";
import { emit, on, state } from "./state.js";

const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const ROWS = 150;

export function logPanel() {
  const rows = h("div.log", { role: "log", "aria-label": "Log messages", tabindex: "0" });
  const show = h("select", { "aria-label": "Show from this level on", onchange: () => draw() }, LEVELS.map((level) => h("option", { value: level }, `show ${level}`)));
  const ask = h("select", { "aria-label": "Level that the server sends", onchange: async () => {
    try {
      await post("level", { session: state.session, level: ask.value });
    } catch (error) {
      emit("toast", error.message);
    }
  } }, LEVELS.map((level) => h("option", { value: level }, `ask for ${level}`)));
  ask.value = "info";
  const clear = h("button.small", { type: "button", onclick: () => { state.logs.length = 0; draw(); } }, "Clear");
  const panel = h("div.panel.fill", null, h("div.bar-row", null, show, ask, clear), rows);

  function draw() {
    if (panel.hidden) return;
    const least = LEVELS.indexOf(show.value);
    const chosen = state.logs.filter((entry) => entry.level === "stderr" || LEVELS.indexOf(entry.level) >= least);
    const hidden = chosen.length - ROWS;
    replace(rows, chosen.length ? null : h("p.empty", null, "No log messages."),
      hidden > 0 ? h("p.note", null, `${hidden} earlier messages are not shown.`) : null,
      chosen.slice(-ROWS).map((entry) => h(`p.entry.l-${LEVELS.includes(entry.level) ? entry.level : "stderr"}`, null,
        h("span.time", null, entry.at === undefined ? "" : clock(entry.at)), h("span.level", null, entry.level),
        entry.logger ? h("span.logger", null, clean(entry.logger, 60)) : null,
        h("span.data", null, clean(typeof entry.data === "string" ? entry.data : JSON.stringify(entry.data), 2000)))));
    rows.scrollTop = rows.scrollHeight;
  }

  on("logs", draw);
  return { panel, draw };
}

export function changePanel() {
  const rows = h("div.log", { role: "log", "aria-label": "Changes", tabindex: "0" });
  const panel = h("div.panel.fill", null, h("p.note.pad", null, "Lists are watched while the session is open; watch a resource from its page."), rows);

  function draw() {
    if (panel.hidden) return;
    replace(rows, state.changes.length ? null : h("p.empty", null, "Nothing has changed."),
      state.changes.slice(-ROWS).reverse().map((entry) => h("p.entry", null, h("span.time", null, clock(entry.at)),
        h("span.level", null, entry.what), entry.uri ? h("span.data", null, clean(entry.uri, 300)) : null)));
  }

  on("change", draw);
  return { panel, draw };
}
