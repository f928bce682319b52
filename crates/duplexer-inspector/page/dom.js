// Elements are made from functions, never from text: no string of a server is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name in element && typeof value !== "string" && !(element instanceof SVGElement)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// h("button.primary", {onclick}, "Call")
export function h(tag, props, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  return fill(element, props, children);
}

export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

let ids = 0;
export const newId = (prefix = "e") => `${prefix}${++ids}`;

// Texts of servers: at most `max` characters, without characters that reorder or hide what is around them.
export function clean(text, max = 300) {
  let shown = String(text ?? "").slice(0, max + 1);
  if (shown.length > max) shown = `${shown.slice(0, max)}…`;
  return shown.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

export function bytes(size) {
  if (size < 1000) return `${size} B`;
  if (size < 1e6) return `${(size / 1000).toFixed(1)} kB`;
  return `${(size / 1e6).toFixed(1)} MB`;
}

export const duration = (ms) => (ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`);
export const clock = (ms) => `${(ms / 1000).toFixed(3)} s`;

// Announces something to people who do not see it.
export function announce(text) {
  const status = document.getElementById("status");
  status.textContent = "";
  requestAnimationFrame(() => { status.textContent = text; });
}

export function download(name, type, parts) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// Tabs with arrow keys. `tabs` are {id, label, panel}; panels are shown by the attribute `hidden`.
export class Tabs {
  constructor(label, tabs, onselect) {
    this.tabs = tabs.map((tab) => ({ ...tab, dom: newId("tab") }));
    this.onselect = onselect;
    this.bar = h("div.tabs", { role: "tablist", "aria-label": label, onkeydown: (event) => this.key(event) },
      this.tabs.map((tab) => tab.button = h("button.tab", {
        role: "tab", id: tab.dom, type: "button", "data-tab": tab.id, "aria-controls": tab.panel?.id || undefined,
        onclick: () => this.select(tab.id),
      }, tab.label, tab.count = h("span.count", { hidden: true }))));
    for (const tab of this.tabs) {
      if (!tab.panel) continue;
      tab.panel.setAttribute("role", "tabpanel");
      tab.panel.setAttribute("aria-labelledby", tab.dom);
      tab.panel.id ||= newId("panel");
      tab.button.setAttribute("aria-controls", tab.panel.id);
    }
    this.select(this.tabs[0].id, true);
  }

  select(id, quiet) {
    this.selected = id;
    for (const tab of this.tabs) {
      const on = tab.id === id;
      tab.button.setAttribute("aria-selected", String(on));
      tab.button.tabIndex = on ? 0 : -1;
      if (tab.panel) tab.panel.hidden = !on;
    }
    if (!quiet) this.onselect?.(id);
  }

  count(id, number) {
    const { count } = this.tabs.find((tab) => tab.id === id);
    count.textContent = number > 9999 ? "9999+" : number;
    count.hidden = !number;
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const index = this.tabs.findIndex((tab) => tab.id === this.selected);
    const next = this.tabs[(index + step + this.tabs.length) % this.tabs.length];
    this.select(next.id);
    next.button.focus();
  }
}
