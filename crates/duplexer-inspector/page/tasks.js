// Tasks: their state, as it changes, and what can be done about them. Questions of a task are dialogs, like all others.

import { request } from "./api.js";
import { clean, h, replace } from "./dom.js";
import { outcome } from "./content.js";
import { on, state } from "./state.js";

const ENDED = new Set(["completed", "failed", "cancelled"]);

export function taskPanel() {
  const rows = h("div.tasks");
  const panel = h("div.panel.scroll", { tabindex: "0" }, rows);

  async function ask(task, method) {
    const done = await request(method, { taskId: task.taskId }, { session: task.session }).done;
    if (done.ok && done.result?.taskId === task.taskId) Object.assign(task, done.result);
    task.answer = done;
    draw();
  }

  function row(task) {
    const kind = task.status === "completed" ? "good" : ENDED.has(task.status) ? "bad" : "busy";
    const ended = ENDED.has(task.status);
    return h("article.task", { "data-task": task.taskId }, h("p", null, h(`span.badge.${kind}`, null, clean(task.status, 40)), " ",
      h("code", null, clean(task.taskId, 60)), " ", h("span.hint", null, task.session)),
    task.statusMessage ? h("p.about", null, clean(task.statusMessage, 500)) : null,
    h("p.note", null, [task.createdAt && `created ${clean(task.createdAt, 40)}`, task.lastUpdatedAt && `changed ${clean(task.lastUpdatedAt, 40)}`].filter(Boolean).join(", ")),
    h("div.buttons", null, h("button.small", { type: "button", onclick: () => ask(task, "tasks/get") }, "Get state"),
      ended ? null : h("button.small.danger", { type: "button", onclick: () => ask(task, "tasks/cancel") }, "Cancel task")),
    task.answer ? outcome(task.answer) : null);
  }

  function draw() {
    if (panel.hidden) return;
    const all = [...state.tasks.values()].slice(-50).reverse();
    replace(rows, all.length ? all.map(row) : h("p.empty", null, "No call has become a task."));
  }

  on("tasks", draw);
  return { panel, draw };
}
