// What the server asks the person: forms, pages to open, answers of a model, logins. One dialog at a time.

import { post } from "./api.js";
import { bytes, clean, h, replace } from "./dom.js";
import { form } from "./form.js";
import { on } from "./state.js";
import { jsonText } from "./tree.js";

const queue = [];
let open = null;

function next() {
  if (open || queue.length === 0) return;
  open = queue.shift();
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" });
  open.dialog = dialog;
  replace(dialog, open.make(close));
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    open?.dismiss();
  });
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("input, textarea, select, button")?.focus();
}

function close() {
  const closed = open;
  open = null;
  closed?.dialog.close();
  closed?.dialog.remove();
  next();
}

export function dialog(entry) {
  queue.push(entry);
  next();
}

async function answer(question, body, wrong) {
  try {
    await post("answer", { question, ...body });
    close();
  } catch (error) {
    wrong.textContent = error.message;
    wrong.hidden = false;
  }
  return undefined;
}

const head = (title, session) => [h("p.kind", null, `The server asks (${session})`), h("h2", { id: "dialog-title" }, clean(title, 2000))];

function elicitation({ question, session, params }) {
  const wrong = h("p.fault", { role: "alert", hidden: true });
  const say = (action, content) => answer(question, { result: content === undefined ? { action } : { action, content } }, wrong);
  const others = [h("button", { type: "button", onclick: () => say("decline") }, "Decline"), h("button", { type: "button", onclick: () => say("cancel") }, "Cancel")];
  const make = () => {
    if (params.mode === "url") {
      const url = String(params.url ?? "");
      const safe = /^https?:\/\//i.test(url);
      const host = safe && URL.canParse(url) ? new URL(url).host : "";
      return [head(params.message, session), h("p.uri", null, clean(url, 1000)),
        safe ? h("p.note", null, "It opens in a new tab at ", h("strong", null, host), ". Nothing that you do there comes back to this page.") : h("p.fault", null, "This is not a web address, so it is not opened."),
        wrong, h("div.actions", null, safe ? h("a.button.primary", { href: url, target: "_blank", rel: "noopener noreferrer", onclick: () => say("accept") }, "Open") : null, others)];
    }
    const fields = form(params.requestedSchema);
    return [head(params.message, session), h("form", { novalidate: true, onsubmit: (event) => {
      event.preventDefault();
      const content = fields.read();
      if (content) say("accept", content);
    } }, fields.element, wrong, h("div.actions", null, h("button.primary", { type: "submit" }, "Accept"), others))];
  };
  return { question, make, dismiss: () => say("cancel") };
}

// The dialog of a question to a model. `say` takes the result, `refuse` nothing.
function modelDialog({ params, heading, wrong, say, refuse }) {
  const text = h("textarea", { rows: "5", id: "sampling-text" });
  const model = h("input", { type: "text", value: "a-person", id: "sampling-model" });
  const messages = (Array.isArray(params.messages) ? params.messages : []).slice(-20).map((message) => h("div.message", null, h("span.role", null, clean(message?.role, 40)),
    [message?.content].flat().slice(0, 20).map((part) => (part?.type === "text" ? h("p", null, clean(part.text, 4000)) : jsonText(part)))));
  return [heading, params.systemPrompt ? h("p.about", null, clean(params.systemPrompt, 2000)) : null, messages,
    h("details", null, h("summary", null, "Request"), jsonText(params)),
    h("form", { onsubmit: (event) => {
      event.preventDefault();
      say({ role: "assistant", model: model.value || "a-person", stopReason: "endTurn", content: { type: "text", text: text.value } });
    } }, h("label", { for: "sampling-text" }, "Answer"), text, h("label", { for: "sampling-model" }, "Model"), model, wrong,
    h("div.actions", null, h("button.primary", { type: "submit" }, "Answer"), h("button", { type: "button", onclick: refuse }, "Refuse")))];
}

function sampling({ question, session, params }) {
  const wrong = h("p.fault", { role: "alert", hidden: true });
  const refuse = () => answer(question, { error: "The user refused the request." }, wrong);
  const say = (result) => answer(question, { result }, wrong);
  return { question, make: () => modelDialog({ params, heading: head("The server asks your model", session), wrong, say, refuse }), dismiss: refuse };
}

function login({ url, session }) {
  const safe = /^https?:\/\//i.test(String(url));
  return {
    login: true, dismiss: close,
    make: () => [h("p.kind", null, `The server requires a login (${session})`), h("h2", { id: "dialog-title" }, "Log in"), h("p.uri", null, clean(url, 400)),
      h("p.note", null, "The page of the authorization server opens in a new tab. The session continues here when you are done."),
      h("div.actions", null, safe ? h("a.button.primary", { href: url, target: "_blank", rel: "noopener", onclick: () => setTimeout(close, 0) }, "Open the login page") : null,
        h("button", { type: "button", onclick: close }, "Later"))],
  };
}

const viewHead = (title) => [h("p.kind", null, "A view asks"), h("h2", { id: "dialog-title" }, title)];

// Shows a question of a view. `make` gets a function that ends it with a value; null is a refusal. `signal` withdraws it.
function ofView(make, signal) {
  return new Promise((resolve) => {
    const entry = { dismiss: () => end(null), make: () => make(end) };
    const end = (value) => {
      resolve(value);
      const index = queue.indexOf(entry);
      if (index >= 0) queue.splice(index, 1);
      if (open === entry) close();
    };
    if (signal.aborted) return resolve(null);
    signal.addEventListener("abort", () => end(null), { once: true });
    return dialog(entry);
  });
}

// Asks whether a link of a view may be opened.
export const confirmLink = (url, signal) => ofView((end) => [viewHead("Open this address?"), h("p.uri", null, clean(url, 1000)),
  h("div.actions", null, h("a.button.primary", { href: url, target: "_blank", rel: "noopener noreferrer", onclick: () => end(true) }, "Open"),
    h("button", { type: "button", onclick: () => end(null) }, "Refuse"))], signal);

// Asks whether files of a view may be saved.
export const confirmFiles = (files, signal) => ofView((end) => [viewHead(files.length === 1 ? "Save this file?" : `Save these ${files.length} files?`),
  h("ul.files", null, files.map((file) => h("li", null, h("strong", null, file.name), " ",
    h("span.hint", null, [file.type, Number.isFinite(file.size) ? bytes(file.size) : "", file.uri].filter(Boolean).map((text) => clean(text, 120)).join(" · "))))),
  h("div.actions", null, h("button.primary", { type: "button", onclick: () => end(true) }, "Save"), h("button", { type: "button", onclick: () => end(null) }, "Refuse"))], signal);

// Asks the person for the answer of a model to a view.
export const askModel = (params, signal) => ofView((end) => modelDialog({ params, heading: viewHead("A view asks your model"), wrong: null, say: end, refuse: () => end(null) }), signal);

// Questions that were asked before the page was opened come again as events, and their ends too.
const answered = new Set();

export function listen() {
  on("question", (event) => setTimeout(() => {
    if (answered.has(event.question)) return;
    dialog(event.kind === "sampling" ? sampling(event) : elicitation(event));
  }, 0));
  on("answered", (event) => {
    answered.add(event.question);
    const index = queue.findIndex((entry) => entry.question === event.question);
    if (index >= 0) queue.splice(index, 1);
    if (open?.question === event.question) close();
  });
  on("login", (event) => dialog(login(event)));
  on("session-open", () => {
    for (let index = queue.length - 1; index >= 0; index--) if (queue[index].login) queue.splice(index, 1);
    if (open?.login) close();
  });
}
