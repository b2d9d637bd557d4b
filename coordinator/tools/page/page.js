"use strict";
// Looks at one group once a second. All texts of others go through `textContent`; nothing is made of HTML.
// A table changes only if its rows did, and keeps the keyboard focus.

const EVERY_MS = 1000;
const shown = { group: "", topic: "", partition: null, looking: false };
const drawn = new Map();
const linked = new URLSearchParams(location.search).get("group"); // the address names the group that is shown
const by = (id) => document.getElementById(id);
const count = (n) => (n === null || n === undefined ? "-" : n.toLocaleString("en"));
const time = (ms) => new Date(ms).toISOString().slice(0, 19).replace("T", " ");
const plane = by("plane").attachShadow({ mode: "open" }); // the style of a picture stays inside

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function changed(id, value) {
  const text = JSON.stringify(value);
  if (drawn.get(id) === text) return false;
  drawn.set(id, text);
  return true;
}

function table(id, columns, rows, empty) {
  if (!changed(id, rows)) return;
  const focused = by(id).contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const body = element("tbody");
  for (const row of rows) {
    const line = element("tr");
    for (const [, value, kind] of columns) {
      const cell = element("td", undefined, kind);
      const found = value(row);
      if (found instanceof Node) cell.append(found);
      else cell.textContent = typeof found === "number" ? count(found) : found ?? "-";
      line.append(cell);
    }
    body.append(line);
  }
  const head = element("tr");
  for (const [title, , kind] of columns) {
    const cell = element("th", title, kind === "number" ? "number" : "");
    cell.scope = "col";
    head.append(cell);
  }
  const top = element("thead");
  top.append(head);
  by(id).replaceChildren(...(rows.length ? [top, body] : [element("caption", empty)]));
  if (focused) [...by(id).querySelectorAll("button")].find((b) => b.dataset.key === focused)?.focus();
}

async function ask(path, values) {
  const answer = await fetch(`api/${path}?${new URLSearchParams(values)}`);
  const content = await answer.json();
  if (!answer.ok) throw new Error(`${content.error}. ${content.remedy}`);
  return content;
}

function bad(text, isBad) {
  return element("span", text, isBad ? "bad" : "");
}

const where = [
  ["partition", (l) => `${l.topic}-${l.partition}`],
];

function showGroup(seen) {
  by("state").textContent = `${seen.state}, generation ${seen.generation}` +
    (seen.recovering_ms ? `, recovers for ${Math.ceil(seen.recovering_ms / 1000)} s` : "");
  const age = seen.end_age_s === null ? "" : `, as seen ${Math.round(seen.end_age_s)} s ago`;
  by("lag").textContent = `${count(seen.lag)} offsets behind the end offsets${age}` + (seen.trouble ? ` (${seen.trouble})` : "");
  showLags(seen.lags);
  table("members", [
    ["member", (m) => m.member],
    ["state", (m) => bad(m.state, m.state !== "working" && m.state !== "standby")],
    ["host", (m) => m.host],
    ["lease left s", (m) => (m.lease_left_ms / 1000).toFixed(0), "number"],
    ["batch runs s", (m) => (m.runs_s === null ? "-" : m.runs_s.toFixed(0)), "number"],
    ["records/s", (m) => Math.round(m.rate), "number"],
    ["slowest lane", (m) => m.slowest_lane],
  ], seen.members, "no member");
  table("partitions", [
    ["partition", (p) => choice(p)],
    ["lag", (p) => p.lag, "number"],
    ["stable offset", (p) => p.stable, "number"],
    ["end offset", (p) => p.end, "number"],
    ["gaps", (p) => p.gaps, "number"],
    ["lanes", (p) => p.lanes, "number"],
    ["owners", (p) => p.owners, "number"],
    ["failing keys", (p) => p.failing, "number"],
  ], seen.partitions, "no positions yet");
  const all = Object.values(seen.topics).reduce((sum, n) => sum + n, 0);
  by("more").textContent = all > seen.partitions.length ? `${count(seen.partitions.length)} of ${count(all)} partitions` : "";
  table("lanes", [
    ...where,
    ["hashes", (l) => l.hashes],
    ["member", (l) => l.member],
    ["lag", (l) => l.lag, "number"],
    ["lag s", (l) => (l.lag_s === null ? "-" : `${l.lag_at_least ? ">" : ""}${count(l.lag_s)}`), "number"],
    ["records/s", (l) => l.rate, "number"],
    ["drains in s", (l) => l.drain_s ?? "-", "number"],
    ["ms a record", (l) => l.record_ms || "-", "number"],
    ["quota", (l) => l.quota, "number"],
    ["limit", (l) => l.why],
  ], seen.lanes, "no lane at work");
  table("failing", [
    ...where,
    ["key hash", (k) => k.hash],
    ["offset", (k) => k.offset, "number"],
    ["state", (k) => bad(k.state, k.state === "parked")],
    ["attempts", (k) => k.attempts, "number"],
    ["error", (k) => `${k.error}: ${k.message}`, "text"],
  ], seen.failing, "no failing key");
  by("counts").textContent = `${count(seen.failing_keys.deferred)} tried again, ${count(seen.failing_keys.parked)} quarantined`;
  table("parked", [
    ...where,
    ["hashes", (s) => s.hashes],
    ["offset", (s) => s.offset, "number"],
  ], seen.parked, "no quarantined lane");
  choices("topic", Object.keys(seen.topics));
  choices("of", Object.keys(seen.topics));
  if (shown.partition === null && seen.partitions.length) show(seen.partitions[0]);
}

function choice(p) {
  const made = element("button", `${p.topic}-${p.partition}`, "link");
  made.type = "button";
  made.dataset.key = made.textContent;
  made.addEventListener("click", () => { show(p); look(); });
  return made;
}

function show(p) {
  shown.topic = p.topic;
  shown.partition = p.partition;
}

function choices(id, names) {
  if (!changed(id, names)) return;
  const box = by(id), before = box.value;
  box.replaceChildren(...names.map((name) => { const o = element("option", name); o.value = name; return o; }));
  if (names.includes(before)) box.value = before;
}

function showLags(lags) {
  const axis = { most: "", since: "", now: "" };
  if (lags.length < 2) {
    by("lags").replaceChildren();
    return showTexts({ ...axis, now: "the curve begins at the second look" });
  }
  const most = Math.max(1, ...lags.map(([, lag]) => lag));
  const [first, last] = [lags[0][0], lags[lags.length - 1][0]];
  showTexts({ most: `${count(most)} offsets`, since: `${time(first)} UTC`, now: `${time(last)} UTC` });
  const x = (at) => (last > first ? (300 * (at - first)) / (last - first) : 0);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", lags.map(([at, lag], n) => `${n ? "L" : "M"}${x(at)},${88 - (86 * lag) / most}`).join(""));
  by("lags").setAttribute("viewBox", "0 0 300 90");
  by("lags").setAttribute("preserveAspectRatio", "none");
  by("lags").replaceChildren(path);
}

function showTexts(texts) {
  for (const [id, text] of Object.entries(texts)) by(id).textContent = text;
}

async function showPlane() {
  if (shown.partition === null) return plane.replaceChildren();
  const values = new URLSearchParams({ group: shown.group, topic: shown.topic, partition: shown.partition });
  const answer = await fetch(`api/picture?${values}`);
  const text = await answer.text();
  if (!changed("plane", text)) return;
  if (!answer.ok) return plane.replaceChildren(element("p", JSON.parse(text).error));
  const picture = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  picture.style.maxWidth = "100%";
  picture.style.height = "auto";
  plane.replaceChildren(document.importNode(picture, true));
}

async function showEvents() {
  table("events", [
    ["at (UTC)", (e) => time(e.at_ms)],
    ["event", (e) => e.kind],
    ["member", (e) => e.member || "-"],
    ["why", (e) => e.why, "text"],
    ["key ranges", (e) => e.ranges, "text"],
  ], (await ask("events", { group: shown.group })).reverse(), "no event");
}

async function look() {
  if (shown.looking) return;
  shown.looking = true;
  try {
    const names = await ask("groups", {});
    choices("groups", names);
    if (!shown.group && names.includes(linked)) by("groups").value = linked;
    if (by("groups").value !== shown.group) {
      Object.assign(shown, { group: by("groups").value, topic: "", partition: null });
      by("owners").replaceChildren();
      history.replaceState(null, "", shown.group ? `?${new URLSearchParams({ group: shown.group })}` : ".");
    }
    document.title = shown.group ? `${shown.group} - coop-kafka` : "coop-kafka";
    if (shown.group) {
      showGroup(await ask("group", { group: shown.group }));
      await showPlane();
      await showEvents();
    }
    by("error").hidden = true;
  } catch (error) {
    by("error").textContent = error.message;
    by("error").hidden = false;
  } finally {
    shown.looking = false;
  }
}

by("groups").addEventListener("change", look);
by("choose").addEventListener("submit", (event) => {
  event.preventDefault();
  show({ topic: by("topic").value, partition: by("number").value });
  look();
});
by("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const found = await ask("owner", { group: shown.group, topic: by("of").value, key: by("key").value });
    drawn.delete("owners");
    table("owners", [
      ["partition", (o) => `${o.partition}${o.usual ? " *" : ""}`, "number"],
      ["key hash", (o) => o.key_hash],
      ["lane", (o) => o.hashes],
      ["position", (o) => o.position, "number"],
      ["member", (o) => o.member ?? "nobody"],
      ["host", (o) => o.host ?? "-"],
    ], found, "no partition");
  } catch (error) {
    by("owners").replaceChildren(element("caption", error.message));
  }
});

(async function always() {
  await look();
  setTimeout(always, EVERY_MS);
})();
