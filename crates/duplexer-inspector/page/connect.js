// Sessions with the server, and the bar that shows them.

import { list, post } from "./api.js";
import { announce, clean, h, replace } from "./dom.js";
import { emit, on, state } from "./state.js";

const LISTS = [["tools", "tools/list", "tools", "tools"], ["resources", "resources/list", "resources", "resources"],
  ["templates", "resources/templates/list", "resourceTemplates", "resources"], ["prompts", "prompts/list", "prompts", "prompts"]];

// Opens a session, or returns the open one.
export async function connect(session) {
  const about = await post("session", { session });
  state.sessions.set(session, about);
  emit("session-open", about);
  return about;
}

// Requests lists: all, or those of one capability.
export async function load(only) {
  const capabilities = state.sessions.get(state.session)?.capabilities ?? {};
  const session = state.session;
  await Promise.all(LISTS.map(async ([name, method, member, capability]) => {
    if (only && only !== capability) return;
    let items = [];
    try {
      if (capabilities[capability]) items = await list(method, member, session);
    } catch (error) {
      if (name !== "templates") emit("toast", `${name}: ${error.message}`);
    }
    if (session !== state.session) return;
    state.lists[name] = items;
    emit("list", name);
  }));
}

export async function begin() {
  emit("connecting");
  try {
    const about = await connect(state.session);
    document.title = `${clean(about.server?.name ?? "Inspector", 60)} · Inspector`;
    emit("connected", about);
    await load();
    announce("Connected");
  } catch (error) {
    emit("failed", error);
  }
}

function target() {
  const at = state.info?.target ?? {};
  return at.kind === "url" ? at.url : at.words?.join(" ") ?? "";
}

export function sessionBar() {
  const dot = h("span.dot.busy", { "aria-hidden": "true" });
  const about = h("span.about-session", { role: "status" }, "connecting…");
  const era = h("select", { id: "era", "aria-label": "Era of the session", onchange: () => {
    state.session = era.value;
    begin();
  } }, [["auto", "Era: auto"], ["handshake", "Handshake era"], ["envelope", "Envelope era"]].map(([value, text]) => h("option", { value }, text)));
  const info = h("button.small", { type: "button", id: "about", onclick: () => emit("about") }, "About");
  const again = h("button.small", { type: "button", id: "reconnect", onclick: async () => {
    await post("close", { session: state.session }).catch(() => {});
    begin();
  } }, "Reconnect");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const theme = h("button.small", { type: "button", id: "theme", "aria-label": "Light or dark", onclick: () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    emit("theme", isDark() ? "dark" : "light");
  } }, "◐");
  dark.addEventListener("change", () => emit("theme", isDark() ? "dark" : "light"));
  const show = (kind, ...text) => {
    dot.className = `dot ${kind}`;
    replace(about, text);
  };
  on("connecting", () => show("busy", "connecting…"));
  on("connected", (session) => show("good", h("strong", null, clean(session.server?.title ?? session.server?.name ?? "server", 60)), " ",
    h("span.muted", null, clean(session.server?.version, 30)), " ", h("span.badge", null, `${session.era} ${session.version}`)));
  on("failed", (error) => show("bad", clean(error.message, 300)));
  on("offline", (error) => show("bad", error.message));
  on("online", () => begin());
  replace(document.getElementById("session"), h("span.target", { title: target() }, clean(target(), 120)), dot, about, era, info, again, theme);
}
