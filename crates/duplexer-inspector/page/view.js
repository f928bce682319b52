// The host of views (MCP Apps): a frame of another origin around the page of the server, and the messages with it.

import { post, request } from "./api.js";
import { announce, clean, h, replace } from "./dom.js";
import { askModel, confirmFiles, confirmLink } from "./dialogs.js";
import { filesOf, MAX_FILES, save } from "./download.js";
import { keep, on, state } from "./state.js";
import { jsonText } from "./tree.js";

const VERSION = "2026-01-26";
const MIME = "text/html;profile=mcp-app";
const MAX_HEIGHT = 1200;
const MAX_LOG = 200;
const MAX_PENDING = 64;
const TEARDOWN = 1000;

// What a tool says about its view: {uri, appOnly}, or null.
export function viewOf(tool) {
  const ui = tool?._meta?.ui;
  const uri = typeof ui?.resourceUri === "string" ? ui.resourceUri : tool?._meta?.["ui/resourceUri"];
  const seen = Array.isArray(ui?.visibility) ? ui.visibility : ["model", "app"];
  if (typeof uri !== "string" && seen.includes("model")) return null;
  return { uri: typeof uri === "string" && uri.startsWith("ui://") ? uri : null, appOnly: !seen.includes("model") };
}

const callableByView = (tool) => {
  const seen = tool?._meta?.ui?.visibility;
  return !Array.isArray(seen) || seen.includes("app");
};

const theme = () => document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

export function openView({ tool, uri, input, place }) {
  const events = [];
  const log = h("div.view-log", { role: "log", "aria-label": "Messages of the view", tabindex: "0" });
  const blocked = h("ul.blocked", { "aria-label": "What was blocked" });
  const policy = h("details", { hidden: true }, h("summary", null, "Policy"));
  const note = h("p.note", null, `Reading ${clean(uri, 120)}…`);
  const box = h("div.view-frame");
  const logBox = h("details.view-messages", null, h("summary", null, "Messages of the view"), log);
  replace(place, h("section.view", { "aria-label": "View" }, h("div.view-head", null, h("h3", null, "View"), note), box, blocked, policy, logBox));
  const view = { frame: null, name: null, ready: false, finished: null, closed: false, pending: new Map(), ids: 0, answering: 0, asking: false, ended: new AbortController() };

  const record = (from, message) => {
    keep(events, { from, message }, MAX_LOG);
    const name = message.method ?? (message.error ? `error ${clean(message.error.message, 120)}` : "result");
    const row = h("details.view-message", { "data-method": message.method ?? "", "data-from": from, ontoggle: () => { if (row.childElementCount < 2) row.append(jsonText(message)); } },
      h("summary", null, h(`span.arrow.${from === "host" ? "client" : "server"}`, null, from === "host" ? "→" : "←"), " ", clean(name, 120)));
    log.append(row);
    while (log.childElementCount > MAX_LOG) log.firstChild.remove();
  };
  const block = (what, why) => {
    if (blocked.childElementCount >= MAX_LOG) return;
    blocked.append(h("li", { "data-blocked": why }, h("strong", null, "Blocked: "), clean(what, 300), " ", h("span.why", null, clean(why, 200))));
    announce(`Blocked: ${clean(what, 100)}`);
  };
  const send = (message) => {
    record("host", message);
    view.frame?.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, state.info.sandbox);
  };
  const notify = (method, params) => send({ method, params });
  const context = () => ({ theme: theme(), displayMode: "inline", availableDisplayModes: ["inline"], platform: "web", locale: navigator.language,
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, toolInfo: { tool },
    containerDimensions: { width: Math.round(box.clientWidth), maxHeight: MAX_HEIGHT } });

  const serverTool = (name) => state.lists.tools.find((one) => one.name === name);
  const forward = async (method, params) => {
    const done = await request(method, params ?? {}).done;
    if (done.ok) return done.result;
    throw new Refused(done.error.code ?? -32603, done.error.message);
  };
  // Questions to the person come one at a time: a view cannot cover the page with dialogs.
  const question = async (ask) => {
    if (view.asking) throw new Refused(-32000, "another question of this view is open");
    view.asking = true;
    try {
      return await ask(view.ended.signal);
    } finally {
      view.asking = false;
    }
  };
  const requests = {
    "ui/initialize": () => ({ protocolVersion: VERSION, hostInfo: { name: "duplexer-inspector", version: state.info.version },
      hostCapabilities: { openLinks: {}, downloadFile: {}, sampling: {}, serverTools: {}, serverResources: {}, logging: {}, updateModelContext: { text: {}, structuredContent: {} }, message: { text: {} }, sandbox: {} },
      hostContext: context() }),
    ping: () => ({}),
    "tools/call": (params) => {
      const called = serverTool(params?.name);
      if (!called || !callableByView(called)) {
        block(`call of the tool ${params?.name}`, called ? "the tool is for the model only" : "the server lists no such tool");
        throw new Refused(-32602, "the view cannot call this tool");
      }
      return forward("tools/call", params);
    },
    "tools/list": () => ({ tools: state.lists.tools.filter(callableByView) }),
    "resources/read": (params) => forward("resources/read", params),
    "resources/list": (params) => forward("resources/list", params),
    "ui/open-link": async (params) => {
      const url = String(params?.url ?? "");
      if (!/^https?:\/\//i.test(url)) {
        block(`link ${url}`, "only web addresses are opened");
        throw new Refused(-32602, "only http and https links are opened");
      }
      if (!await question((signal) => confirmLink(url, signal))) throw new Refused(-32000, "the user refused");
      return {};
    },
    "ui/download-file": async (params) => {
      const files = filesOf(params?.contents);
      if (!files) throw new Refused(-32602, `contents are 1 to ${MAX_FILES} resources or links to resources`);
      if (!await question((signal) => confirmFiles(files, signal))) return { isError: true };
      try {
        await save(files, (from) => forward("resources/read", { uri: from }));
      } catch (error) {
        block("download of a file", error.message);
        return { isError: true };
      }
      return {};
    },
    "sampling/createMessage": async (params) => {
      if (!Array.isArray(params?.messages) || params.messages.length === 0) throw new Refused(-32602, "messages are missing");
      if (params.tools !== undefined) throw new Refused(-32602, "the inspector does not offer sampling with tools");
      const result = await question((signal) => askModel(params, signal));
      if (!result) throw new Refused(-1, "the user refused the request");
      return result;
    },
    "ui/message": () => ({}),
    "ui/update-model-context": () => ({}),
    "ui/request-display-mode": () => ({ mode: "inline" }),
  };
  const notifications = {
    "ui/notifications/initialized": () => {
      if (view.ready) return;
      view.ready = true;
      note.textContent = clean(uri, 200);
      notify("ui/notifications/tool-input", { arguments: input ?? {} });
      deliver();
    },
    "ui/notifications/size-changed": (params) => {
      const height = Number(params?.height);
      if (height > 0) view.frame.style.height = `${Math.min(Math.ceil(height), MAX_HEIGHT)}px`;
    },
    "ui/notifications/request-teardown": () => close(),
    "notifications/message": () => {},
  };

  // The result comes after the input, once.
  function deliver() {
    if (!view.ready || !view.finished || view.delivered) return;
    view.delivered = true;
    const done = view.finished;
    if (done.ok) notify("ui/notifications/tool-result", done.result);
    else notify("ui/notifications/tool-cancelled", { reason: done.error.message });
  }

  async function receive(message) {
    if (message === null || typeof message !== "object") return;
    record("view", message);
    if (message.method === undefined) {
      view.pending.get(message.id)?.(message);
      view.pending.delete(message.id);
      return;
    }
    if (message.id === undefined) return Object.hasOwn(notifications, message.method) ? notifications[message.method](message.params) : undefined;
    const handler = Object.hasOwn(requests, message.method) ? requests[message.method] : null;
    view.answering++;
    try {
      if (!handler) throw new Refused(-32601, "the inspector does not have this method");
      if (view.answering > MAX_PENDING) throw new Refused(-32000, "too many requests at once");
      send({ id: message.id, result: await handler(message.params) });
    } catch (error) {
      send({ id: message.id, error: { code: error.code ?? -32603, message: error.message } });
    } finally {
      view.answering--;
    }
    return undefined;
  }

  function onmessage(event) {
    if (!view.frame || event.source !== view.frame.contentWindow || event.origin !== state.info.sandbox) return;
    const message = event.data;
    if (message?.method === "ui/notifications/sandbox-proxy-ready") {
      view.frame.contentWindow.postMessage({ jsonrpc: "2.0", method: "ui/notifications/sandbox-resource-ready", params: { view: view.name, allow: view.allow } }, state.info.sandbox);
    } else if (message?.method === "sandbox/blocked") block(message.params?.uri, message.params?.directive);
    else receive(message);
  }

  async function open() {
    const done = await request("resources/read", { uri }).done;
    if (view.closed) return;
    const content = done.ok ? (Array.isArray(done.result?.contents) ? done.result.contents : []).find((one) => one?.uri === uri) ?? done.result?.contents?.[0] : null;
    const html = content?.text ?? (typeof content?.blob === "string" ? new TextDecoder().decode(Uint8Array.from(atob(content.blob), (c) => c.charCodeAt(0))) : undefined);
    if (typeof html !== "string") {
      replace(box, h("p.fault", null, done.ok ? "The view has no page." : `The view cannot be read: ${clean(done.error.message, 300)}`));
      return;
    }
    if (String(content.mimeType).replaceAll(" ", "") !== MIME) block(`page of the type ${content.mimeType}`, `a view is ${MIME}; it is shown nevertheless`);
    const listed = state.lists.resources.find((one) => one.uri === uri);
    const ui = content._meta?.ui ?? listed?._meta?.ui ?? {};
    if (ui.csp === undefined) block("nothing yet, but the view declares no csp", "a host may fall back to a policy under which it does not run");
    const csp = ui.csp && typeof ui.csp === "object" ? ui.csp : {};
    const listsOf = (name) => (Array.isArray(csp[name]) ? csp[name].filter((one) => typeof one === "string") : []);
    const made = await post("view", { html, csp: Object.fromEntries(["connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"].map((name) => [name, listsOf(name)])) });
    if (view.closed) return;
    for (const text of made.ignored) block(text, "it is not an origin, so the policy leaves it out");
    const granted = { camera: "camera", microphone: "microphone", geolocation: "geolocation", clipboardWrite: "clipboard-write" };
    view.allow = Object.keys(granted).filter((name) => ui.permissions?.[name]).map((name) => granted[name]).join("; ");
    policy.hidden = false;
    policy.append(h("pre.code", { tabindex: "0" }, made.policy.replaceAll("; ", ";\n")));
    view.name = made.view;
    view.frame = h("iframe", { title: `View ${clean(uri, 100)}`, src: `${state.info.sandbox}/sandbox.html`, sandbox: "allow-scripts allow-same-origin allow-forms", allow: view.allow, referrerpolicy: "no-referrer" });
    if (ui.prefersBorder === false) view.frame.className = "borderless";
    replace(box, view.frame);
  }

  // Tells the view that it goes, waits a moment for its answer, and removes it.
  async function close() {
    if (view.closed) return;
    view.closed = true;
    view.ended.abort();
    if (view.ready) {
      const id = `host-${++view.ids}`;
      const answered = new Promise((resolve) => { view.pending.set(id, resolve); setTimeout(resolve, TEARDOWN); });
      send({ id, method: "ui/resource-teardown", params: { reason: "closed" } });
      await answered;
    }
    removeEventListener("message", onmessage);
    view.frame?.remove();
    view.frame = null;
  }

  addEventListener("message", onmessage);
  on("blocked", (event) => { if (!view.closed && event.view === view.name) block(event.uri, event.directive); });
  on("theme", () => { if (view.ready && !view.closed) notify("ui/notifications/host-context-changed", { theme: theme() }); });
  open().catch((error) => replace(box, h("p.fault", null, error.message)));
  return {
    close,
    finish(done) {
      view.finished = done;
      deliver();
    },
  };
}
