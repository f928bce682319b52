// What the page knows, and events when it changes.

export const MAX_WIRE = 10000;
const MAX_LOGS = 2000;
const MAX_CHANGES = 500;
const MAX_LATENCIES = 5000;

export const state = {
  info: null, // of the API
  session: "auto",
  sessions: new Map(), // by name: era, version, server, capabilities
  lists: { tools: [], resources: [], templates: [], prompts: [] },
  wire: [],
  dropped: 0, // entries of the wire that were dropped here or missed
  logs: [],
  changes: [],
  tasks: new Map(),
  latencies: [],
  blocked: [],
};

const bus = new EventTarget();
export const emit = (name, detail) => bus.dispatchEvent(new CustomEvent(name, { detail }));
export const on = (name, listener) => bus.addEventListener(name, (event) => listener(event.detail));

// Adds to a list that keeps its newest entries only.
export function keep(list, entry, max) {
  list.push(entry);
  if (list.length <= max) return 0;
  const surplus = list.length - max;
  list.splice(0, surplus);
  return surplus;
}

const requests = new Map(); // entries of requests, by session, sender and id
const keyOf = (entry, from) => `${entry.session} ${from} ${JSON.stringify(entry.id)}`;

const early = new Map(); // responses that were read before their request was recorded as written

function answered(asked, entry) {
  Object.assign(entry, { method: asked.method, subject: asked.subject, era: asked.era, took: Math.max(0, entry.at - asked.at), http: asked.http });
  asked.answered = entry.n;
}

function frame(event) {
  const entry = { ...event, http: null, answered: null };
  const other = entry.from === "client" ? "server" : "client";
  if (entry.kind === "request") {
    const key = keyOf(entry, entry.from);
    const response = early.get(key);
    early.delete(key);
    if (response) answered(entry, response);
    else requests.set(key, entry);
  } else if ((entry.kind === "result" || entry.kind === "error") && entry.id !== null) {
    const key = keyOf(entry, other);
    const asked = requests.get(key);
    requests.delete(key);
    if (asked) answered(asked, entry);
    else if (early.size < 100) early.set(key, entry);
  }
  entry.era ??= state.sessions.get(entry.session)?.era ?? "";
  if (requests.size > MAX_WIRE) requests.delete(requests.keys().next().value);
  state.dropped += keep(state.wire, entry, MAX_WIRE);
  emit("wire", entry);
}

// The heads of an HTTP exchange belong to its message, which comes shortly before or after.
function http(event) {
  for (let index = state.wire.length - 1, looked = 0; index >= 0 && looked < 200; index--, looked++) {
    const entry = state.wire[index];
    const same = entry.session === event.session && entry.from === "client" && entry.method === event.method
      && JSON.stringify(entry.id ?? null) === JSON.stringify(event.id ?? null);
    if (same && !entry.http) {
      entry.http = event;
      const answer = entry.answered === null ? null : state.wire.find((other) => other.n === entry.answered);
      if (answer) answer.http = event;
      emit("wire-detail", entry);
      return;
    }
  }
}

// Takes an event of the API.
export function take(event) {
  switch (event.type) {
    case "frame": return frame(event);
    case "http": return http(event);
    case "log": keep(state.logs, { ...event.message, at: event.at, session: event.session }, MAX_LOGS); return emit("logs");
    case "stderr": keep(state.logs, { level: "stderr", data: event.line, session: event.session }, MAX_LOGS); return emit("logs");
    case "change": keep(state.changes, event, MAX_CHANGES); return emit("change", event);
    case "task": {
      const known = state.tasks.get(event.task.taskId) ?? {};
      state.tasks.set(event.task.taskId, { ...known, ...event.task, session: event.session });
      return emit("tasks");
    }
    case "task-created": {
      const known = state.tasks.get(event.task) ?? { taskId: event.task, status: "working" };
      state.tasks.set(event.task, { ...known, session: event.session, call: event.call });
      return emit("tasks");
    }
    case "blocked": keep(state.blocked, event, MAX_CHANGES); return emit("blocked", event);
    default: return emit(event.type, event);
  }
}

export function measured(entry) {
  keep(state.latencies, entry, MAX_LATENCIES);
  emit("latency");
}
