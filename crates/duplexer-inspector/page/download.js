// Files that a view asks to save. The person agrees first; a link is read from the server, never fetched from elsewhere.

import { clean, download } from "./dom.js";

export const MAX_FILES = 20;

// A name for a file: the last part of a URI, without characters that mean something to a file system or hide the rest.
export function fileName(text) {
  let last = String(text ?? "").split(/[?#]/)[0].split("/").filter(Boolean).at(-1) ?? "";
  try {
    last = decodeURIComponent(last);
  } catch { /* not encoded */ }
  const safe = clean(last, 100).replace(/[/\\:*?"<>|\ufffd…]/g, "_").replace(/^[.\s]+|[.\s]+$/g, "");
  return safe || "download";
}

function bytesOf(resource) {
  if (typeof resource?.text === "string") return new TextEncoder().encode(resource.text);
  if (typeof resource?.blob !== "string") return null;
  try {
    return Uint8Array.from(atob(resource.blob), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

// The files of a request: {name, type, size, bytes, uri}. Those of links have no bytes yet. Null if the request is not right.
export function filesOf(contents) {
  if (!Array.isArray(contents) || contents.length === 0 || contents.length > MAX_FILES) return null;
  const files = contents.map((one) => {
    if (one?.type === "resource_link" && typeof one.uri === "string") {
      return { name: fileName(one.name ?? one.uri), type: one.mimeType, size: one.size, uri: one.uri, bytes: null };
    }
    const bytes = one?.type === "resource" ? bytesOf(one.resource) : null;
    return bytes && { name: fileName(one.resource.uri), type: one.resource.mimeType, size: bytes.length, bytes };
  });
  return files.every(Boolean) ? files : null;
}

// Saves files. `read` returns the result of resources/read.
export async function save(files, read) {
  for (const file of files) {
    const bytes = file.bytes ?? bytesOf((await read(file.uri))?.contents?.[0]);
    if (!bytes) throw new Error(`${clean(file.uri, 200)} has no contents`);
    download(file.name, typeof file.type === "string" ? file.type : "application/octet-stream", [bytes]);
  }
}
