// The API of the page: one origin, JSON, and the token of this start.

import { emit, measured, state, take } from "./state.js";

const BASE = "inspector/api/";
const KEY = "duplexer-inspector-token";
let token = "";

// The token comes with the address, and is removed from it at once.
export function readToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  token = given ?? sessionStorage.getItem(KEY) ?? "";
  return token !== "";
}

export function setToken(text) {
  sessionStorage.setItem(KEY, text);
  token = text;
}

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function send(path, options) {
  let response;
  try {
    response = await fetch(BASE + path, { ...options, headers: { authorization: `Bearer ${token}` }, cache: "no-store" });
  } catch {
    throw new ApiError(0, "The inspector does not answer. Has its program ended?");
  }
  if (response.ok) return response;
  let message = `The inspector answers with ${response.status}.`;
  try {
    message = (await response.json()).error.message;
  } catch { /* no JSON */ }
  throw new ApiError(response.status, message);
}

export const get = async (path) => (await send(path)).json();
export const getText = async (path) => (await send(path)).text();
export async function post(path, body) {
  const answer = await (await send(path, { method: "POST", body: JSON.stringify(body) })).json();
  // A failure of the server under inspection.
  if (answer.error) throw new ApiError(200, answer.error.message);
  return answer;
}

const waiting = new Map();
let calls = 0;

// Sends a request to the server under inspection. `done` resolves with {ok, ms, result} or {ok, ms, error}.
export function request(method, params, options = {}) {
  const call = `c${Math.random().toString(36).slice(2)}-${++calls}`;
  const session = options.session ?? state.session;
  const done = new Promise((resolve) => {
    waiting.set(call, { resolve, onprogress: options.onprogress });
    const failed = (error) => {
      waiting.delete(call);
      resolve({ ok: false, ms: 0, error: { message: error.message } });
    };
    post("call", { call, session, method, params, progress: Boolean(options.onprogress), task: Boolean(options.task) }).catch(failed);
  });
  const subject = params?.name ?? params?.uri ?? params?.ref?.name ?? params?.ref?.uri ?? "";
  done.then((outcome) => {
    if (outcome.ms > 0) measured({ method, subject, session, ms: outcome.ms, ok: outcome.ok });
  });
  return { call, done, cancel: () => post("cancel", { call }).catch(() => {}) };
}

// Requests all pages of a list.
export async function list(method, member, session) {
  const all = [];
  let cursor;
  for (let page = 0; page < 1000; page++) {
    const outcome = await request(method, cursor === undefined ? {} : { cursor }, { session }).done;
    if (!outcome.ok) throw new ApiError(0, outcome.error.message);
    const items = outcome.result[member];
    if (Array.isArray(items)) for (const item of items) if (item && typeof item === "object") all.push(item);
    const next = outcome.result.nextCursor;
    if (typeof next !== "string" || next === cursor || all.length > 50000) break;
    cursor = next;
  }
  return all;
}

async function finish(event) {
  const call = waiting.get(event.call);
  if (!call) return;
  waiting.delete(event.call);
  try {
    call.resolve(await get(`result?call=${encodeURIComponent(event.call)}`));
  } catch (error) {
    call.resolve({ ok: false, ms: 0, error: { message: error.message } });
  }
}

// Reads events for as long as the page is open.
export async function readEvents() {
  let next = 0;
  let pause = 250;
  for (;;) {
    try {
      const answer = await get(`events?after=${next}`);
      next = answer.next;
      if (answer.lost) {
        state.dropped += answer.lost;
        emit("lost", answer.lost);
      }
      for (const event of answer.events) {
        if (event.type === "done") finish(event);
        else if (event.type === "progress") waiting.get(event.call)?.onprogress?.(event);
        else take(event);
      }
      if (pause !== 250) emit("online");
      pause = 250;
    } catch (error) {
      if (error.status === 401) return emit("unauthorized");
      emit("offline", error);
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(pause * 2, 5000);
      next = 0;
    }
  }
}
