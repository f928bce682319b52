// The page: what the server offers on the left, one item in the middle, what happens on the right.

import { get, readEvents, readToken, setToken } from "./api.js";
import { begin, load, sessionBar } from "./connect.js";
import { repeat, show, welcome } from "./detail.js";
import { listen } from "./dialogs.js";
import { announce, clean, h, replace, Tabs } from "./dom.js";
import { latencyPanel } from "./latency.js";
import { VirtualList } from "./list.js";
import { changePanel, logPanel } from "./logs.js";
import { emit, on, state } from "./state.js";
import { taskPanel } from "./tasks.js";
import { wirePanel } from "./wire.js";

const KINDS = [["tools", "Tools"], ["resources", "Resources"], ["templates", "Templates"], ["prompts", "Prompts"]];
const nameOf = (item) => String(item.name ?? item.uri ?? item.uriTemplate ?? "");

function browse() {
  let kind = "tools";
  const search = h("input", { type: "search", id: "search", placeholder: "Search ( / )", "aria-label": "Search the list", oninput: () => refresh(),
    onkeydown: (event) => {
      if (event.key === "ArrowDown") {
        event.preventDefault();
        list.box.focus();
        list.select(Math.max(0, list.index));
      } else if (event.key === "Enter" && list.items.length) list.select(Math.max(0, list.index), true);
    } });
  const list = new VirtualList({
    label: "What the server offers", rowHeight: 54, empty: "Nothing here.",
    render: (item) => [h("span.r-name", null, clean(nameOf(item), 120), item._meta?.ui?.resourceUri ? h("span.badge", null, "view") : null),
      h("span.r-about", null, clean(item.description ?? item.title ?? item.uri ?? item.uriTemplate ?? "", 160))],
    onselect: (item) => show(kind, item),
    onopen: () => place("detail"),
  });
  const found = h("p.found", { role: "status" });
  const panel = h("div.fill", null, search, found, list.element);
  const tabs = new Tabs("Kinds", KINDS.map(([id, label]) => ({ id, label })), (id) => {
    kind = id;
    search.value = "";
    refresh();
  });
  panel.id = "kinds-panel";
  panel.setAttribute("role", "tabpanel");
  panel.setAttribute("aria-label", "List");
  for (const tab of tabs.tabs) tab.button.setAttribute("aria-controls", panel.id);
  replace(document.getElementById("browse"), tabs.bar, panel);

  function refresh() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const all = state.lists[kind];
    const items = words.length ? all.filter((item) => {
      const text = `${nameOf(item)} ${item.title ?? ""} ${item.description ?? ""} ${item.uri ?? ""}`.toLowerCase();
      return words.every((word) => text.includes(word));
    }) : all;
    found.textContent = words.length ? `${items.length} of ${all.length}` : "";
    list.set(items);
    for (const [id] of KINDS) tabs.count(id, state.lists[id].length);
  }

  on("list", refresh);
  on("open-resource", (uri) => {
    tabs.select("resources");
    const index = list.items.findIndex((item) => item.uri === uri);
    if (index >= 0) list.select(index, true);
    else show("resources", { uri, name: uri });
  });
  refresh();
  return { search };
}

function dock() {
  const parts = { wire: wirePanel(), logs: logPanel(), changes: changePanel(), tasks: taskPanel(), latency: latencyPanel(repeat) };
  const labels = { wire: "Wire", logs: "Logs", changes: "Changes", tasks: "Tasks", latency: "Latency" };
  const tabs = new Tabs("What happens", Object.entries(labels).map(([id, label]) => ({ id, label, panel: parts[id].panel })), (id) => parts[id].draw());
  replace(document.getElementById("dock"), tabs.bar, Object.values(parts).map((part) => part.panel));
  let pending = null;
  const count = () => {
    pending ??= requestAnimationFrame(() => {
      pending = null;
      tabs.count("wire", state.wire.length);
      tabs.count("logs", state.logs.length);
      tabs.count("changes", state.changes.length);
      tabs.count("tasks", state.tasks.size);
    });
  };
  for (const name of ["wire", "logs", "change", "tasks"]) on(name, count);
  parts.wire.draw();
}

// On narrow screens one part is shown at a time.
function place(name) {
  document.body.dataset.place = name;
  for (const button of document.querySelectorAll("#places button")) button.setAttribute("aria-current", String(button.dataset.place === name));
}

function places() {
  replace(document.getElementById("places"), [["browse", "Browse"], ["detail", "Item"], ["dock", "Wire and logs"]].map(([name, label]) => h("button", { type: "button", "data-place": name, onclick: () => place(name) }, label)));
  place("browse");
}

function toasts() {
  const box = h("div.toasts", { role: "alert" });
  document.body.append(box);
  on("toast", (text) => {
    const toast = h("p.toast", null, clean(text, 400));
    box.append(toast);
    while (box.childElementCount > 3) box.firstChild.remove();
    setTimeout(() => toast.remove(), 8000);
  });
}

function askForToken() {
  const input = h("input", { type: "password", id: "token", autocomplete: "off" });
  replace(document.getElementById("main"), h("form.token", { onsubmit: (event) => {
    event.preventDefault();
    setToken(input.value.trim().replace(/^.*token=/, ""));
    location.reload();
  } }, h("h2", null, "Which inspector is this?"), h("p", null, "Each start has a token, which is part of the address that the program has printed. Open that address, or paste it here."),
  h("label", { for: "token" }, "Address or token"), input, h("button.primary", { type: "submit" }, "Open")));
  input.focus();
}

function keys(search) {
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, dialog");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      place("browse");
      search.focus();
    }
  });
}

async function start() {
  if (!readToken()) return askForToken();
  try {
    state.info = await get("info");
  } catch (error) {
    if (error.status === 401) return askForToken();
    return replace(document.getElementById("main"), h("p.fault", { role: "alert" }, error.message));
  }
  toasts();
  sessionBar();
  const { search } = browse();
  dock();
  places();
  keys(search);
  listen();
  welcome();
  on("about", () => {
    welcome();
    place("detail");
  });
  on("connected", () => { if (!document.querySelector("#detail .title")) welcome(); });
  on("failed", (error) => {
    replace(document.getElementById("detail"), h("div.welcome", null, h("h2", null, "No session"), h("p.fault", { role: "alert" }, clean(error.message, 2000)),
      h("button.primary", { type: "button", onclick: () => begin() }, "Try again")));
  });
  on("change", (event) => { if (event.what !== "resource" && event.session === state.session) load(event.what); });
  on("unwatched", (event) => { if (event.uri) emit("toast", `${event.uri}: ${event.reason}`); });
  on("unauthorized", askForToken);
  readEvents();
  await begin();
  document.body.dataset.ready = "true";
  announce("Ready");
  return undefined;
}

start();
