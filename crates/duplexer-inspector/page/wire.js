// Every message: a list, one message in full with its headers, and a sequence diagram.

import { getText, request } from "./api.js";
import { bytes, clean, clock, download, duration, h, replace, Tabs } from "./dom.js";
import { VirtualList } from "./list.js";
import { sequence } from "./sequence.js";
import { emit, on, state } from "./state.js";
import { longText, tree } from "./tree.js";

export const label = (entry) => {
  if (entry.kind === "result") return `result of ${clean(entry.method ?? `request ${JSON.stringify(entry.id)}`, 60)}`;
  if (entry.kind === "error") return `error of ${clean(entry.method ?? "a message", 60)}`;
  return clean(entry.method ?? entry.kind, 80);
};

function row(entry) {
  const arrow = entry.from === "client" ? "→" : "←";
  return [h(`span.arrow.${entry.from}`, { "aria-label": `from the ${entry.from}` }, arrow), h(`span.w-name.k-${entry.kind}`, null, label(entry), entry.subject && entry.kind !== "result" ? h("span.subject", null, ` ${clean(entry.subject, 60)}`) : null),
    h("span.w-num", null, entry.took === undefined ? "" : duration(entry.took)), h("span.w-num", null, bytes(entry.size))];
}

function headers(title, list) {
  return h("div", null, h("h4", null, title), h("dl.headers", null, (list ?? []).map(([name, value]) => [h("dt", null, clean(name, 80)), h("dd", null, clean(value, 500))])));
}

async function whole(entry) {
  return entry.cut ? getText(`frame?n=${entry.n}`) : entry.text;
}

function pretty(text) {
  try {
    const value = JSON.parse(text);
    return text.length < 200000 ? tree(value) : longText(text, { label: "Message", className: "json" });
  } catch {
    return longText(text, { label: "Message", className: "json" });
  }
}

export function wirePanel() {
  const about = h("div.w-detail", { tabindex: "0", "aria-label": "Selected message" });
  const filter = h("input", { type: "search", placeholder: "Filter messages", "aria-label": "Filter messages", oninput: () => refresh() });
  const own = h("input", { type: "checkbox", onchange: () => refresh() });
  const list = new VirtualList({ label: "Messages", rowHeight: 28, render: row, onselect: (entry) => show(entry), empty: "No message has passed yet.", stamp: (entry) => `${entry.method} ${entry.took}` });
  const diagram = h("div.diagram", { tabindex: "0", "aria-label": "Sequence diagram" });
  const dropped = h("p.note.pad", { hidden: true });
  const listPanel = h("div.fill", null, list.element, about);
  const tabs = new Tabs("Forms of the wire", [
    { id: "list", label: "Messages", panel: listPanel },
    { id: "sequence", label: "Sequence", panel: diagram },
  ], () => refresh());
  const save = h("button.small", { type: "button", onclick: async () => {
    try {
      download("transcript.jsonl", "application/jsonl", [await getText(`transcript?session=${state.session}`)]);
    } catch (error) {
      emit("toast", error.message);
    }
  } }, "Export");
  const clear = h("button.small", { type: "button", onclick: () => { state.wire.length = 0; state.dropped = 0; replace(about); refresh(); } }, "Clear");
  const panel = h("div.panel.fill", null, h("div.bar-row", null, filter, h("label.check", null, own, " this session"), save, clear), tabs.bar, dropped, listPanel, diagram);
  let current = null;
  let follow = true;
  list.box.addEventListener("scroll", () => { follow = list.box.scrollTop + list.box.clientHeight > list.box.scrollHeight - 40; });

  async function show(entry) {
    current = entry;
    follow = false;
    const facts = [["era", entry.era], ["session", entry.session], ["time", clock(entry.at)], ["size", bytes(entry.size)], ["answered in", entry.took === undefined ? "" : duration(entry.took)],
      ["id", entry.id === undefined || entry.id === null ? "" : JSON.stringify(entry.id)], ["HTTP", entry.http ? `${entry.http.verb} ${entry.http.status}` : ""]].filter(([, value]) => value !== "");
    const body = h("div", null, "…");
    replace(about, h("h3", null, label(entry)), h("dl.facts", null, facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, clean(value, 80))))), body,
      entry.http ? h("details.http", { open: true }, h("summary", null, "Headers"), headers("Request", entry.http.request), headers("Response", entry.http.response)) : null);
    try {
      replace(body, pretty(await whole(entry)));
    } catch (error) {
      replace(body, h("p.fault", null, error.message), longText(entry.text));
    }
  }

  function chosen() {
    const text = filter.value.toLowerCase();
    return state.wire.filter((entry) => (!own.checked || entry.session === state.session)
      && (!text || label(entry).toLowerCase().includes(text) || entry.text.toLowerCase().includes(text)));
  }

  function refresh() {
    if (panel.hidden) return;
    const entries = chosen();
    dropped.textContent = `${state.dropped} earlier messages are not kept.`;
    dropped.hidden = state.dropped === 0;
    if (tabs.selected === "sequence") {
      replace(diagram, sequence(entries, label, (entry) => {
        tabs.select("list", true);
        refresh();
        list.select(chosen().indexOf(entry));
      }));
      diagram.scrollTop = diagram.scrollHeight;
      return;
    }
    list.set(entries, true);
    list.index = current ? entries.indexOf(current) : -1;
    if (follow) list.scrollToEnd();
    list.draw();
  }

  let pending = null;
  const later = () => { pending ??= requestAnimationFrame(() => { pending = null; refresh(); }); };
  on("wire", later);
  on("lost", later);
  on("wire-detail", (entry) => { if (entry === current && listPanel.isConnected) show(entry); });
  return { panel, draw: refresh, ping: () => request("ping", {}) };
}
