// The dashboard: what a finished or a running simulation has, from binary frames of a WebSocket. Every name goes into the page as text.
"use strict";
const one = (name) => document.getElementById(name);
const SHOWN = 40, POINTS = 1200, LINES = 8;
let about = {}, charts = [], history = null, columns = {}, header = {}, chosen = -1, order = { flows: ["", -1], queues: ["", -1], ports: ["", -1] };
let socket = null, last = 0;

function element(tag, text, more = {}) {
  const made = document.createElement(tag);
  if (text != null) made.textContent = text;
  for (const [name, value] of Object.entries(more)) made.setAttribute(name, value);
  return made;
}

function read(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const found = {};
  let at = 4 + length;
  for (const [name, count] of head.columns) { found[name] = new Float32Array(buffer, at, count); at += 4 * count; }
  return [head, found];
}

function begin() {
  charts.forEach((chart) => chart.destroy());
  charts = []; columns = {}; history = null; chosen = -1;
  one("traced").hidden = true; one("noted").hidden = true;
  one("title").textContent = about.title;
  document.title = `${about.title} - Tidegate`;
  one("controls").hidden = about.kind !== "running";
  const several = (about.cases || []).length > 1;
  one("choice").hidden = !several;
  if (several) { one("case").replaceChildren(...about.cases.map((name) => element("option", name))); one("case").selectedIndex = about.shown; }
  topology();
}

// The largest series of a kind at each time, as they came; a series that was not among them is empty until then.
class History {
  constructor(place, title, unit, names) { Object.assign(this, { place, title, unit, names, times: [], rows: [], kept: [], chart: null, drawn: 0 }); }
  add(time, values) {
    this.times.push(time); this.rows.push(values);
    if (this.times.length > POINTS) { // Every other one of the older half.
      const keep = (_, at) => at >= POINTS / 2 || at % 2 === 0;
      this.times = this.times.filter(keep); this.rows = this.rows.filter(keep);
    }
  }
  draw() {
    if (this.times.length < 2) return;
    const newest = this.rows[this.rows.length - 1];
    if (!this.chart || performance.now() - this.drawn > 2000) {
      const wanted = largest(newest, Math.min(LINES, this.names.length), chosen >= 0 && this.title === "Flow rate" ? [chosen] : []);
      if (!this.chart || wanted.some((n, at) => n !== this.kept[at])) {
        if (this.chart) this.chart.destroy();
        this.kept = wanted; this.chart = null;
      }
      this.drawn = performance.now();
    }
    const data = [this.times, ...this.kept.map((n) => this.rows.map((row) => (n in row && !Number.isNaN(row[n]) ? row[n] : null)))];
    if (this.chart) this.chart.set(data);
    else { this.chart = new Chart(this.place, this.title, this.unit, this.kept.map((n) => this.names[n]), data); charts.push(this.chart); }
  }
}

function largest(values, count, first) {
  const found = [];
  for (let n = 0; n < values.length; n++) {
    const value = Number.isNaN(values[n]) ? -1 : values[n];
    if (found.length === count && value <= found[count - 1][0]) continue;
    let at = found.length;
    while (at > 0 && found[at - 1][0] < value) at--;
    found.splice(at, 0, [value, n]);
    if (found.length > count) found.pop();
  }
  const chosen = found.map(([, n]) => n).filter((n) => !first.includes(n));
  return [...first, ...chosen].slice(0, count).sort((a, b) => a - b);
}

function shownAll() {
  if (about.kind === "finished") finished(); else running();
  const ports = about.kind === "switch";
  one("flowing").hidden = ports; one("porting").hidden = !ports;
  if (ports) rows("ports", about.ports, false); else rows("flows", about.flows || [], true);
  rows("queues", about.queues || [], false);
  paint();
}

function finished() {
  one("state").textContent = `${(about.flows || []).length} flows, ${(about.queues || []).length} queues`;
  if (charts.length) return;
  about.charts.forEach((chart, number) => {
    const data = [gaps(columns[`chart ${number} x`]), ...chart.names.map((_, at) => gaps(columns[`chart ${number} ${at}`]))];
    charts.push(new Chart(one("charts"), chart.title, chart.unit, chart.names, data));
  });
}

function running() {
  if (!history) {
    const place = one("charts");
    history = about.kind === "switch" ? {
      "port rate_mbps": new History(place, "Port rate", "Mbit/s", about.ports), "port packets_per_s": new History(place, "Port packets", "packets/s", about.ports),
      "queue packets": new History(place, "Queues", "packets", about.queues), notes: {},
    } : {
      "flow rate_mbps": new History(place, "Flow rate", "Mbit/s", about.flows), "queue packets": new History(place, "Queues", "packets", about.queues),
      "queue delay_ms": new History(place, "Queue delay", "ms", about.queues), "queue rate_mbps": new History(place, "Link rate", "Mbit/s", about.queues), notes: {},
    };
  }
  const state = header.ended ? "ended" : header.paused ? "paused" : "running";
  const until = about.until_s ? ` of ${shown(about.until_s)} s` : "";
  one("state").textContent = `${state} at ${shown(header.t)} s${until}`;
  one("pause").textContent = header.paused ? "Go on" : "Pause";
  if (header.fresh) {
    for (const name of Object.keys(history).filter((one) => one !== "notes")) {
      history[name].add(header.t, columns[name].length > 400 ? sparse(columns[name]) : columns[name]);
      history[name].draw();
    }
    for (const [name, value] of Object.entries(header.notes).slice(0, 12)) {
      const note = history.notes[name] ??= new History(one("charts"), name, "", [name]);
      note.add(header.t, [value]); note.draw();
    }
  }
  const names = Object.keys(header.notes);
  one("noted").hidden = !names.length;
  one("notes").replaceChildren(...names.map((name) => { const row = element("tr"); row.append(element("td", name), element("td", shown(header.notes[name]), { class: "n" })); return row; }));
  trace();
}

// Of many series only the largest are kept, and the chosen one: a row is an object then.
function sparse(values) {
  const kept = {};
  for (const n of largest(values, 4 * LINES, chosen >= 0 ? [chosen] : [])) kept[n] = values[n];
  return new Proxy(kept, { get: (target, name) => (name === "length" ? values.length : target[name] ?? NaN) });
}

function trace() {
  const found = header.trace;
  one("traced").hidden = !found;
  if (!found) return;
  one("chosen").textContent = about.flows[found.flow];
  one("problem").textContent = found.problem || (found.packets.length ? "" : "no packet yet");
  const head = element("tr");
  head.append(...["time (s)", "ports", "flags", "seq", "ack", "bytes", "ECN"].map((name) => element("th", name)));
  one("packets").replaceChildren(head, ...found.packets.slice().reverse().map((packet) => {
    const row = element("tr");
    row.append(...packet.map((value, at) => element("td", at === 0 ? value.toFixed(6) : value ?? "", { class: typeof value === "number" ? "n" : "" })));
    return row;
  }));
}

// Some rows of a table, the largest of the chosen column first; the head stays, so that the focus does.
function rows(kind, names, choose) {
  const table = one(kind), prefix = `${kind.slice(0, -1)} `;
  const fields = Object.keys(columns).filter((name) => name.startsWith(prefix));
  if (table.dataset.fields !== fields.join()) {
    table.dataset.fields = fields.join();
    const head = element("tr");
    ["", ...fields].forEach((field, at) => {
      const cell = element("th", null, { scope: "col" }), button = element("button", at ? field.slice(prefix.length) : kind.slice(0, -1), { type: "button" });
      button.addEventListener("click", () => { order[kind] = [field, order[kind][0] === field ? -order[kind][1] : -1]; shownAll(); });
      if (at) cell.className = "n";
      cell.dataset.field = field;
      cell.append(button); head.append(cell);
    });
    const top = element("thead");
    top.append(head);
    table.replaceChildren(top, element("tbody"));
  }
  const [field, way] = order[kind];
  table.querySelectorAll("th").forEach((cell) => { if (cell.dataset.field === field) cell.setAttribute("aria-sort", way > 0 ? "ascending" : "descending"); else cell.removeAttribute("aria-sort"); });
  const wanted = choose ? one("find").value.toLowerCase() : "";
  let found = [...names.keys()];
  if (wanted) found = found.filter((n) => names[n].toLowerCase().includes(wanted));
  const key = columns[field];
  if (key) found.sort((a, b) => { const x = Number.isNaN(key[a]), y = Number.isNaN(key[b]); return x || y ? x - y : way * (key[a] - key[b]); });
  if (choose) one("count").textContent = found.length > SHOWN ? `${SHOWN} of ${found.length} shown` : "";
  const body = table.tBodies[0], lines = found.slice(0, SHOWN);
  while (body.rows.length > lines.length) body.lastChild.remove();
  lines.forEach((n, at) => {
    let row = body.rows[at];
    if (!row) {
      row = element("tr"); body.append(row);
      const cell = element("td");
      if (choose && about.kind === "running") {
        const button = element("button", "", { type: "button", class: "flow", title: "Show its packets" });
        button.addEventListener("click", () => { chosen = chosen === Number(row.dataset.n) ? -1 : Number(row.dataset.n); say({ trace: chosen }); });
        cell.append(button);
      }
      row.append(cell, ...fields.map(() => element("td", "", { class: "n" })));
    }
    row.dataset.n = n;
    row.setAttribute("aria-selected", String(choose && n === chosen));
    (row.cells[0].firstElementChild ?? row.cells[0]).textContent = names[n];
    fields.forEach((name, number) => { row.cells[number + 1].textContent = shown(columns[name][n]); });
  });
}

// Nodes between others are on an inner circle, hosts on an outer one beside the node that they are linked to.
let places = [];
function topology() {
  const nodes = about.nodes || [], links = about.links || [];
  const inner = [...nodes.keys()].filter((n) => nodes[n][1] !== "host"), outer = [...nodes.keys()].filter((n) => nodes[n][1] === "host");
  const next = new Map();
  for (const [a, b] of links) { next.set(a, next.get(a) ?? b); next.set(b, next.get(b) ?? a); }
  outer.sort((a, b) => inner.indexOf(next.get(a)) - inner.indexOf(next.get(b)) || a - b);
  places = [];
  const round = (list, radius) => list.forEach((n, at) => { const turn = 2 * Math.PI * (at + 0.5) / list.length - Math.PI; places[n] = [0.5 + radius * Math.cos(turn), 0.5 + radius * Math.sin(turn)]; });
  round(outer, 0.42);
  if (inner.length === 1) places[inner[0]] = [0.5, 0.5];
  else if (outer.length) inner.forEach((n) => {
    const own = outer.filter((host) => next.get(host) === n).map((host) => places[host]);
    if (own.length) places[n] = [0, 1].map((axis) => 0.5 + 0.5 * (own.reduce((sum, place) => sum + place[axis], 0) / own.length - 0.5));
  });
  round(inner.filter((n) => !places[n]), 0.12);
  one("topology").setAttribute("aria-label", `Topology: ${inner.length} switches and routers, ${outer.length} hosts, ${links.length} links`);
  one("links").textContent = links.length ? about.kind === "switch" ? "Thick: busy port, of those with a rate." : "Thick: busy link. Coloured: its queue has packets or has dropped some." : "The run has no links.";
}

function paint() {
  const canvas = one("topology"), scale = devicePixelRatio || 1, wide = canvas.clientWidth, high = canvas.clientHeight;
  canvas.width = wide * scale; canvas.height = high * scale;
  const draw = canvas.getContext("2d");
  draw.scale(scale, scale);
  const at = (n) => [places[n][0] * (wide - 90) + 45, places[n][1] * (high - 30) + 15];
  const ports = about.kind === "switch";
  const packets = ports ? [] : columns["queue packets"] || [], rate = columns[ports ? "port rate_mbps" : "queue rate_mbps"] || [], dropped = columns["queue dropped"] || [];
  const queue = new Map(((ports ? about.ports : about.queues) || []).map((name, number) => [name, number]));
  (about.links || []).forEach(([a, b, there, back]) => {
    const both = [queue.get(there), queue.get(back)].filter((n) => n != null);
    const share = Math.max(0, ...both.map((n) => (about.rates_mbps ? rate[n] / about.rates_mbps[n] : columns["queue utilisation"]?.[n]) || 0));
    const busy = about.kind !== "finished" ? both.some((n) => packets[n] > 0) : both.some((n) => dropped[n] > 0);
    draw.beginPath(); draw.moveTo(...at(a)); draw.lineTo(...at(b));
    draw.lineWidth = 1 + 4 * Math.min(1, share); draw.strokeStyle = busy ? colourOf(3) : variable("--soft"); draw.stroke();
  });
  draw.font = "12px system-ui, sans-serif"; draw.textAlign = "center"; draw.textBaseline = "middle";
  const small = (about.nodes || []).length > 60;
  (about.nodes || []).forEach(([name, kind], n) => {
    const [x, y] = at(n);
    draw.fillStyle = kind === "host" ? variable("--back") : colourOf(0); draw.strokeStyle = variable("--text"); draw.lineWidth = 1;
    draw.beginPath();
    if (kind === "host") draw.arc(x, y, small ? 3 : 5, 0, 7); else draw.rect(x - 7, y - 7, 14, 14);
    draw.fill(); draw.stroke();
    if (!small || kind !== "host") { draw.fillStyle = variable("--text"); draw.fillText(name.slice(0, 24), x, y - 14 < 8 ? y + 15 : y - 14); }
  });
}

function say(what) { if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(what)); }

function connect() {
  const token = new URLSearchParams(location.search).get("token") ?? "";
  socket = new WebSocket(`ws://${location.host}/stream?token=${encodeURIComponent(token)}`);
  socket.binaryType = "arraybuffer";
  socket.addEventListener("open", () => { one("state").className = ""; one("state").textContent = "waiting for the run"; });
  socket.addEventListener("message", (event) => {
    if (typeof event.data === "string") { about = JSON.parse(event.data); begin(); return; }
    [header, columns] = read(event.data);
    if (!document.hidden) { shownAll(); last = performance.now(); }
    document.documentElement.dataset.frames = Number(document.documentElement.dataset.frames ?? 0) + 1;
  });
  socket.addEventListener("close", () => {
    one("state").className = "bad"; one("state").textContent = "the connection is gone: the command has ended, or it runs under another address";
    setTimeout(connect, 2000);
  });
}

one("pause").addEventListener("click", () => say({ pause: !header.paused }));
one("step").addEventListener("click", () => say({ step: one("length").value }));
one("case").addEventListener("change", () => say({ case: one("case").selectedIndex }));
one("find").addEventListener("input", () => { if (header.columns) shownAll(); });
addEventListener("resize", () => { if (places.length) paint(); });
isDark.addEventListener("change", () => { if (places.length) paint(); });
connect();
