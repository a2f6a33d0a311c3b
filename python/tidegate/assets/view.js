// The dashboard: what a finished run or one that goes on has, from binary messages of a WebSocket. Every name goes into the page as text.
"use strict";
const one = (name) => document.getElementById(name);
const SHOWN = 40, POINTS = 1200, LINES = 8, KEPT = 64, TOO_MANY = 4001, CHOICE_MS = 2000, NOTES = 12, REACH = 10, DIRECTIONS = 6;
let about = {}, charts = [], history = null, columns = {}, header = {}, chosen = -1, order = { flows: ["", 1], queues: ["", 1], ports: ["", 1] };
let socket = null, places = [], spots = [], pointed = null, pointer = [0, 0], watched = "", drawing = false, listed = {};

function element(tag, text, more = {}) {
  const made = document.createElement(tag);
  if (text != null) made.textContent = text;
  for (const [name, value] of Object.entries(more)) made.setAttribute(name, value);
  return made;
}

// A name of any length and script: it has its own direction, and its end is cut off where there is no room.
function nameCell(tag, text) { return element(tag, text, { class: "name", dir: "auto", title: text }); }

function write(cell, text) { if (cell.written !== text) { cell.written = text; cell.textContent = text; } }

// Screen readers announce the state whenever it changes, and not the time.
function tell(state, time = "", bad = false) { write(one("state"), state); write(one("time"), time); one("status").className = bad ? "bad" : ""; }

// Rows that a message does not have are as they were.
function read(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const found = {};
  let at = 4 + length;
  for (const [name, count] of header.columns) { found[name] = new Float32Array(buffer, at, count); at += 4 * count; }
  for (const [name, values] of Object.entries(found)) {
    const kind = name.split(" ", 1)[0], rows = found[`${kind} at`];
    if (name === `${kind} at`) continue;
    if (!rows) columns[name] = values;
    else {
      columns[name] ??= new Float32Array((about[`${kind}s`] || []).length).fill(NaN);
      for (let n = 0; n < rows.length; n++) columns[name][rows[n]] = values[n];
    }
  }
}

function begin(said) {
  // While a run is written, its cases come in the order of their ends, and the one that is shown may have another number.
  const of = (what) => JSON.stringify([what.run, what.cases?.[what.shown], what.charts]);
  const same = about.kind === "finished" && said.kind === "finished" && of(about) === of(said);
  about = said; columns = {}; listed = {}; pointed = null;
  if (!same) {
    charts.forEach((chart) => chart.destroy());
    charts = []; history = null; chosen = -1; watched = "";
    one("traced").hidden = true; one("noted").hidden = true;
  }
  one("title").textContent = one("title").title = about.title;
  const shown = about.cases?.[about.shown];
  document.title = `${shown ? `${about.title}, ${shown}` : about.title} - Tidegate`;
  one("controls").hidden = about.kind !== "running";
  one("left-out").textContent = about.left_out || "";
  const several = (about.cases || []).length > 1;
  one("choice").hidden = !several;
  if (several) { one("case").replaceChildren(...about.cases.map((name) => element("option", name))); one("case").selectedIndex = about.shown; }
  topology();
}

// Series of a kind over time: the largest ones, since they were among them.
class History {
  constructor(place, title, unit, names) { Object.assign(this, { place, title, unit, names, times: [], series: new Map(), wanted: [], kept: [], chart: null, chosenAt: 0 }); }
  add(time, values) {
    if (this.times.length && time <= this.times[this.times.length - 1]) return;
    const first = chosen >= 0 && this.title === "Flow rate" ? [chosen] : [];
    if (!this.wanted.length || performance.now() - this.chosenAt > CHOICE_MS || first.some((n) => !this.series.has(n))) {
      this.wanted = largest(values, 4 * LINES, first);
      this.chosenAt = performance.now();
      for (const n of this.wanted) if (!this.series.has(n)) this.series.set(n, this.times.map(() => null));
      for (const n of [...this.series.keys()]) if (this.series.size > KEPT && !this.wanted.includes(n)) this.series.delete(n);
      this.kept = this.wanted.slice(0, LINES).sort((a, b) => a - b);
    }
    this.times.push(time);
    for (const [n, line] of this.series) line.push(Number.isNaN(values[n]) ? null : values[n]);
    if (this.times.length > POINTS) { // Every other one of the older half.
      const keep = (_, at) => at >= POINTS / 2 || at % 2 === 0;
      this.times = this.times.filter(keep);
      for (const [n, line] of this.series) this.series.set(n, line.filter(keep));
    }
  }
  draw() {
    if (this.times.length < 2) return;
    const data = [this.times, ...this.kept.map((n) => this.series.get(n))];
    const names = this.kept.map((n) => this.names[n]);
    if (this.chart && this.chart.names.join("\0") !== names.join("\0")) this.chart.rename(names, data);
    else if (this.chart) this.chart.set(data);
    else { this.chart = new Chart(this.place, this.title, this.unit, names, data); charts.push(this.chart); }
  }
}

// The numbers of the largest of some values, those of `first` before them. NaN is less than all.
function largest(values, count, first = [], way = -1, among = null) {
  const found = [], size = among ? among.length : values.length;
  for (let i = 0; i < size; i++) {
    const n = among ? among[i] : i, value = Number.isNaN(values[n]) ? -Infinity : -way * values[n];
    if (found.length === count && value <= found[count - 1][0]) continue;
    let at = found.length;
    while (at > 0 && found[at - 1][0] < value) at--;
    found.splice(at, 0, [value, n]);
    if (found.length > count) found.pop();
  }
  return [...first, ...found.map(([, n]) => n).filter((n) => !first.includes(n))].slice(0, count);
}

function draw() {
  drawing = false;
  if (document.hidden || !header.columns) return;
  if (about.kind === "finished") finished(); else if (history) running();
  const ports = about.kind === "switch";
  one("flowing").hidden = ports; one("porting").hidden = !ports;
  if (ports) rows("ports", about.ports, true); else rows("flows", about.flows || [], true);
  rows("queues", about.queues || [], false);
  paint();
  watch();
  document.documentElement.dataset.frames = Number(document.documentElement.dataset.frames ?? 0) + 1;
}

function redraw() { if (!drawing) { drawing = true; requestAnimationFrame(draw); } }

// What is shown is looked at each time; other flows of many have their turn.
function watch() {
  if (about.kind !== "running") return;
  const flows = new Set([...(history?.["flow rate_mbps"].kept ?? []), ...(listed.flows ?? []).slice(0, SHOWN)]);
  if (chosen >= 0) flows.add(chosen);
  const list = [...flows].sort((a, b) => a - b);
  if (list.join() !== watched) { watched = list.join(); say({ watch: list }); }
}

function counted(count, what) { return `${count} ${what}${count === 1 ? "" : "s"}`; }

function finished() {
  const runs = (about.cases || []).length, so = `${counted((about.flows || []).length, "flow")}, ${counted((about.queues || []).length, "queue")}`;
  const state = about.written ? "the run is being written" : about.early ? "the run has ended early" : "";
  const done = runs ? `, ${runs} done${about.written ? " so far" : "; the same command with --resume does the others"}; this one: ${so}` : `; none of its cases is done${about.written ? " yet" : ""}`;
  tell(state ? state + done : so);
  if (charts.length) return;
  (about.charts || []).forEach((chart, number) => {
    const data = [gaps(columns[`chart ${number} x`]), ...chart.names.map((_, at) => gaps(columns[`chart ${number} ${at}`]))];
    charts.push(new Chart(one("charts"), chart.title, chart.unit, chart.names, data));
  });
}

function histories() {
  const place = one("charts");
  return about.kind === "switch" ? {
    "port rate_mbps": new History(place, "Port rate", "Mbit/s", about.ports), "port packets_per_s": new History(place, "Port packets", "packets/s", about.ports),
    "queue packets": new History(place, "Queues", "packets", about.queues), notes: {},
  } : {
    "flow rate_mbps": new History(place, "Flow rate", "Mbit/s", about.flows), "queue packets": new History(place, "Queues", "packets", about.queues),
    "queue delay_ms": new History(place, "Queue delay", "ms", about.queues), "queue rate_mbps": new History(place, "Link rate", "Mbit/s", about.queues), notes: {},
  };
}

function running() {
  const state = header.ended ? "ended" : header.paused ? "paused" : "running";
  const until = about.until_s ? ` of ${shown(about.until_s)} s` : "";
  tell(state, `at ${header.t == null ? 0 : +header.t.toFixed(6)} s${until}`);
  write(one("pause"), header.paused ? "Go on" : "Pause");
  one("pause").disabled = one("step").disabled = !!header.ended;
  for (const [name, kind] of Object.entries(history)) if (name !== "notes" && columns[name]) kind.draw();
  for (const note of Object.values(history.notes)) note.draw();
  const names = Object.keys(header.notes);
  one("noted").hidden = !names.length;
  const body = one("notes").tBodies[0];
  while (body.rows.length > names.length) body.lastChild.remove();
  names.forEach((text, at) => {
    let row = body.rows[at];
    if (!row || row.cells[0].textContent !== text) { const made = element("tr"); made.append(nameCell("td", text), element("td", "", { class: "n" })); if (row) row.replaceWith(made); else body.append(made); row = made; }
    write(row.cells[1], shown(header.notes[text]));
  });
  trace();
}

// What has come, whether it is drawn or not.
function keep() {
  if (about.kind === "finished") return;
  history ??= histories();
  for (const [name, kind] of Object.entries(history)) if (name !== "notes" && columns[name]) kind.add(header.t, columns[name]);
  for (const [name, value] of Object.entries(header.notes).slice(0, NOTES)) (history.notes[name] ??= new History(one("charts"), name, "", [name])).add(header.t, [value]);
}

let traced = "";
function trace() {
  const found = header.trace;
  one("traced").hidden = !found;
  if (!found) { traced = ""; return; }
  const text = JSON.stringify(found);
  if (text === traced) return;
  traced = text;
  one("chosen").textContent = found.only || (found.name ?? about.flows[found.flow]);
  one("problem").textContent = found.problem || (!found.packets.length ? "no packet yet" : [found.sampled ? "a sample: the port carries more than can be shown" : "", found.left_out ? `${found.left_out} more flows` : ""].filter(Boolean).join("; "));
  seen(found);
  one("packets").tBodies[0].replaceChildren(...found.packets.slice().reverse().map((packet) => {
    const row = element("tr");
    row.append(...packet.map((value, at) => element("td", at === 0 ? value.toFixed(6) : value ?? "", { class: typeof value === "number" ? "n" : "" })));
    return row;
  }));
}

// The flows of a switch's port. Their order stays while somebody points at them or has the focus there.
function seen(found) {
  one("seeing").hidden = !found.flows;
  if (!found.flows) return;
  const body = one("seen").tBodies[0], held = body.contains(document.activeElement) || body.matches(":hover"), by = new Map(found.flows.map((flow) => [flow[0], flow]));
  const names = held ? [...body.rows].map((row) => row.dataset.name) : [...by.keys()];
  while (body.rows.length > names.length) body.lastChild.remove();
  names.forEach((name, at) => {
    let row = body.rows[at];
    if (!row) {
      const made = element("tr"), cell = nameCell("td", ""), button = element("button", "", { type: "button", class: "flow" });
      button.addEventListener("click", () => say({ only: button.getAttribute("aria-pressed") === "true" ? "" : made.dataset.name }));
      cell.append(button);
      made.append(cell, ...[0, 1, 2].map(() => element("td", "", { class: "n" })));
      body.append(row = made);
    }
    if (row.dataset.name !== name) { row.dataset.name = name; row.cells[0].title = name; row.cells[0].firstElementChild.textContent = name; }
    row.cells[0].firstElementChild.setAttribute("aria-pressed", String(name === found.only));
    row.setAttribute("aria-selected", String(name === found.only));
    (by.get(name) ?? []).slice(1).forEach((value, number) => write(row.cells[number + 1], value == null ? "" : shown(value)));
  });
}

// Some rows of a table, the largest of the chosen column first. Their order stays while somebody points at them or has the focus there.
function rows(kind, names, choose) {
  const table = one(kind), prefix = `${kind.slice(0, -1)} `;
  const fields = Object.keys(columns).filter((name) => name.startsWith(prefix));
  if (table.dataset.fields !== fields.join()) {
    table.dataset.fields = fields.join();
    const head = element("tr");
    ["", ...fields].forEach((field, at) => {
      const cell = element("th", null, { scope: "col" }), button = element("button", at ? titled(field.slice(prefix.length)) : kind.slice(0, -1), { type: "button" });
      button.addEventListener("click", () => { order[kind] = [field, order[kind][0] === field ? -order[kind][1] : field ? -1 : 1]; delete listed[kind]; redraw(); });
      if (at) cell.className = "n";
      cell.dataset.field = field;
      cell.append(button); head.append(cell);
    });
    const top = element("thead");
    top.append(head);
    table.replaceChildren(top, element("tbody"));
  }
  const [field, way] = order[kind], body = table.tBodies[0];
  table.querySelectorAll("th").forEach((cell) => { if (cell.dataset.field === field) cell.setAttribute("aria-sort", way > 0 ? "ascending" : "descending"); else cell.removeAttribute("aria-sort"); });
  const wanted = kind === "flows" ? one("find").value.toLowerCase() : "", held = body.contains(document.activeElement) || body.matches(":hover");
  if (!listed[kind] || listed[kind].wanted !== wanted || !held) {
    let found = null;
    if (wanted) { names.lower ??= names.map((name) => name.toLowerCase()); found = [...names.keys()].filter((n) => names.lower[n].includes(wanted)); }
    const key = columns[field], count = found ? found.length : names.length;
    listed[kind] = key ? largest(key, SHOWN, [], way, found) : Array.from({ length: Math.min(SHOWN, count) }, (_, at) => { const n = way > 0 ? at : count - 1 - at; return found ? found[n] : n; });
    listed[kind].wanted = wanted;
    if (kind === "flows") one("count").textContent = count > SHOWN ? `${SHOWN} of ${count} shown` : "";
  }
  while (body.rows.length > listed[kind].length) body.lastChild.remove();
  listed[kind].forEach((n, at) => {
    let row = body.rows[at];
    if (!row) {
      row = element("tr"); body.append(row);
      const cell = nameCell("td", "");
      if (choose && about.kind !== "finished") {
        const button = element("button", "", { type: "button", class: "flow" });
        button.addEventListener("click", () => { chosen = chosen === Number(row.dataset.n) ? -1 : Number(row.dataset.n); say({ trace: chosen }); redraw(); });
        cell.append(button);
      }
      row.append(cell, ...fields.map(() => element("td", "", { class: "n" })));
    }
    if (row.dataset.n !== String(n)) {
      row.dataset.n = n;
      row.cells[0].title = names[n];
      (row.cells[0].firstElementChild ?? row.cells[0]).textContent = names[n];
    }
    row.setAttribute("aria-selected", String(choose && n === chosen));
    row.cells[0].firstElementChild?.setAttribute("aria-pressed", String(n === chosen));
    fields.forEach((name, number) => write(row.cells[number + 1], shown(columns[name][n])));
  });
}

// `queue_delay_ms_p99` is "queue delay p99 (ms)".
function titled(field) {
  const units = { _per_s: "1/s", _mbps: "Mbit/s", _ms: "ms", _packets: "packets", _s: "s" };
  for (const [end, unit] of Object.entries(units)) {
    const at = field.indexOf(end);
    if (at > 0 && (at + end.length === field.length || field[at + end.length] === "_")) return `${(field.slice(0, at) + field.slice(at + end.length)).replaceAll("_", " ")} (${unit})`;
  }
  return field.replaceAll("_", " ");
}

// Nodes between others are on an inner circle, hosts on an outer one beside the node that they are linked to.
function topology() {
  const nodes = about.nodes || [], links = about.links || [];
  const inner = [...nodes.keys()].filter((n) => nodes[n][1] !== "host"), outer = [...nodes.keys()].filter((n) => nodes[n][1] === "host");
  const next = new Map();
  for (const [a, b] of links) { next.set(a, next.get(a) ?? b); next.set(b, next.get(b) ?? a); }
  outer.sort((a, b) => inner.indexOf(next.get(a)) - inner.indexOf(next.get(b)) || a - b);
  places = []; spots = [];
  const round = (list, radius) => list.forEach((n, at) => { const turn = 2 * Math.PI * (at + 0.5) / list.length - Math.PI; places[n] = [0.5 + radius * Math.cos(turn), 0.5 + radius * Math.sin(turn)]; });
  round(outer, 0.42);
  if (inner.length === 1) places[inner[0]] = [0.5, 0.5];
  else if (outer.length) inner.forEach((n) => {
    const own = outer.filter((host) => next.get(host) === n).map((host) => places[host]);
    if (own.length) places[n] = [0, 1].map((axis) => 0.5 + 0.5 * (own.reduce((sum, place) => sum + place[axis], 0) / own.length - 0.5));
  });
  round(inner.filter((n) => !places[n]), 0.12);
  one("topology").setAttribute("aria-label", `Topology: ${inner.length} switches and routers, ${counted(outer.length, "host")}, ${counted(links.length, "link")}`);
  one("links").textContent = links.length ? about.kind === "switch" ? "Thick: busy port, of those with a rate. Point at a port for its numbers." : "Thick: busy link. Coloured and dashed: its queue has packets or has dropped some. Point at a node or a link for its numbers." : "The run has no links.";
}

// The share of a rate that is used; a port may have none.
function use(used, rate) { return rate ? used / rate : 0; }

function paint() {
  const canvas = one("topology"), scale = devicePixelRatio || 1, wide = canvas.clientWidth, high = canvas.clientHeight;
  if (canvas.width !== Math.round(wide * scale) || canvas.height !== Math.round(high * scale)) { canvas.width = Math.round(wide * scale); canvas.height = Math.round(high * scale); }
  const draw = canvas.getContext("2d"), soft = variable("--soft"), text = variable("--text"), back = variable("--back"), warm = colourOf(3), cold = colourOf(0);
  draw.setTransform(scale, 0, 0, scale, 0, 0);
  draw.clearRect(0, 0, wide, high);
  spots = places.map(([x, y]) => [x * (wide - 90) + 45, y * (high - 44) + 22]);
  const ports = about.kind === "switch";
  const packets = ports ? [] : columns["queue packets"] || [], rate = columns[ports ? "port rate_mbps" : "queue rate_mbps"] || [], dropped = columns["queue dropped"] || [];
  const queue = new Map(((ports ? about.ports : about.queues) || []).map((name, number) => [name, number]));
  const thick = (about.links || []).length > 60 ? 2 : 4;
  (about.links || []).forEach(([a, b, there, back]) => {
    const both = [queue.get(there), queue.get(back)].filter((n) => n != null);
    const share = Math.max(0, ...both.map((n) => (about.rates_mbps ? use(rate[n], about.rates_mbps[n]) : columns["queue utilisation"]?.[n]) || 0));
    const busy = about.kind !== "finished" ? both.some((n) => packets[n] > 0) : both.some((n) => dropped[n] > 0);
    draw.beginPath(); draw.moveTo(...spots[a]); draw.lineTo(...spots[b]);
    draw.lineWidth = 1 + thick * Math.min(1, share); draw.strokeStyle = busy ? warm : soft; draw.setLineDash(busy ? [7, 4] : []); draw.stroke();
  });
  draw.setLineDash([]);
  if (pointed) {
    const [a, b = a] = pointed;
    draw.beginPath(); draw.moveTo(...spots[a]); draw.lineTo(...spots[b]);
    draw.lineWidth = a === b ? 22 : 9; draw.lineCap = "round"; draw.globalAlpha = 0.45; draw.strokeStyle = variable("--accent"); draw.stroke();
    draw.lineCap = "butt"; draw.globalAlpha = 1;
  }
  draw.font = "12px system-ui, sans-serif"; draw.textAlign = "center"; draw.textBaseline = "middle";
  const nodes = about.nodes || [], named = nodes.length <= Math.min(60, wide / 14);
  nodes.forEach(([, kind], n) => {
    const [x, y] = spots[n];
    draw.fillStyle = kind === "host" ? back : cold; draw.strokeStyle = text; draw.lineWidth = 1;
    draw.beginPath();
    if (kind === "host") draw.arc(x, y, named ? 5 : 3, 0, 7); else draw.rect(x - 7, y - 7, 14, 14);
    draw.fill(); draw.stroke();
  });
  nodes.forEach(([name, kind], n) => {
    if (!named && kind === "host") return;
    const [x, y] = spots[n], letters = [...name], label = letters.length > 18 ? `${letters.slice(0, 17).join("")}…` : name, below = y < high / 2 === (kind === "host") ? -15 : 15;
    draw.lineWidth = 3; draw.strokeStyle = variable("--panel"); draw.strokeText(label, x, y + below, 130);
    draw.fillStyle = text; draw.fillText(label, x, y + below, 130);
  });
  tip();
}

// How far a point is from a line between two others.
function apart([x, y], [x0, y0], [x1, y1]) {
  const [wide, high] = [x1 - x0, y1 - y0], length = wide * wide + high * high;
  const share = length ? Math.max(0, Math.min(1, ((x - x0) * wide + (y - y0) * high) / length)) : 0;
  return Math.hypot(x - x0 - share * wide, y - y0 - share * high);
}

// The nearest node to a point, or else the ends of the nearest link; null where there is none.
function nearest(point) {
  const closest = (list) => {
    let found = null, far = REACH;
    for (const ends of list) { const now = apart(point, spots[ends[0]], spots[ends[1] ?? ends[0]]); if (now < far) { far = now; found = ends; } }
    return found;
  };
  return closest(spots.map((_, n) => [n])) ?? closest((about.links || []).map(([a, b]) => [a, b]));
}

// Beside the pointer: the name of what it is at, and what goes over its links in each direction, the busiest first.
function tip() {
  const box = one("tip");
  box.hidden = !pointed;
  if (!pointed) return;
  const [a, b] = pointed, ports = about.kind === "switch", prefix = ports ? "port " : "queue ", names = (ports ? about.ports : about.queues) || [];
  const ways = new Set((about.links || []).filter(([c, d]) => (b == null ? a === c || a === d : (a === c && b === d) || (a === d && b === c))).flatMap((link) => link.slice(2)));
  const fields = Object.keys(columns).filter((name) => name.startsWith(prefix)), among = [...names.keys()].filter((n) => ways.has(names[n]));
  const busy = columns[`${prefix}rate_mbps`] ?? columns[`${prefix}utilisation`] ?? [];
  const lines = largest(busy, DIRECTIONS, [], -1, among).flatMap((n) => [nameCell("p", names[n]), element("p", fields.map((field) => `${titled(field.slice(prefix.length))} ${shown(columns[field][n])}`).join(", "))]);
  const left = among.length - DIRECTIONS, of = about.nodes[a];
  if (b == null) lines.unshift(nameCell("p", `${of[1]} ${of[0]}`));
  if (left > 0) lines.push(element("p", `and ${left} more`));
  box.replaceChildren(...lines);
  const [x, y] = pointer, room = one("topology").clientWidth;
  box.style.left = `${Math.max(0, Math.min(x + 14, room - box.offsetWidth))}px`;
  box.style.top = `${y + 14}px`;
}

function pointAt(point) {
  const found = point && nearest(point);
  pointer = point ?? pointer;
  if (String(found) !== String(pointed)) { pointed = found; paint(); } else tip();
}

function say(what) { if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(what)); }

function connect() {
  const token = new URLSearchParams(location.search).get("token") ?? "";
  socket = new WebSocket(`ws://${location.host}/stream?token=${encodeURIComponent(token)}`);
  socket.binaryType = "arraybuffer";
  socket.addEventListener("open", () => tell("waiting for the run"));
  socket.addEventListener("message", (event) => {
    if (typeof event.data === "string") { begin(JSON.parse(event.data)); header = {}; redraw(); return; }
    read(event.data);
    keep();
    redraw();
  });
  socket.addEventListener("close", (event) => {
    tell(event.code === TOO_MANY ? "as many browsers as may show this page do so already; close one of them" : "the connection is gone: the command has ended, or it runs under another address", "", true);
    setTimeout(connect, 2000);
  });
}

one("pause").addEventListener("click", () => say({ pause: !header.paused }));
one("step").addEventListener("click", () => say({ step: one("length").value }));
one("case").addEventListener("change", () => say({ case: one("case").selectedIndex }));
one("find").addEventListener("input", redraw);
for (const name of ["pointermove", "pointerdown"]) one("topology").addEventListener(name, (event) => pointAt([event.offsetX, event.offsetY]));
// A finger that is lifted leaves what it has pointed at.
one("topology").addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") pointAt(null); });
addEventListener("keydown", (event) => { if (event.key === "Escape" && pointed) pointAt(null); });
addEventListener("resize", () => { if (places.length) paint(); });
document.addEventListener("visibilitychange", redraw);
isDark.addEventListener("change", () => { if (places.length) paint(); });
connect();
