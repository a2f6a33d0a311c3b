// Charts with uPlot: the same in reports and in the dashboard. Colours can be told apart with each common kind of colour blindness; dashes
// tell series apart where colours come again. Keys on a focused chart: arrows move the cursor, + and - zoom, 0 shows all.
"use strict";
const LIGHT = ["#2e5da2", "#b97400", "#00a274", "#d14646", "#b974a2", "#748bd1", "#744600", "#464646"];
const DARK = ["#46a2e8", "#ffb917", "#2ed18b", "#ff8b46", "#b98bb9", "#a2e8ff", "#b97446", "#b9b9b9"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
const isDark = matchMedia("(prefers-color-scheme: dark)");
const drawn = new Set();

function colourOf(number) { return (isDark.matches ? DARK : LIGHT)[number % LIGHT.length]; }

function variable(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

function shown(value) {
  if (value == null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(3);
  return String(+value.toPrecision(4));
}

// Numbers of 32 bits, little-endian, as base64; what is not a number is a gap.
function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return gaps(new Float32Array(bytes.buffer));
}

function gaps(values) { return Array.from(values, (value) => (Number.isNaN(value) ? null : value)); }

function axes() {
  const text = variable("--soft"), grid = variable("--grid");
  const one = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "12px system-ui, sans-serif" };
  return [{ ...one, values: (_, ticks) => ticks.map(shown) }, { ...one, size: 62, values: (_, ticks) => ticks.map(shown) }];
}

class Chart {
  constructor(place, title, unit, names, data, height = 220) {
    this.title = title; this.unit = unit; this.names = names; this.data = data; this.height = height; this.at = null; this.zoomed = false;
    this.box = document.createElement("section");
    this.box.className = "chart";
    const head = document.createElement("h3");
    head.textContent = head.title = unit ? `${title} (${unit})` : title;
    this.room = document.createElement("div");
    this.room.tabIndex = 0;
    this.room.setAttribute("role", "img");
    this.room.setAttribute("aria-label", `${title}${unit ? " in " + unit : ""} over time in seconds, ${names.length} series: ${names.slice(0, 6).join(", ")}`);
    this.room.addEventListener("keydown", (event) => this.key(event));
    this.box.append(head, this.room);
    place.append(this.box);
    this.draw();
    this.watch = new ResizeObserver(() => { if (this.plot && this.width() !== this.plot.width) this.plot.setSize({ width: this.width(), height: this.height }); });
    this.watch.observe(this.box);
    drawn.add(this);
  }
  width() { return Math.max(200, this.box.clientWidth - 18); }
  draw() {
    if (this.plot) this.plot.destroy();
    this.zoomed = false;
    const series = this.names.map((name, number) => ({
      label: name, stroke: colourOf(number), width: 1.5, dash: DASHES[Math.floor(number / LIGHT.length) % DASHES.length],
      value: (_, value) => shown(value), points: { show: false }, spanGaps: false,
    }));
    this.plot = new uPlot({
      width: this.width(), height: this.height, scales: { x: { time: false } }, axes: axes(),
      series: [{ label: "time (s)", value: (_, value) => shown(value) }, ...series],
      cursor: { drag: { x: true, y: false }, sync: { key: "time" } }, legend: { live: true },
      hooks: { setSelect: [(plot) => { if (plot.select.width > 0) this.zoomed = true; }] },
    }, this.data, this.room);
    this.plot.over.addEventListener("dblclick", () => { this.zoomed = false; });
  }
  rename(names, data) {
    this.names = names; this.data = data;
    const scale = this.zoomed ? { min: this.plot.scales.x.min, max: this.plot.scales.x.max } : null;
    this.draw();
    if (scale) { this.zoomed = true; this.plot.setScale("x", scale); }
  }
  set(data) {
    this.data = data;
    this.plot.setData(data, !this.zoomed);
    if (this.zoomed) this.plot.redraw();
  }
  destroy() { this.watch.disconnect(); this.plot.destroy(); this.box.remove(); drawn.delete(this); }
  key(event) {
    const x = this.plot.data[0];
    if (x.length < 2) return;
    // There are fewer values than before where a long history was thinned.
    if (this.at != null) this.at = Math.min(this.at, x.length - 1);
    const { min, max } = this.plot.scales.x;
    const middle = this.at == null ? (min + max) / 2 : x[this.at];
    const zoom = (factor) => { this.zoomed = true; this.plot.setScale("x", { min: Math.max(x[0], middle - (middle - min) * factor), max: Math.min(x[x.length - 1], middle + (max - middle) * factor) }); };
    const move = (by) => {
      const begin = x.findIndex((value) => value >= min);
      this.at = Math.min(x.length - 1, Math.max(0, (this.at == null ? begin : this.at) + by));
      this.plot.setCursor({ left: this.plot.valToPos(x[this.at], "x"), top: 10 });
    };
    const keys = {
      ArrowRight: () => move(event.shiftKey ? 10 : 1), ArrowLeft: () => move(event.shiftKey ? -10 : -1),
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => { this.zoomed = false; this.plot.setScale("x", { min: x[0], max: x[x.length - 1] }); },
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }
}

isDark.addEventListener("change", () => drawn.forEach((chart) => chart.draw()));

// Tables whose heads are buttons: a click sorts by that column, numbers as numbers.
function sortable(table) {
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down === 1 ? "ascending" : "descending");
      const body = table.tBodies[0];
      const keyed = Array.from(body.rows, (row) => {
        const cell = row.cells[column], text = cell.dataset.v ?? cell.textContent;
        return { row, text, number: text === "" ? NaN : Number(text) };
      });
      keyed.sort((a, b) => {
        const [left, right] = [Number.isNaN(a.number), Number.isNaN(b.number)];
        if (!left && !right) return down * (a.number - b.number);
        if (left !== right) return left ? 1 : -1;
        return down * a.text.localeCompare(b.text);
      });
      body.append(...keyed.map((one) => one.row));
    });
  });
}
