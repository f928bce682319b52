// The same request in both eras, side by side.

import { request } from "./api.js";
import { connect } from "./connect.js";
import { outcome } from "./content.js";
import { bytes, duration, h, replace } from "./dom.js";
import { state } from "./state.js";

// What differs between eras by definition is not compared.
function plain(result) {
  if (Array.isArray(result)) return result.map(plain);
  if (result === null || typeof result !== "object") return result;
  const kept = Object.entries(result).filter(([name]) => !["_meta", "resultType", "ttlMs", "cacheScope"].includes(name));
  return Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => [name, plain(value)]));
}

async function run(session, item, column) {
  replace(column, h("h3", null, session), h("p.note", null, "Connecting…"));
  let about;
  try {
    about = await connect(session);
  } catch (error) {
    replace(column, h("h3", null, session), h("p.fault", null, error.message));
    return null;
  }
  const done = await request(item.method, item.params, { session }).done;
  // Messages of the opening can be recorded late, so counting begins with the request itself.
  const own = state.wire.filter((entry) => entry.session === session);
  const frames = own.slice(Math.max(0, own.findLastIndex((entry) => entry.kind === "request" && entry.method === item.method)));
  const total = frames.reduce((sum, entry) => sum + entry.size, 0);
  const facts = [["revision", about.version], ["time", duration(done.ms)], ["messages", String(frames.length)], ["bytes", bytes(total)]];
  replace(column, h("h3", null, `${session} era`), h("dl.facts", null, facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))), outcome(done));
  return done;
}

export async function compare(item, place) {
  const columns = [h("div.column", { "data-era": "handshake" }), h("div.column", { "data-era": "envelope" })];
  const verdict = h("p.verdict", { role: "status" });
  replace(place, h("section.compare", { "aria-label": "Both eras" }, h("h3", null, "Both eras"), verdict, h("div.columns", null, columns)));
  const [first, second] = await Promise.all([run("handshake", item, columns[0]), run("envelope", item, columns[1])]);
  if (!first || !second) verdict.textContent = "The server does not speak both eras.";
  else if (first.ok !== second.ok) verdict.textContent = "One era fails.";
  else {
    const same = JSON.stringify(plain(first.result ?? first.error)) === JSON.stringify(plain(second.result ?? second.error));
    verdict.textContent = same ? "Both eras give the same result." : "The results differ.";
  }
}
