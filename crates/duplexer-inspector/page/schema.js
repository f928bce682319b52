// JSON Schema, as far as forms need it: references within the document, and what a value must be.
// Patterns are not run here: an expression of a server could keep the page busy indefinitely. The server checks them.

const HOPS = 32;

// Follows references and merges `allOf`. Cyclic references end as a schema that allows everything.
export function resolve(schema, root) {
  let now = schema;
  for (let hop = 0; hop < HOPS; hop++) {
    if (now === true || now === null || typeof now !== "object") return {};
    if (typeof now.$ref === "string") {
      const { $ref, ...rest } = now;
      const target = pointer(root, $ref);
      if (target === undefined) return rest;
      now = typeof target === "object" ? { ...target, ...rest } : rest;
      continue;
    }
    if (Array.isArray(now.allOf) && now.allOf.length && now.allOf.length < 20) {
      const { allOf, ...rest } = now;
      now = Object.assign({}, ...allOf.map((part) => (part && typeof part === "object" ? part : {})), rest);
      continue;
    }
    return now;
  }
  return {};
}

function pointer(root, ref) {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return undefined;
  let at = root;
  for (const part of ref.slice(2).split("/")) {
    const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (at === null || typeof at !== "object" || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}

// The alternatives of a schema, without null: [] if it has none.
export function alternatives(schema, root) {
  const all = schema.anyOf ?? schema.oneOf;
  if (!Array.isArray(all)) return [];
  return all.slice(0, 50).map((one) => resolve(one, root)).filter((one) => one.type !== "null");
}

export function isNullable(schema) {
  const all = schema.anyOf ?? schema.oneOf ?? [];
  return (Array.isArray(schema.type) && schema.type.includes("null"))
    || (Array.isArray(all) && all.some((one) => one?.type === "null"));
}

// The values of an enumeration with their labels, or null.
export function choices(schema) {
  if (Array.isArray(schema.enum)) {
    const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
    return schema.enum.slice(0, 500).map((value, index) => ({ value, label: String(names[index] ?? value) }));
  }
  if (schema.const !== undefined) return [{ value: schema.const, label: String(schema.const) }];
  const all = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(all) && all.length && all.every((one) => one && typeof one === "object" && one.const !== undefined)) {
    return all.slice(0, 500).map((one) => ({ value: one.const, label: String(one.title ?? one.const) }));
  }
  return null;
}

export function typeOf(schema) {
  const all = Array.isArray(schema.type) ? schema.type.filter((one) => one !== "null") : [schema.type];
  if (all.length === 1 && typeof all[0] === "string") return all[0];
  if (schema.properties) return "object";
  if (schema.items) return "array";
  return undefined;
}

// Says what is wrong with a value of a primitive type, or nothing.
export function fault(schema, value) {
  const type = typeOf(schema);
  if (type === "string") {
    const length = [...value].length;
    if (schema.minLength > length) return length === 0 ? "Fill this in." : `At least ${schema.minLength} characters.`;
    if (schema.maxLength < length) return `At most ${schema.maxLength} characters.`;
    if (schema.format === "email" && !/^[^\s@]+@[^\s@]+$/.test(value)) return "This is not an e-mail address.";
    if (schema.format === "uri" && !URL.canParse(value)) return "This is not a URI.";
    if (schema.format === "date" && !/^\d{4}-\d\d-\d\d$/.test(value)) return "A date is written 2026-11-18.";
    if (schema.format === "date-time" && Number.isNaN(Date.parse(value))) return "A time is written 2026-11-18T12:00:00Z.";
  }
  if (type === "number" || type === "integer") {
    if (!Number.isFinite(value)) return "This is not a number.";
    if (type === "integer" && !Number.isInteger(value)) return "This must be a whole number.";
    if (schema.minimum > value) return `At least ${schema.minimum}.`;
    if (schema.maximum < value) return `At most ${schema.maximum}.`;
    if (schema.exclusiveMinimum >= value) return `More than ${schema.exclusiveMinimum}.`;
    if (schema.exclusiveMaximum <= value) return `Less than ${schema.exclusiveMaximum}.`;
    if (schema.multipleOf > 0 && Math.abs(value / schema.multipleOf - Math.round(value / schema.multipleOf)) > 1e-9) {
      return `A multiple of ${schema.multipleOf}.`;
    }
  }
  return null;
}

// A short description of what a value must be.
export function hint(schema) {
  const parts = [typeOf(schema) ?? ""];
  if (schema.format) parts.push(schema.format);
  if (schema.minimum !== undefined || schema.maximum !== undefined) parts.push(`${schema.minimum ?? ""}…${schema.maximum ?? ""}`);
  if (schema.pattern) parts.push(`/${schema.pattern}/`);
  return parts.filter(Boolean).join(" ").slice(0, 120);
}
