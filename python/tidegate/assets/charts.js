// Charts with uPlot: the same in reports and in the dashboard. Colours can be told apart with each common kind of colour blindness; dashes
// tell series apart where colours come again. Keys on a focused chart: arrows move the cursor, + and - zoom, 0 shows all.
//
// `over` is what differs where a chart is not over time: `x`, what it is over; `ticks`, names of the places 0, 1, ...; `log`, whether its x
// axis is logarithmic; and of each series `points`, whether it has no line, `ends`, lowest and highest values, and `texts` for the legend.
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

// A number beside an axis, which has room for some seven letters: 1500, 0.25, 1.5e6.
function ticked(value) {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? (+value.toPrecision(4)).toExponential().replace("e+", "e") : shown(value);
}

// Numbers of 32 bits, little-endian, as base64; what is not a number is a gap.
function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return gaps(new Float32Array(bytes.buffer));
}

function gaps(values) { return Array.from(values, (value) => (Number.isNaN(value) ? null : value)); }

// The begin of long names, and as many as there is room for.
const CUT = 14, LETTER = 7;

function named(ticks) {
  const names = ticks.map((name) => (name.length > CUT ? name.slice(0, CUT - 1) + "…" : name));
  const longest = Math.max(...names.map((name) => name.length)) + 2;
  const splits = (plot, _, min, max) => {
    const places = names.map((__, at) => at).filter((at) => at >= min && at <= max);
    const step = Math.max(1, Math.ceil((places.length * longest * LETTER) / Math.max(1, plot.bbox.width / uPlot.pxRatio)));
    return places.filter((_at, number) => number % step === 0);
  };
  return { splits, values: (_, places) => places.map((at) => names[at] ?? "") };
}

// 1, 2 and 5 times powers of ten; of many powers each one, or each third.
function decades(min, max) {
  const least = Math.floor(Math.log10(min)), most = Math.ceil(Math.log10(max)), found = [];
  const steps = most - least < 4 ? [1, 2, 5] : [1], by = most - least > 8 ? 3 : 1;
  for (let power = least; power <= most; power += by) found.push(...steps.map((step) => step * 10 ** power));
  const there = found.filter((value) => value >= min && value <= max);
  if (there.length > 1) return there;
  // Between two of these: a few that are as far apart.
  const digit = 10 ** Math.floor(Math.log10((max - min) / 4)), step = Math.ceil((max - min) / 4 / digit) * digit;
  return [...Array(6).keys()].map((n) => (Math.ceil(min / step) + n) * step).filter((value) => value <= max);
}

function axes(over) {
  const text = variable("--soft"), grid = variable("--grid");
  const one = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "12px system-ui, sans-serif" };
  const said = { values: (_, ticks) => ticks.map((tick) => (tick == null ? "" : ticked(tick))) };
  const x = over.x ? { label: over.x, labelFont: one.font, labelSize: 18, size: 32 } : { size: 32 };
  const places = over.ticks ? named(over.ticks) : over.log ? { splits: (_, __, min, max) => decades(min, max), filter: (_, ticks) => ticks } : {};
  return [{ ...one, ...said, ...x, ...places }, { ...one, ...said, size: 62 }];
}

class Chart {
  constructor(place, title, unit, names, data, over = {}) {
    this.title = title; this.unit = unit; this.names = names; this.data = data; this.over = over; this.height = 220; this.at = null; this.zoomed = false;
    this.box = document.createElement("section");
    this.box.className = "chart";
    const head = document.createElement("h3");
    head.textContent = head.title = unit ? `${title} (${unit})` : title;
    this.room = document.createElement("div");
    this.room.tabIndex = 0;
    this.room.setAttribute("role", "img");
    this.room.setAttribute("aria-label", `${title}${unit ? " in " + unit : ""} over ${over.x ?? "time in seconds"}, ${names.length} series: ${names.slice(0, 6).join(", ")}`);
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
      value: (_, value, __, at) => this.said(number, value, at), points: { show: Boolean(this.over.x), size: 7 }, spanGaps: false,
      ...(this.over.points?.[number] ? { paths: () => null } : {}),
    }));
    const { ticks, x } = this.over;
    // uPlot asks for a zoomed range as well as for that of all points: only that gets room.
    const range = x ? { range: (plot, min, max) => this.ranged(plot.data[0], min, max) } : {};
    this.plot = new uPlot({
      width: this.width(), height: this.height, axes: axes(this.over),
      scales: { x: { time: false, distr: this.over.log ? 3 : 1, ...range }, y: { range: (plot, min, max) => this.upright(plot, min, max) } },
      series: [{ label: x ?? "time (s)", value: (_, value) => (ticks && value != null ? ticks[Math.round(value)] : shown(value)) }, ...series],
      cursor: { drag: { x: true, y: false }, sync: { key: x ?? "time" } }, legend: { live: true },
      hooks: { setSelect: [(plot) => { if (plot.select.width > 0) this.zoomed = true; }], draw: [(plot) => this.spread(plot)] },
    }, this.data, this.room);
    this.plot.over.addEventListener("dblclick", () => { this.zoomed = false; });
  }
  said(number, value, at) {
    const text = at == null || value == null ? null : this.over.texts?.[number]?.[at];
    return text ? `${shown(value)} ${text}` : shown(value);
  }
  // Room for points at both ends.
  ranged(x, min, max) {
    const least = x[0], most = x[x.length - 1];
    if (min == null || least == null) return [0, 1];
    if (min > least || max < most) return [min, max];
    if (this.over.ticks) return [-0.5, this.over.ticks.length - 0.5];
    if (this.over.log) { const by = most > least ? (most / least) ** 0.04 : 1.5; return [least / by, most * by]; }
    const by = (most - least) * 0.04 || 1;
    return [least - by, most + by];
  }
  // What is high and low as well, of the series that are shown. Where there is nothing but 0, uPlot would go up to 100.
  upright(plot, min, max) {
    const ends = (this.over.ends ?? []).filter((one, number) => one && plot.series[number + 1].show);
    const all = ends.flat(2).concat(min, max).filter((value) => value != null);
    return all.some((value) => value !== 0) ? uPlot.rangeNum(Math.min(...all), Math.max(...all), 0.1, !this.over.ends) : [0, 1];
  }
  // From the lowest to the highest value of each point.
  spread(plot) {
    const { left, width } = plot.bbox;
    plot.ctx.save();
    plot.ctx.lineWidth = uPlot.pxRatio;
    (this.over.ends ?? []).forEach((ends, number) => {
      if (!ends || !plot.series[number + 1].show) return;
      plot.ctx.strokeStyle = colourOf(number);
      plot.ctx.beginPath();
      plot.data[0].forEach((value, at) => {
        const x = plot.valToPos(value, "x", true);
        if (ends[0][at] == null || x < left || x > left + width) return;
        plot.ctx.moveTo(x, plot.valToPos(ends[0][at], "y", true));
        plot.ctx.lineTo(x, plot.valToPos(ends[1][at], "y", true));
      });
      plot.ctx.stroke();
    });
    plot.ctx.restore();
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
    const [to, from] = this.over.log ? [Math.log, Math.exp] : [(value) => value, (value) => value];
    const middle = this.at == null ? (to(min) + to(max)) / 2 : to(x[this.at]);
    const zoom = (factor) => {
      this.zoomed = true;
      this.plot.setScale("x", { min: Math.max(x[0], from(middle - (middle - to(min)) * factor)), max: Math.min(x[x.length - 1], from(middle + (to(max) - middle) * factor)) });
    };
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
