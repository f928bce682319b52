// Forms from schemas. A field is {element, read(faults), focus()}; `read` returns the value, or undefined to leave it out.

import { clean, h, newId, replace } from "./dom.js";
import { alternatives, choices, fault, hint, isNullable, resolve, typeOf } from "./schema.js";

const DEPTH = 8; // deeper levels are written as JSON
const FIELDS = 200; // of a whole form, however its schema refers to itself
const MORE = 50; // for what a person adds

let left = FIELDS;
const allow = (fields) => { left = Math.max(left, fields); };

export function form(schema, values = {}) {
  const root = schema && typeof schema === "object" ? schema : {};
  const top = resolve(root, root);
  left = FIELDS;
  let field = typeOf(top) === "object" && top.properties ? objectField(top, root, values, 0) : null;
  const fields = h("div.fields", null, field ? field.element : h("p.note", null, "No arguments are declared."));
  const json = h("textarea.code", { rows: "8", spellcheck: "false", "aria-label": "Arguments as JSON", hidden: true });
  const wrong = h("p.fault", { role: "alert", hidden: true });
  const toggle = h("button.link", { type: "button", "aria-pressed": "false", onclick: () => switchTo(json.hidden) }, "Edit as JSON");
  const element = h("div.form", null, fields, json, wrong, toggle);

  function switchTo(asJson) {
    wrong.hidden = true;
    if (asJson) {
      json.value = JSON.stringify(field ? field.read([]) ?? {} : {}, null, 2);
    } else {
      const parsed = parse();
      if (parsed === undefined) return;
      if (field) {
        left = FIELDS;
        field = objectField(top, root, parsed, 0);
        replace(fields, field.element);
      }
    }
    json.hidden = !asJson;
    fields.hidden = asJson;
    toggle.setAttribute("aria-pressed", String(asJson));
    toggle.textContent = asJson ? "Edit as form" : "Edit as JSON";
  }

  function parse() {
    try {
      const parsed = JSON.parse(json.value);
      if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed)) throw new Error("it is not an object");
      return parsed;
    } catch (error) {
      wrong.textContent = `This is not the JSON of an object: ${error.message}`;
      wrong.hidden = false;
      return undefined;
    }
  }

  return {
    element,
    // Returns the arguments, or null after it has shown what is wrong.
    read() {
      wrong.hidden = true;
      if (!json.hidden) return parse() ?? null;
      if (!field) return {};
      const faults = [];
      const value = field.read(faults) ?? {};
      if (faults.length === 0) return value;
      faults[0].focus();
      return null;
    },
  };
}

function objectField(schema, root, value, depth) {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const names = Object.keys(schema.properties ?? {});
  const fields = [];
  for (const name of names) {
    if (left <= 0) break;
    left--;
    const given = value && typeof value === "object" && Object.hasOwn(value, name) ? value[name] : undefined;
    fields.push([name, namedField(name, schema.properties[name], root, given, required.has(name), depth)]);
  }
  const rest = names.length - fields.length;
  const note = rest > 0 ? h("p.note", null, `${rest} more fields: edit them as JSON.`) : null;
  return {
    element: h("div.object", null, fields.map(([, field]) => field.element), note),
    read(faults, quiet) {
      const result = {};
      for (const [name, field] of fields) {
        const read = field.read(faults, quiet);
        if (read !== undefined) Object.defineProperty(result, name, { value: read, enumerable: true, writable: true, configurable: true });
      }
      return result;
    },
    focus: () => fields[0]?.[1].focus(),
  };
}

// A field with its label, description and fault.
function namedField(name, declared, root, given, required, depth) {
  const schema = resolve(declared, root);
  const ids = { input: newId("f"), about: newId("f"), fault: newId("f") };
  const message = h("p.fault", { id: ids.fault, hidden: true });
  const report = (faults, text, quiet) => {
    if (!quiet) {
      message.textContent = text ?? "";
      message.hidden = !text;
      inner.input?.setAttribute("aria-invalid", String(Boolean(text)));
    }
    if (text) faults.push(inner);
  };
  const start = given !== undefined ? given : schema.default;
  const inner = valueField(schema, root, start, { required, depth, ids, report, name });
  const label = schema.title ? `${clean(schema.title, 80)} (${clean(name, 80)})` : clean(name, 120);
  const marks = [h("span.hint", null, hint(schema)), required ? h("span.required", null, "required") : null];
  const about = schema.description ? h("p.about", { id: ids.about }, clean(schema.description, 600)) : null;
  const described = [about ? ids.about : null, ids.fault].filter(Boolean).join(" ");
  inner.input?.setAttribute("aria-describedby", described);
  const head = inner.group
    ? h("legend", null, label, " ", marks)
    : h("label", { for: ids.input }, label, " ", marks);
  const element = h(inner.group ? "fieldset.field" : "div.field", { "data-field": name }, head, about, inner.element, message);
  const touched = () => { message.hidden = true; inner.input?.removeAttribute("aria-invalid"); };
  element.addEventListener("input", touched);
  element.addEventListener("click", (event) => { if (event.target.closest("button")) touched(); });
  return { element, read: inner.read, focus: inner.focus };
}

function valueField(schema, root, start, options) {
  const listed = choices(schema);
  if (listed) return choiceField(listed, start, options, isNullable(schema));
  const others = alternatives(schema, root);
  if (others.length === 1) {
    const { anyOf, oneOf, ...rest } = schema;
    return valueField({ ...others[0], ...rest, type: others[0].type }, root, start ?? undefined, options);
  }
  if (others.length > 1) return variantField(others, root, start, options);
  const type = typeOf(schema);
  if (options.depth >= DEPTH) return jsonField(start, options);
  if (type === "string") return textField(schema, start, options);
  if (type === "number" || type === "integer") return numberField(schema, start, options);
  if (type === "boolean") return booleanField(start, options);
  if (type === "array") return arrayField(schema, root, start, options);
  if (type === "object" && schema.properties) return nestedField(schema, root, start, options);
  return jsonField(start, options);
}

function control(element, options, read) {
  element.id = options.ids.input;
  if (options.required) element.setAttribute("aria-required", "true");
  return { element, input: element, focus: () => element.focus(), read };
}

function textField(schema, start, options) {
  const kind = { date: "date", email: "email" }[schema.format];
  const input = kind ? h("input", { type: kind }) : h("textarea.grow", { rows: "1", spellcheck: "false" });
  input.value = typeof start === "string" ? start : "";
  return control(input, options, (faults, quiet) => {
    const text = input.value;
    if (text === "" && !options.required) {
      options.report(faults, null, quiet);
      return undefined;
    }
    const wrong = text === "" && !(schema.minLength === 0) && options.required && kind ? "Fill this in." : fault(schema, text);
    options.report(faults, wrong, quiet);
    return text;
  });
}

function numberField(schema, start, options) {
  const input = h("input", { type: "text", inputmode: "decimal", autocomplete: "off" });
  input.value = typeof start === "number" ? String(start) : "";
  return control(input, options, (faults, quiet) => {
    const text = input.value.trim();
    if (text === "") {
      options.report(faults, options.required ? "Fill in a number." : null, quiet);
      return undefined;
    }
    const value = Number(text);
    options.report(faults, fault(schema, value), quiet);
    return Number.isFinite(value) ? value : undefined;
  });
}

function booleanField(start, options) {
  if (options.required || typeof start === "boolean") {
    const input = h("input", { type: "checkbox" });
    input.checked = start === true;
    return control(input, options, () => input.checked);
  }
  const listed = [{ value: true, label: "true" }, { value: false, label: "false" }];
  return choiceField(listed, start, options, false);
}

function choiceField(listed, start, options, nullable) {
  const items = nullable ? [...listed.filter((item) => item.value !== null), { value: null, label: "null" }] : listed;
  const unset = !options.required || start === undefined;
  const select = h("select", null,
    unset ? h("option", { value: "" }, options.required ? "choose…" : "(not set)") : null,
    items.map((item, index) => h("option", { value: String(index) }, clean(item.label, 120))));
  const chosen = items.findIndex((item) => JSON.stringify(item.value) === JSON.stringify(start));
  select.value = chosen >= 0 ? String(chosen) : "";
  return control(select, options, (faults, quiet) => {
    if (select.value === "") {
      options.report(faults, options.required ? "Choose a value." : null, quiet);
      return undefined;
    }
    options.report(faults, null, quiet);
    return items[Number(select.value)].value;
  });
}

function jsonField(start, options) {
  const input = h("textarea.code", { rows: "3", spellcheck: "false", placeholder: "JSON" });
  input.value = start === undefined ? "" : JSON.stringify(start, null, 2);
  return control(input, options, (faults, quiet) => {
    if (input.value.trim() === "") {
      options.report(faults, options.required ? "Fill in JSON." : null, quiet);
      return undefined;
    }
    try {
      const value = JSON.parse(input.value);
      options.report(faults, null, quiet);
      return value;
    } catch {
      options.report(faults, "This is not JSON.", quiet);
      return undefined;
    }
  });
}

function nestedField(schema, root, start, options) {
  const make = (value) => objectField(schema, root, value, options.depth + 1);
  const box = h("div.nested");
  let field = null;
  const set = (value) => {
    field = value === undefined ? null : make(value);
    replace(box, field?.element);
  };
  if (options.required) {
    set(start ?? {});
    return { element: box, group: true, focus: () => field.focus(), read: (faults, quiet) => field.read(faults, quiet) };
  }
  const input = h("input", { type: "checkbox", id: options.ids.input, onchange: () => { allow(MORE); set(input.checked ? {} : undefined); } });
  input.checked = start !== undefined && start !== null;
  set(input.checked ? start : undefined);
  const element = h("div", null, h("label.check", { for: options.ids.input }, input, ` set ${clean(options.name, 60)}`), box);
  return { element, input, group: true, focus: () => input.focus(), read: (faults, quiet) => field?.read(faults, quiet) };
}

function arrayField(schema, root, start, options) {
  const items = resolve(schema.items ?? {}, root);
  const listed = choices(items) ?? (items.anyOf ? choices({ oneOf: items.anyOf }) : null);
  if (listed && listed.length <= 30) return multipleField(schema, listed, start, options);
  const rows = h("div.rows");
  let fields = [];
  const add = (value, focus) => {
    const ids = { input: newId("f"), fault: newId("f") };
    const message = h("p.fault", { id: ids.fault, hidden: true });
    const report = (faults, text, quiet) => {
      if (!quiet) {
        message.textContent = text ?? "";
        message.hidden = !text;
      }
      if (text) faults.push(field);
    };
    const field = valueField(items, root, value ?? items.default, { ...options, required: true, depth: options.depth + 1, ids, report });
    const name = `${clean(options.name, 60)} ${fields.length + 1}`;
    field.input?.setAttribute("aria-label", name);
    const remove = h("button.small", { type: "button", "aria-label": `Remove ${name}`, onclick: () => {
      fields = fields.filter((other) => other !== field);
      row.remove();
      more.focus();
    } }, "×");
    const row = h("div.item", null, h("div.grow-1", null, field.element, message), remove);
    fields.push(field);
    rows.append(row);
    if (focus) field.focus();
  };
  const more = h("button.small", { type: "button", id: options.ids.input, onclick: () => { allow(MORE); if (fields.length < FIELDS) add(undefined, true); } }, "+ Add");
  for (const value of Array.isArray(start) ? start.slice(0, FIELDS) : []) add(value);
  return {
    element: h("div", null, rows, more), group: true, input: more, focus: () => more.focus(),
    read(faults, quiet) {
      const values = fields.map((field) => field.read(faults, quiet)).filter((value) => value !== undefined);
      options.report(faults, countFault(schema, values.length, options.required), quiet);
      return values.length === 0 && !options.required ? undefined : values;
    },
  };
}

function countFault(schema, count, required) {
  if (count === 0 && !required) return null;
  if (schema.minItems > count) return `At least ${schema.minItems}.`;
  if (schema.maxItems < count) return `At most ${schema.maxItems}.`;
  return null;
}

function multipleField(schema, listed, start, options) {
  const chosen = new Set(Array.isArray(start) ? start.map((value) => JSON.stringify(value)) : []);
  const boxes = listed.map((item) => {
    const box = h("input", { type: "checkbox" });
    box.checked = chosen.has(JSON.stringify(item.value));
    return [item, box];
  });
  return {
    element: h("div.checks", null, boxes.map(([item, box]) => h("label.check", null, box, ` ${clean(item.label, 120)}`))),
    group: true, focus: () => boxes[0]?.[1].focus(),
    read(faults, quiet) {
      const values = boxes.filter(([, box]) => box.checked).map(([item]) => item.value);
      options.report(faults, countFault(schema, values.length, options.required), quiet);
      return values.length === 0 && !options.required ? undefined : values;
    },
  };
}

function variantField(others, root, start, options) {
  const box = h("div.nested");
  let field = null;
  const select = h("select", { id: options.ids.input, onchange: () => { allow(MORE); set(select.value); } },
    options.required ? null : h("option", { value: "" }, "(not set)"),
    others.map((one, index) => h("option", { value: String(index) }, clean(one.title ?? typeOf(one) ?? `variant ${index + 1}`, 80))));
  const set = (index, value) => {
    const ids = { input: newId("f"), fault: newId("f") };
    field = index === "" ? null : valueField(others[Number(index)], root, value, { ...options, required: true, depth: options.depth + 1, ids });
    field?.input?.setAttribute("aria-label", clean(options.name, 80));
    replace(box, field?.element);
  };
  const fits = (one) => (Array.isArray(start) ? "array" : typeof start) === (typeOf(one) === "integer" ? "number" : typeOf(one));
  const index = start === undefined ? (options.required ? 0 : -1) : Math.max(0, others.findIndex(fits));
  select.value = index < 0 ? "" : String(index);
  set(select.value, start);
  return {
    element: h("div", null, select, box), group: true, input: select, focus: () => select.focus(),
    read: (faults, quiet) => field?.read(faults, quiet),
  };
}
