// JSON as a tree. Branches are made when they are opened, so a large or deep value costs nothing until then.

import { bytes, clean, download, h } from "./dom.js";

const CHILDREN = 100; // shown at once
const TEXT = 2000; // characters of a string shown at once
const OPEN_DEPTH = 2;

export function tree(value, name, depth = 0) {
  if (value === null || typeof value !== "object") return leaf(value, name);
  const entries = Array.isArray(value) ? value.map((item, index) => [index, item]) : Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  const body = h("div.branch");
  const details = h("details.node", {
    ontoggle: () => { if (details.open && !body.firstChild) more(body, entries, 0, depth); },
  }, h("summary", null, name === undefined ? null : key(name), h("span.size", null, size)), body);
  if (depth < OPEN_DEPTH && entries.length <= 50) {
    details.open = true;
    more(body, entries, 0, depth);
  }
  return details;
}

function more(body, entries, from, depth) {
  const next = entries.slice(from, from + CHILDREN);
  body.append(...next.map(([name, value]) => tree(value, name, depth + 1)));
  const left = entries.length - from - next.length;
  if (left > 0) {
    const button = h("button.link", { type: "button", onclick: () => {
      button.remove();
      more(body, entries, from + CHILDREN, depth);
    } }, `${left} more`);
    body.append(button);
  }
}

const key = (name) => h("span.key", null, clean(name, 200), ": ");

function leaf(value, name) {
  const kind = value === null ? "null" : typeof value;
  const shown = kind === "string" ? JSON.stringify(clean(value, TEXT)) : String(value);
  return h("div.leaf", null, name === undefined ? null : key(name), h(`span.v-${kind}`, null, shown));
}

const SHOWN = 20000;

// A text that can be large: its begin, the rest on request.
export function longText(text, { label = "text", className = "text" } = {}) {
  const pre = h(`pre.${className}`, { tabindex: "0", "aria-label": label });
  if (text.length <= SHOWN) {
    pre.textContent = text;
    return pre;
  }
  let shown = SHOWN;
  pre.textContent = text.slice(0, shown);
  const note = h("span");
  const say = () => { note.textContent = `${bytes(shown)} of ${bytes(text.length)} shown `; };
  const button = h("button.link", { type: "button", onclick: () => {
    shown = Math.min(text.length, shown + 10 * SHOWN);
    pre.textContent = text.slice(0, shown);
    if (shown === text.length) button.remove();
    say();
  } }, "Show more");
  const save = h("button.link", { type: "button", onclick: () => download("text.txt", "text/plain", [text]) }, "Download");
  say();
  return h("div", null, pre, h("p.note", null, note, button, " ", save));
}

export const jsonText = (value) => longText(JSON.stringify(value, null, 2) ?? "null", { label: "JSON", className: "json" });
