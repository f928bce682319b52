// The page's half of MCP Apps: window.mcpApp. It needs nothing and works in every host.
//
//   mcpApp.on("input", (args) => ...)      the arguments of the tool, once
//   mcpApp.on("result", (result) => ...)   its result: content, structuredContent
//   mcpApp.on("cancelled", (reason) => ..) or that there is none
//   mcpApp.on("context", (context) => ...) theme, size, locale, as they change
//   await mcpApp.callTool("name", {...})   a tool of the server
//   await mcpApp.saveFile("a.csv", text, "text/csv")   a file, if the host can and the user agrees
(() => {
  "use strict";
  const listeners = new Map();
  const pending = new Map();
  const last = new Map();
  let ids = 0;
  const post = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const notify = (method, params = {}) => post({ method, params });
  const request = (method, params = {}) => new Promise((resolve, reject) => {
    const id = ++ids;
    pending.set(id, { resolve, reject });
    post({ id, method, params });
  });
  const emit = (name, value) => {
    last.set(name, value);
    for (const listener of listeners.get(name) ?? []) listener(value);
  };
  const context = {};
  const update = (change) => {
    Object.assign(context, change);
    if (context.theme) {
      document.documentElement.dataset.theme = context.theme;
      document.documentElement.style.colorScheme = context.theme;
    }
    for (const [name, value] of Object.entries(context.styles?.variables ?? {})) {
      if (name.startsWith("--")) document.documentElement.style.setProperty(name, value);
    }
    emit("context", context);
  };
  const received = {
    "ui/notifications/tool-input": (params) => emit("input", params?.arguments ?? {}),
    "ui/notifications/tool-input-partial": (params) => emit("partial", params?.arguments ?? {}),
    "ui/notifications/tool-result": (params) => emit("result", params),
    "ui/notifications/tool-cancelled": (params) => emit("cancelled", params?.reason),
    "ui/notifications/host-context-changed": (params) => update(params ?? {}),
  };
  addEventListener("message", ({ source, data }) => {
    if (source !== parent || data?.jsonrpc !== "2.0") return;
    if (data.method === undefined) {
      const call = pending.get(data.id);
      pending.delete(data.id);
      if (data.error) call?.reject(Object.assign(new Error(data.error.message), { code: data.error.code }));
      else call?.resolve(data.result);
    } else if (data.id === undefined) received[data.method]?.(data.params);
    else if (data.method === "ui/resource-teardown" || data.method === "ping") {
      if (data.method !== "ping") emit("teardown", data.params?.reason);
      post({ id: data.id, result: {} });
    } else post({ id: data.id, error: { code: -32601, message: "Method not found" } });
  });
  let shown = "";
  const report = () => {
    const { width, height } = document.documentElement.getBoundingClientRect();
    const size = `${Math.ceil(width)} ${Math.ceil(height)}`;
    if (size === shown) return;
    shown = size;
    notify("ui/notifications/size-changed", { width: Math.ceil(width), height: Math.ceil(height) });
  };
  const start = async () => {
    const opened = await request("ui/initialize", { protocolVersion: "2026-01-26", appInfo: { name: document.title || "view", version: "1" }, appCapabilities: {} });
    update(opened.hostContext ?? {});
    notify("ui/notifications/initialized");
    new ResizeObserver(report).observe(document.documentElement);
    report();
    return opened;
  };
  window.mcpApp = {
    context,
    on(name, listener) {
      listeners.set(name, [...(listeners.get(name) ?? []), listener]);
      if (last.has(name)) listener(last.get(name));
    },
    callTool: (name, args = {}) => request("tools/call", { name, arguments: args }),
    readResource: (uri) => request("resources/read", { uri }),
    saveFile: (name, text, mimeType = "text/plain") => request("ui/download-file", {
      contents: [{ type: "resource", resource: { uri: `file:///${encodeURIComponent(name)}`, mimeType, text } }],
    }),
    createMessage: (params) => request("sampling/createMessage", params),
    openLink: (url) => request("ui/open-link", { url }),
    sendMessage: (text) => request("ui/message", { role: "user", content: [{ type: "text", text }] }),
    updateModelContext: (params) => request("ui/update-model-context", params),
    log: (data, level = "info") => notify("notifications/message", { level, data }),
    ready: new Promise((resolve, reject) => {
      const begin = () => start().then(resolve, reject);
      if (document.readyState === "loading") addEventListener("DOMContentLoaded", begin);
      else begin();
    }),
  };
})();
