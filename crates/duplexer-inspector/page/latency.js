// How long requests take: a histogram with percentiles.

import { clean, duration, h, replace, svg } from "./dom.js";
import { on, state } from "./state.js";

const WIDTH = 400;
const HEIGHT = 130;

const percentile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)];

// Bins on a logarithmic scale: four to a factor of ten.
function bins(times) {
  const bin = (ms) => Math.floor(Math.log10(Math.max(ms, 0.01)) * 4);
  const counts = new Map();
  for (const ms of times) counts.set(bin(ms), (counts.get(bin(ms)) ?? 0) + 1);
  const keys = [...counts.keys()];
  const [from, to] = [Math.min(...keys), Math.max(...keys)];
  return Array.from({ length: to - from + 1 }, (_, index) => ({ start: 10 ** ((from + index) / 4), count: counts.get(from + index) ?? 0 }));
}

function histogram(times) {
  const all = bins(times);
  const most = Math.max(...all.map((one) => one.count));
  const step = Math.min(60, WIDTH / all.length);
  const bars = all.map((one, index) => {
    const height = one.count ? Math.max(2, (one.count / most) * (HEIGHT - 40)) : 0;
    return [
      svg("rect", { class: "bar", x: index * step + 2, y: HEIGHT - 20 - height, width: step - 4, height, rx: 2 }),
      one.count ? svg("text", { class: "bar-count", x: index * step + step / 2, y: HEIGHT - 25 - height }, String(one.count)) : null,
      all.length <= 10 || index % 2 === 0 ? svg("text", { class: "bar-label", x: index * step, y: HEIGHT - 6 }, duration(one.start)) : null,
    ];
  });
  return svg("svg", { class: "histogram", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Histogram of ${times.length} requests` }, bars);
}

export function latencyPanel(repeat) {
  const subject = h("select", { "aria-label": "Requests", onchange: () => draw() });
  const body = h("div");
  const again = h("button.small", { type: "button", disabled: true, onclick: async () => {
    again.disabled = true;
    await repeat(20);
    again.disabled = false;
  } }, "Repeat the last call 20 times");
  const panel = h("div.panel.pad", null, h("div.bar-row", null, subject, again), body);
  let known = "";

  function draw() {
    if (panel.hidden) return;
    const names = [...new Set(state.latencies.map((one) => (one.subject ? `${one.method} ${one.subject}` : one.method)))].slice(-200);
    if (names.join("\n") !== known) {
      const before = subject.value;
      known = names.join("\n");
      replace(subject, h("option", { value: "" }, "all requests"), names.map((name) => h("option", { value: name }, clean(name, 80))));
      subject.value = names.includes(before) ? before : "";
    }
    const chosen = state.latencies.filter((one) => !subject.value || `${one.method} ${one.subject}`.trim() === subject.value);
    if (!chosen.length) return replace(body, h("p.empty", null, "No request has been answered yet."));
    const times = chosen.map((one) => one.ms).sort((a, b) => a - b);
    const failed = chosen.filter((one) => !one.ok).length;
    const facts = [["requests", String(times.length)], ["failed", String(failed)], ["p50", duration(percentile(times, 0.5))],
      ["p95", duration(percentile(times, 0.95))], ["p99", duration(percentile(times, 0.99))], ["max", duration(times.at(-1))]];
    return replace(body, histogram(times), h("dl.facts", null, facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))));
  }

  let pending = null;
  on("latency", () => { pending ??= requestAnimationFrame(() => { pending = null; draw(); }); });
  on("repeatable", (can) => { again.disabled = !can; });
  return { panel, draw };
}
