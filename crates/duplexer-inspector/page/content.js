// Results as people read them: text, pictures, sound, resources and links, with the JSON beside it.

import { bytes, clean, download, duration, h, Tabs } from "./dom.js";
import { emit } from "./state.js";
import { jsonText, longText, tree } from "./tree.js";

const PICTURES = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/i;
const SOUNDS = /^audio\/[\w.+-]+$/i;
const LARGE = 8e6; // base64 characters of a picture that is shown
const BLOCKS = 100;

function media(data, type, label) {
  const mime = String(type ?? "").split(";")[0].trim();
  const save = () => h("button.link", { type: "button", onclick: () => {
    try {
      download("data", mime || "application/octet-stream", [Uint8Array.from(atob(data), (c) => c.charCodeAt(0))]);
    } catch {
      emit("toast", "The data is not base64.");
    }
  } }, `Download ${clean(mime || "data", 60)}, ${bytes(Math.floor((data.length * 3) / 4))}`);
  if (typeof data !== "string" || !/^[A-Za-z0-9+/=\s]*$/.test(data.slice(0, 4096))) return h("p.fault", null, "The data is not base64.");
  if (PICTURES.test(mime) && data.length <= LARGE) {
    const image = h("img.picture", { alt: clean(label || "picture of the server", 120), src: `data:${mime};base64,${data}` });
    return h("figure", null, image, h("figcaption", null, save()));
  }
  if (SOUNDS.test(mime) && data.length <= LARGE) {
    return h("figure", null, h("audio", { controls: true, src: `data:${mime};base64,${data}`, "aria-label": "sound of the server" }), h("figcaption", null, save()));
  }
  return h("p", null, save());
}

function contents(item) {
  const uri = h("p.uri", null, clean(item?.uri, 300), " ", h("span.hint", null, clean(item?.mimeType, 80)));
  if (typeof item?.text === "string") return h("div.block", null, uri, longText(item.text));
  if (typeof item?.blob === "string") return h("div.block", null, uri, media(item.blob, item.mimeType, item.uri));
  return h("div.block", null, uri, jsonText(item));
}

function block(item) {
  switch (item?.type) {
    case "text": return typeof item.text === "string" ? h("div.block", null, longText(item.text)) : h("div.block", null, jsonText(item));
    case "image":
    case "audio": return h("div.block", null, media(item.data, item.mimeType, item.type));
    case "resource": return contents(item.resource);
    case "resource_link": return h("div.block.linked", null,
      h("button.link", { type: "button", onclick: () => emit("open-resource", item.uri) }, clean(item.title ?? item.name ?? item.uri, 200)),
      h("span.uri", null, " ", clean(item.uri, 300)), item.description ? h("p.about", null, clean(item.description, 300)) : null);
    default: return h("div.block", null, jsonText(item));
  }
}

const blocks = (list, one) => {
  const all = Array.isArray(list) ? list : [];
  return [all.slice(0, BLOCKS).map(one), all.length > BLOCKS ? h("p.note", null, `${all.length - BLOCKS} more parts: see the JSON.`) : null];
};

const message = (item) => h("div.message", null, h("span.role", null, clean(item?.role, 40)), block(item?.content));

// The parts of a result: what a model and a person read.
export function parts(result) {
  if (Array.isArray(result?.contents)) return blocks(result.contents, contents);
  if (Array.isArray(result?.messages)) return blocks(result.messages, message);
  if (Array.isArray(result?.content)) return blocks(result.content, block);
  return [jsonText(result)];
}

export function failure(error) {
  const code = error.code === undefined ? null : h("span.code", null, String(error.code));
  return h("div.outcome.failed", { role: "alert" }, h("p", null, h("strong", null, "Error "), code, " ", clean(error.message, 4000)),
    error.data === undefined ? null : tree(error.data, "data"));
}

// An outcome with its tabs: result, structured content, JSON.
export function outcome(done) {
  const time = done.ms ? h("span.time", null, duration(done.ms)) : null;
  if (!done.ok) return h("div.result", null, h("p.head", null, h("span.badge.bad", null, "failed"), time), failure(done.error));
  const result = done.result;
  const isError = result?.isError === true;
  const tabs = [{ id: "parts", label: "Result", panel: h("div.panel", null, parts(result)) }];
  if (result?.structuredContent !== undefined) {
    tabs.push({ id: "structured", label: "Structured", panel: h("div.panel", null, tree(result.structuredContent)) });
  }
  tabs.push({ id: "json", label: "JSON", panel: h("div.panel") });
  const bar = new Tabs("Forms of the result", tabs, (id) => {
    const panel = tabs.at(-1).panel;
    if (id === "json" && !panel.firstChild) panel.append(jsonText(result));
  });
  const badge = h(isError ? "span.badge.bad" : "span.badge.good", null, isError ? "tool error" : "ok");
  return h(isError ? "div.result.failed" : "div.result", null, h("div.head", null, badge, time, bar.bar), tabs.map((tab) => tab.panel));
}
