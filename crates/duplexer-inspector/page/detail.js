// The selected tool, resource, template or prompt: what it says about itself, a form, and the outcome.

import { request, post } from "./api.js";
import { compare } from "./compare.js";
import { outcome } from "./content.js";
import { copyMenu } from "./copy.js";
import { announce, clean, h, replace } from "./dom.js";
import { form } from "./form.js";
import { emit, on, state } from "./state.js";
import { jsonText } from "./tree.js";
import { openView, viewOf } from "./view.js";

let last = null; // the last call, for the latency panel
let shown = null; // {kind, item, end}

export function repeat(times) {
  if (!last) return Promise.resolve();
  const one = async () => { for (let left = times; left > 0; left--) await request(last.method, last.params, { session: last.session }).done; };
  return one();
}

export function show(kind, item) {
  shown?.end?.();
  const place = document.getElementById("detail");
  shown = { kind, item, end: null };
  const page = { tools: tool, resources: resource, templates: template, prompts: prompt }[kind](item);
  replace(place, page);
  place.scrollTop = 0;
  emit("shown", { kind, item });
}

export function welcome() {
  const session = state.sessions.get(state.session);
  const place = document.getElementById("detail");
  shown?.end?.();
  shown = null;
  replace(place, h("div.welcome", null, h("h2", null, clean(session?.server?.title ?? session?.server?.name ?? "Server", 120)),
    session?.instructions ? h("p.about", null, clean(session.instructions, 4000)) : null,
    h("p.note", null, "Choose something from the list. Keys: / searches, arrows move, Enter opens, Ctrl+Enter sends."),
    folders(),
    session?.capabilities ? h("details", null, h("summary", null, "Capabilities"), jsonText(session.capabilities)) : null));
}

// Folders that the server gets when it asks for roots.
let roots = [];
const rootsNote = () => (roots.length === 0 ? "The server gets no folders." : `The server gets ${roots.length === 1 ? "this folder" : `these ${roots.length} folders`} when it asks.`);
function folders() {
  const text = h("textarea.grow", { id: "roots", rows: "2", spellcheck: "false", placeholder: "file:///work" });
  text.value = roots.join("\n");
  const note = h("p.note", { role: "status" }, rootsNote());
  return h("details", null, h("summary", null, "Roots"), h("label", { for: "roots" }, "URIs of folders, one in each line"), text,
    h("button.small", { type: "button", onclick: async () => {
      const given = text.value.split(/\s+/).filter(Boolean);
      try {
        await post("roots", { roots: given });
        roots = given;
        note.textContent = rootsNote();
      } catch (error) {
        emit("toast", error.message);
      }
    } }, "Set roots"), note);
}

function heading(item, kind, name) {
  const hints = item.annotations && typeof item.annotations === "object" ? item.annotations : {};
  const badges = Object.entries({ readOnlyHint: "read only", destructiveHint: "destructive", idempotentHint: "idempotent", openWorldHint: "open world" })
    .filter(([key]) => hints[key] === true).map(([, text]) => h("span.badge", null, text));
  const title = item.title ?? hints.title;
  return [
    h("div.title", null, h("p.kind", null, kind), h("h2", null, clean(name, 200)), title && title !== name ? h("p.subtitle", null, clean(title, 200)) : null, h("p.badges", null, badges)),
    item.description ? h("p.about", null, clean(item.description, 4000)) : null,
  ];
}

const definition = (item) => {
  const body = h("div");
  return h("details.definition", { ontoggle: () => { if (!body.firstChild) body.append(jsonText(item)); } }, h("summary", null, "Definition"), body);
};

// A form with its button, progress and outcome. `make` returns {method, params} from the arguments.
function caller({ fields, label, make, options = {}, extra = [], onstart, onend }) {
  const place = h("div.outcome-place", { "aria-live": "polite" });
  const bar = h("progress", { "aria-label": "Progress", hidden: true });
  const note = h("span.progress-note");
  const send = h("button.primary", { type: "submit" }, label);
  const cancel = h("button.small.danger", { type: "button", hidden: true }, "Cancel");
  const current = () => {
    const args = fields ? fields.read() : {};
    return args === null ? null : make(args);
  };

  async function start() {
    const item = current();
    if (!item) return announce("Something is missing in the form");
    const chosen = typeof options === "function" ? options() : options;
    const call = request(item.method, item.params, { ...chosen, onprogress: (report) => {
      bar.hidden = false;
      if (report.total > 0) bar.max = report.total;
      else bar.removeAttribute("max");
      bar.value = report.progress;
      note.textContent = [report.total > 0 ? `${report.progress} of ${report.total}` : report.progress, clean(report.message ?? "", 200)].filter(Boolean).join(" · ");
    } });
    last = { ...item, session: state.session };
    emit("repeatable", true);
    send.disabled = true;
    cancel.hidden = false;
    cancel.onclick = () => call.cancel();
    replace(place, h("p.note", null, "Waiting for the server…"));
    onstart?.(item);
    const done = await call.done;
    send.disabled = false;
    cancel.hidden = bar.hidden = true;
    bar.removeAttribute("value");
    note.textContent = "";
    replace(place, outcome(done));
    announce(done.ok && !done.result?.isError ? "Done" : "Failed");
    onend?.(item, done);
  }

  const element = h("form", { novalidate: true, onsubmit: (event) => { event.preventDefault(); start(); },
    onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); start(); } } },
  fields?.element, extra, h("div.actions", null, send, cancel, bar, note));
  return { element, place, start, copy: copyMenu(current), current };
}

function tool(item) {
  const fields = form(item.inputSchema);
  const view = viewOf(item);
  const mustTask = item.execution?.taskSupport === "required";
  const canTask = mustTask || item.execution?.taskSupport === "optional";
  const task = h("input", { type: "checkbox", checked: mustTask, disabled: mustTask });
  const side = h("div");
  const viewPlace = h("div.view-place");
  const call = caller({
    fields,
    label: view?.appOnly ? "Call as the view" : "Call",
    make: (args) => ({ method: "tools/call", params: { name: item.name, arguments: args } }),
    options: () => ({ task: canTask && task.checked }),
    extra: canTask ? h("label.check", null, task, mustTask ? " as a task (the tool requires it)" : " as a task") : [],
    onstart: (sent) => {
      if (!view?.uri) return;
      shown.end?.();
      const opened = openView({ tool: item, uri: view.uri, input: sent.params.arguments, place: viewPlace });
      shown.end = opened.close;
      shown.view = opened;
    },
    onend: (_, done) => shown?.view?.finish(done),
  });
  const both = h("button.small", { type: "button", onclick: () => {
    const sent = call.current();
    if (sent) compare(sent, side);
  } }, "Compare both eras");
  return [heading(item, "Tool", item.name),
    view?.appOnly ? h("p.note", null, "Only its view can call this tool: a host hides it from the model.") : null,
    view?.uri ? h("p.note", null, "Shows a view: ", h("code", null, clean(view.uri, 200))) : null,
    call.element, h("div.buttons", null, both), viewPlace, call.place, side, call.copy, definition(item)];
}

// Reads a resource, and keeps reading it while it is watched.
function reader(uri) {
  const place = h("div.outcome-place", { "aria-live": "polite" });
  const changed = h("span.note");
  let watched = false;
  const read = async () => {
    const done = await request("resources/read", { uri: uri() }).done;
    replace(place, outcome(done));
  };
  const watch = h("button.small", { type: "button", "aria-pressed": "false", onclick: async () => {
    try {
      await post(watched ? "unwatch" : "watch", { session: state.session, uri: uri() });
      watched = !watched;
      watch.textContent = watched ? "Stop watching" : "Watch";
      watch.setAttribute("aria-pressed", String(watched));
      if (watched) await read();
    } catch (error) {
      emit("toast", error.message);
    }
  } }, "Watch");
  const listen = (event) => {
    if (!place.isConnected || event.what !== "resource" || event.uri !== uri()) return;
    changed.textContent = `changed ${new Date().toLocaleTimeString()}`;
    read();
  };
  on("change", listen);
  const end = () => { if (watched) post("unwatch", { session: state.session, uri: uri() }).catch(() => {}); };
  return { place, watch, changed, read, end };
}

function resource(item) {
  const parts = reader(() => item.uri);
  shown.end = parts.end;
  const send = h("button.primary", { type: "button", onclick: parts.read }, "Read");
  return [heading(item, "Resource", item.name ?? item.uri), h("p.uri", null, clean(item.uri, 500), " ", h("span.hint", null, clean(item.mimeType, 80))),
    h("div.actions", null, send, parts.watch, parts.changed), parts.place,
    copyMenu(() => ({ method: "resources/read", params: { uri: item.uri } })), definition(item)];
}

// A text field with suggestions of the server while one types.
function completed(name, reference, others, attributes = {}) {
  const id = `c-${Math.random().toString(36).slice(2)}`;
  const input = h("input", { type: "text", autocomplete: "off", id, ...attributes });
  const chips = h("div.chips", { role: "group", "aria-label": `Suggestions for ${clean(name, 80)}`, hidden: true });
  let timer;
  let newest = 0;
  const ask = async () => {
    if (!state.sessions.get(state.session)?.capabilities?.completions) return;
    const number = ++newest;
    const context = Object.fromEntries(Object.entries(others()).filter(([key, value]) => key !== name && value !== ""));
    const params = { ref: reference, argument: { name, value: input.value }, context: { arguments: context } };
    const done = await request("completion/complete", params).done;
    if (number !== newest) return;
    const values = done.ok && Array.isArray(done.result?.completion?.values) ? done.result.completion.values.slice(0, 20) : [];
    replace(chips, values.map((value) => h("button.chip", { type: "button", onclick: () => {
      input.value = value;
      chips.hidden = true;
      input.dispatchEvent(new Event("change"));
      input.focus();
    } }, clean(value, 100))));
    chips.hidden = values.length === 0;
  };
  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 150); });
  input.addEventListener("focus", () => { if (chips.hidden) ask(); });
  return { id, input, element: h("div.completed", null, input, chips) };
}

function named(names, reference) {
  const fields = new Map();
  const values = () => Object.fromEntries([...fields].map(([name, field]) => [name, field.input.value]));
  const element = h("div.fields", null, names.map(({ name, description, required }) => {
    const field = completed(name, reference, values, required ? { "aria-required": "true" } : {});
    fields.set(name, field);
    field.fault = h("p.fault", { hidden: true });
    return h("div.field", { "data-field": name }, h("label", { for: field.id }, clean(name, 100), " ", required ? h("span.required", null, "required") : null),
      description ? h("p.about", null, clean(description, 500)) : null, field.element, field.fault);
  }));
  const read = () => {
    const wrong = names.filter(({ name, required }) => required && fields.get(name).input.value === "");
    for (const { name } of names) {
      const field = fields.get(name);
      const missing = wrong.some((one) => one.name === name);
      field.fault.textContent = missing ? "Fill this in." : "";
      field.fault.hidden = !missing;
      field.input.setAttribute("aria-invalid", String(missing));
    }
    if (wrong.length) {
      fields.get(wrong[0].name).input.focus();
      return null;
    }
    return Object.fromEntries(Object.entries(values()).filter(([, value]) => value !== ""));
  };
  return { element, read, values, fields };
}

function prompt(item) {
  const names = (Array.isArray(item.arguments) ? item.arguments : []).slice(0, 100).filter((one) => typeof one?.name === "string");
  const fields = named(names, { type: "ref/prompt", name: item.name });
  const call = caller({ fields, label: "Get prompt", make: (args) => ({ method: "prompts/get", params: { name: item.name, arguments: args } }) });
  return [heading(item, "Prompt", item.name), call.element, call.place, call.copy, definition(item)];
}

// Variables of a URI template (RFC 6570), and a simple expansion of it.
const VARIABLES = /\{([+#./;?&]?)([^{}]{1,200})\}/g;

function expand(uriTemplate, values) {
  return uriTemplate.replace(VARIABLES, (_, operator, list) => {
    const given = list.split(",").map((name) => name.replace(/[*]$|:\d+$/, "")).filter((name) => values[name] !== undefined && values[name] !== "");
    if (!given.length) return "";
    const encode = operator === "+" || operator === "#" ? encodeURI : encodeURIComponent;
    const isNamed = "?&;".includes(operator) && operator !== "";
    const joint = { "?": "&", "&": "&", ";": ";", "/": "/", ".": "." }[operator] ?? ",";
    return (operator === "+" ? "" : operator) + given.map((name) => (isNamed ? `${name}=${encode(values[name])}` : encode(values[name]))).join(joint);
  });
}

function template(item) {
  const text = String(item.uriTemplate ?? "").slice(0, 2000);
  const names = [...new Set([...text.matchAll(VARIABLES)].flatMap(([, , list]) => list.split(",").map((name) => name.replace(/[*]$|:\d+$/, ""))))].slice(0, 50);
  const fields = named(names.map((name) => ({ name, required: true })), { type: "ref/resource", uri: text });
  const uri = h("p.uri");
  const current = () => expand(text, fields.values());
  const update = () => { uri.textContent = clean(current(), 500); };
  for (const { input } of fields.fields.values()) {
    input.addEventListener("input", update);
    input.addEventListener("change", update);
  }
  update();
  const parts = reader(current);
  shown.end = parts.end;
  const call = caller({ fields, label: "Read", make: (args) => ({ method: "resources/read", params: { uri: expand(text, args) } }) });
  return [heading(item, "Template", item.name ?? text), h("p.uri", null, clean(text, 500)), call.element, uri,
    h("div.actions", null, parts.watch, parts.changed), call.place, parts.place, call.copy, definition(item)];
}
