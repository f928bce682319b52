// The same request for other programs: our command, curl, Rust, and the configuration of a host.

import { announce, h } from "./dom.js";
import { state } from "./state.js";

const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const PREFIX = "io.modelcontextprotocol/";

function words(args) {
  return Object.entries(args ?? {}).map(([name, value]) => (typeof value === "string" && !value.startsWith("@")
    ? quote(`${name}=${value}`) : quote(`${name}:=${JSON.stringify(value)}`)));
}

function command(verb, rest) {
  const { target } = state.info;
  const era = state.session === "auto" ? [] : ["--era", state.session];
  if (target.kind === "url") return ["duplexer", verb, ...era, quote(target.url), ...rest].join(" ");
  return ["duplexer", verb, ...era, ...rest, "--", ...target.words.map(quote)].join(" ");
}

export function cli(item) {
  const { params } = item;
  if (item.method === "tools/call") return command("call", [quote(params.name), ...words(params.arguments)]);
  if (item.method === "prompts/get") return command("prompt", [quote(params.name), ...words(params.arguments)]);
  return command("read", [quote(params.uri)]);
}

function curl({ method, params }) {
  const { target } = state.info;
  if (target.kind !== "url") return "# curl needs a server at a URL";
  const version = [...state.sessions.values()].find((session) => session.era === "envelope")?.version ?? "2026-07-28";
  const meta = { [`${PREFIX}protocolVersion`]: version, [`${PREFIX}clientInfo`]: { name: "curl", version: "1" }, [`${PREFIX}clientCapabilities`]: {} };
  const body = { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } };
  return [`curl -s ${quote(target.url)}`, "-H 'Content-Type: application/json'", "-H 'Accept: application/json, text/event-stream'",
    `-H 'MCP-Protocol-Version: ${version}'`, `-H 'Mcp-Method: ${method}'`, `-H ${quote(`Mcp-Name: ${params.name ?? params.uri}`)}`,
    `-d ${quote(JSON.stringify(body))}`].join(" \\\n  ");
}

function rust({ method, params }) {
  const { target } = state.info;
  const open = target.kind === "url" ? JSON.stringify(target.url)
    : `ChildCommand::new(${JSON.stringify(target.words?.[0] ?? "")}).args(${JSON.stringify(target.words?.slice(1) ?? [])})`;
  const name = JSON.stringify(params.name ?? params.uri);
  const pairs = Object.entries(params.arguments ?? {}).map(([key, value]) => `(${JSON.stringify(key)}, ${JSON.stringify(String(value))})`);
  const call = {
    "tools/call": `client.call_tool(${name}, json!(${JSON.stringify(params.arguments ?? {})})).await?`,
    "prompts/get": `client.get_prompt(${name}, [${pairs.join(", ")}]).await?`,
    "resources/read": `client.read_resource(${name}).await?`,
  }[method];
  return `use duplexer::client::prelude::*;\nuse serde_json::json;\n\nlet client = Client::open(${open}).await?;\nlet result = ${call};`;
}

function host() {
  const { target } = state.info;
  const name = state.sessions.get(state.session)?.server?.name ?? "server";
  const entry = target.kind === "url" ? { type: "http", url: target.url }
    : { command: target.words?.[0], args: target.words?.slice(1) };
  return JSON.stringify({ mcpServers: { [name]: entry } }, null, 2);
}

const FORMS = [["Command line", cli], ["curl", curl], ["Rust", rust], ["Host configuration", host]];

// A menu that shows and copies a request. `current` returns {method, params}, or null.
export function copyMenu(current) {
  const text = h("pre.code", { tabindex: "0", "aria-label": "Text to copy", hidden: true });
  const buttons = FORMS.map(([label, make]) => h("button.small", { type: "button", "data-copy": label, onclick: async () => {
    const item = current();
    if (!item) return;
    text.textContent = make(item);
    text.hidden = false;
    try {
      await navigator.clipboard.writeText(text.textContent);
      announce(`${label} copied`);
    } catch {
      announce("Copy the text that is shown");
    }
  } }, label));
  return h("details.copy", null, h("summary", null, "Copy as"), h("div.buttons", null, buttons), text);
}
