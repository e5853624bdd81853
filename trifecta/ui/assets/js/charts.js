// Pictures: drawn by Observable Plot and uPlot, stepped through by finger, mouse and arrow keys, read out in words.
"use strict";
import { h, table } from "./dom.js";

const { Plot, uPlot } = window;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const SHAPES = ["diamond", "triangle", "square", "circle", "circle", "square", "triangle", "times", "plus", "star"];

export const colour = (mark) => (mark === 0 ? "var(--other)" : mark < 4 ? `var(--h${mark})` : `var(--level-${mark - 3})`);
const solid = (mark) => css(colour(mark).slice(4, -1));
const shape = (mark) => SHAPES[mark] || "circle";
const width = () => Math.max(280, Math.min(920, document.getElementById("main").clientWidth));

/** What the arms look like. */
export function legend(arms) {
  return h("ul", { class: "legend" }, arms.map((one) => {
    const symbol = Plot.plot({ className: "plot", width: 14, height: 14, axis: null, margin: 0, x: { domain: [-1, 1] }, y: { domain: [-1, 1] },
      marks: [Plot.dot([0], { x: 0, y: 0, r: 4.5, fill: colour(one.mark), symbol: shape(one.mark) })] });
    symbol.setAttribute("aria-hidden", "true");
    return h("li", {}, symbol, one.name);
  }));
}

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

/**
 * A figure whose points can be stepped through. `points`: {x, y, said, pick}, x and y in pixels of the picture.
 * `step(at, key)`: which point a key leads to, or undefined; by default one after the other.
 */
function stepped(caption, drawn, points, data, how, step = (at, key) => (key in STEPS ? at + STEPS[key] : undefined)) {
  const words = points.some((one) => one.pick) ? "Arrow keys step through the points, Enter opens one." : "Arrow keys step through the points.";
  const out = h("output", { "aria-live": "polite" }, points.length ? h("span", { class: "how" }, how || words) : "");
  const held = h("div", { class: "drawn", tabindex: points.length ? "0" : null, role: "group", "aria-label": `${caption}. ${words}` }, drawn);
  let at = -1;
  let ring = null;
  const show = (index) => {
    at = index;
    const one = points[at];
    out.textContent = one.said;
    const svg = held.querySelector("svg");
    if (!svg) return;
    if (!ring || !ring.isConnected) {
      ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      ring.setAttribute("class", "at");
      ring.setAttribute("r", "8");
      svg.append(ring);
    }
    ring.setAttribute("cx", one.x);
    ring.setAttribute("cy", one.y);
  };
  const nearest = (event) => {
    const svg = held.querySelector("svg");
    const box = svg.getBoundingClientRect();
    const view = svg.viewBox.baseVal;
    const x = (event.clientX - box.left) * (view.width / box.width);
    const y = (event.clientY - box.top) * (view.height / box.height);
    let best = -1;
    let least = Infinity;
    points.forEach((one, i) => {
      const far = Math.hypot(one.x - x, (one.y - y) * (one.tall || 1));
      if (far < least) [best, least] = [i, far];
    });
    return best;
  };
  if (points.length && held.querySelector("svg")) {
    held.addEventListener("pointermove", (event) => { const i = nearest(event); if (i !== at) show(i); });
    held.addEventListener("click", (event) => { const i = nearest(event); show(i); points[i].pick?.(); });
  }
  held.addEventListener("keydown", (event) => {
    if (!points.length) return;
    const next = step(at, event.key);
    if (next !== undefined) show(at < 0 ? 0 : Math.max(0, Math.min(points.length - 1, next)));
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(points.length - 1);
    else if (event.key === "Enter" && at >= 0 && points[at].pick) points[at].pick();
    else return;
    event.preventDefault();
  });
  return h("figure", { class: "chart" }, h("figcaption", {}, caption), held, out,
    data ? unfolded(h("summary", {}, "Table", h("span", { class: "sr" }, ` of ${caption}`)), data) : null);
}

/** A table that is made when it is opened: one of 20,000 samples takes a while. */
function unfolded(summary, data) {
  const made = h("details", {}, summary);
  const fill = () => { if (made.children.length === 1) made.append(table(data)); };
  summary.addEventListener("click", fill);  // also by key; before it opens
  made.addEventListener("toggle", fill);
  return made;
}

const LEAST = 1 / 32;
const MOST = 32;
const logTicks = [0.03125, 0.0625, 0.125, 0.25, 0.5, 0.67, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 4, 8, 16, 32];

/** Intervals of ratios, a line a comparison: {place, ratio, low, high, mark, decided, said, pick}. */
export function forest(caption, rows, { sides = null, margin = 0, data = null } = {}) {
  const known = rows.filter((one) => one.ratio !== null);
  const ends = known.flatMap((one) => [one.ratio, one.low, one.high]).filter((one) => one > 0).map((one) => Math.min(MOST, Math.max(LEAST, one)));
  const low = Math.min(...ends, 1 - margin, 0.95) * 0.97;
  const high = Math.max(...ends, 1 + margin, 1.05) * 1.03;
  const wide = width();
  const room = Math.max(2, Math.floor(wide / 90));
  let ticks = logTicks.filter((one) => one >= low && one <= high);
  while (ticks.length > room) ticks = ticks.filter((one, i) => one === 1 || (i - ticks.indexOf(1)) % 2 === 0);
  const y = (i) => i;
  const within = (one) => Math.min(high, Math.max(low, one));
  const plot = Plot.plot({
    className: "plot", width: wide, height: 42 + rows.length * 36, marginLeft: 6, marginRight: 6, marginTop: 26, marginBottom: 4,
    x: { type: "log", domain: [low, high], axis: null }, y: { domain: [rows.length - 0.4, -0.75], axis: null },
    marks: [
      margin ? Plot.rectX([0], { x1: Math.max(low, 1 / (1 + margin)), x2: Math.min(high, 1 + margin), fill: "var(--band)" }) : null,
      Plot.text(ticks, { x: (one) => one, frameAnchor: "top", dy: -9, text: (one) => String(one), fill: "var(--muted)" }), // an axis leaves some out
      Plot.gridX({ ticks, stroke: "var(--grid)", strokeOpacity: 1 }),
      Plot.ruleX([1], { stroke: "var(--ink)" }),
      Plot.ruleY(known.filter((one) => one.low !== null || one.high !== null), { y: (one) => y(rows.indexOf(one)) + 0.18, x1: (one) => within(one.low || low), x2: (one) => within(one.high || high),
        stroke: (one) => colour(one.mark), strokeWidth: 2.2 }),
      Plot.dot(known, { y: (one) => y(rows.indexOf(one)) + 0.18, x: (one) => within(one.ratio), r: 5, symbol: (one) => shape(one.mark),
        fill: (one) => (one.decided ? colour(one.mark) : "var(--paper)"), stroke: (one) => colour(one.mark), strokeWidth: 1.8 }),
      Plot.text(rows, { y: (one) => y(rows.indexOf(one)) - 0.22, frameAnchor: "left", textAnchor: "start", text: (one) => one.label, fill: "var(--ink)",
        fontSize: 12.5, lineWidth: wide / 13, textOverflow: "ellipsis", stroke: "var(--paper)", strokeWidth: 4 }),
    ].filter(Boolean),
    symbol: { type: "identity" }, color: { type: "identity" },
  });
  plot.setAttribute("aria-hidden", "true");
  const scale = { x: plot.scale("x"), y: plot.scale("y") };
  const points = rows.map((one, i) => ({ x: one.ratio === null ? 6 : scale.x.apply(within(one.ratio)), y: scale.y.apply(i + 0.18),
    tall: 40, said: one.said, pick: one.pick }));
  const drawn = [plot];
  if (sides) drawn.unshift(h("p", { class: "note sides" }, h("span", {}, sides[0]), h("span", {}, sides[1])));
  return stepped(caption, drawn, points, data);
}

const UNITS = { ns: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]], B: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  "bit/s": [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]], share: [[0.01, "%"]] };
export function unitOf(values, unit) {
  const most = Math.max(...values.filter((one) => one !== null));
  return (UNITS[unit] || [[1, unit === "1/s" ? "per second" : ""]]).find(([size]) => most >= size) || [1, unit];
}

/** Trials by the level of a factor: a point a trial. */
export function byLevel(made, pick) {
  const [size, unit] = unitOf(made.points.map((one) => one.value), made.unit);
  const names = [...new Set(made.points.map((one) => one.name))].sort((a, b) => a.localeCompare(b));
  const spread = (one, i) => (names.indexOf(one.name) - (names.length - 1) / 2) * (0.62 / Math.max(1, names.length)) + ((i * 0.618) % 1 - 0.5) * 0.08;
  const place = (one, i) => made.levels.indexOf(one.level) + (made.numeric ? 0 : spread(one, i));
  const wide = width();
  const few = Math.max(1, Math.floor(wide / 110));
  const step = Math.ceil(made.levels.length / few);
  const points = made.points.filter((one) => one.value !== null);
  const plot = Plot.plot({
    className: "plot", width: wide, height: 320, marginLeft: 52, marginBottom: 40, marginTop: 24,
    x: { domain: [-0.6, made.levels.length - 0.4], ticks: made.levels.map((_, i) => i).filter((i) => i % step === 0), tickFormat: (i) => String(made.levels[i] ?? "").slice(0, 24),
      label: made.factor.replaceAll("_", " ") },
    y: { label: `${made.label}${unit ? ` (${unit})` : ""}`, grid: true, zero: true, tickFormat: (one) => String(+one.toPrecision(6)) },
    symbol: { type: "identity" }, color: { type: "identity" },
    marks: [
      Plot.dot(points, { x: place, y: (one) => one.value / size, r: 3.6, symbol: (one) => shape(one.mark), stroke: (one) => colour(one.mark),
        fill: (one) => (one.valid ? colour(one.mark) : "var(--paper)"), fillOpacity: 0.75 }),
    ],
  });
  plot.setAttribute("aria-hidden", "true");
  const scale = { x: plot.scale("x"), y: plot.scale("y") };
  const at = points.map((one, i) => ({ x: scale.x.apply(place(one, i)), y: scale.y.apply(one.value / size), said: one.said, pick: () => pick(one.trial) }));
  return stepped(`${made.label} against ${made.factor.replaceAll("_", " ")}: a point a trial; hollow ones do not count`, plot, at, made.table);
}

/** Which place of a grid a key leads to; they are numbered upwards, column by column, and rows end at the border. */
const onGrid = (up, across) => (at, key) => {
  const i = Math.floor(at / up) + ({ ArrowRight: 1, ArrowLeft: -1 }[key] ?? 0);
  const j = (at % up) + ({ ArrowUp: 1, ArrowDown: -1 }[key] ?? 0);
  if (!key.startsWith("Arrow")) return undefined;
  return i < 0 || i >= across || j < 0 || j >= up ? at : i * up + j;
};

/** Places of a map. */
export function places(made) {
  const wide = Math.min(width(), 60 * made.x.texts.length + 80);
  const fill = { faster: "var(--good)", slower: "var(--bad)", same: "var(--rule)", open: "var(--soft)" };
  const sign = { faster: "▲", slower: "▼", same: "=", open: "?" };
  const plot = Plot.plot({
    className: "plot", width: wide, height: 40 * made.y.texts.length + 60, marginLeft: 66, marginBottom: 42, marginTop: 24,
    x: { type: "band", domain: made.x.texts.map((_, i) => i), tickFormat: (i) => made.x.texts[i], label: made.x.name, padding: 0.04 },
    y: { type: "band", domain: made.y.texts.map((_, j) => j).reverse(), tickFormat: (j) => made.y.texts[j], label: made.y.name, padding: 0.04 },
    color: { type: "identity" },
    marks: [
      Plot.cell(made.places, { x: "i", y: "j", fill: (one) => fill[one.outcome], stroke: "var(--rule)" }),
      Plot.text(made.places, { x: "i", y: "j", text: (one) => sign[one.outcome], fill: (one) => (one.outcome === "open" || one.outcome === "same" ? "var(--ink)" : "var(--paper)"), fontSize: 13 }),
    ],
  });
  plot.setAttribute("aria-hidden", "true");
  const scale = { x: plot.scale("x"), y: plot.scale("y") };
  const points = made.places.map((one) => ({ x: scale.x.apply(one.i) + scale.x.bandwidth / 2, y: scale.y.apply(one.j) + scale.y.bandwidth / 2, said: `${one.said}. ${one.evidence}` }));
  return stepped("Who wins where", plot, points, made.table, "A finger, the mouse or the arrow keys on a place tell what is known there.", onGrid(made.y.texts.length, made.x.texts.length));
}

const axis = (label) => ({ label, stroke: css("--muted"), grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid") }, font: "12px system-ui", labelFont: "12px system-ui" });

/** A uPlot whose points are stepped through with the arrow keys, too. `word(index)` reads one out. */
function canvas(caption, options, data, { word, pick = null, count, extra = null }) {
  const held = h("div");
  const plot = new uPlot({ width: width(), height: 280, cursor: { drag: { x: true, y: false } }, legend: { show: false }, ...options,
    hooks: { ...options.hooks, setCursor: [(u) => { if (u.cursor.idx !== null && u.cursor.idx !== undefined && u.cursor.left >= 0) tell(u.cursor.idx); }] } }, data, held);
  const points = Array.from({ length: count }, (_, i) => ({ get said() { return word(i); }, pick: pick ? () => pick(i) : undefined }));
  const figure = stepped(caption, held, points, extra);
  const out = figure.querySelector("output");
  let at = -1;
  function tell(i) { if (i !== at && i < count) { at = i; if (out) out.textContent = word(i); } }
  const area = figure.querySelector(".drawn");
  area.querySelector("canvas").setAttribute("aria-hidden", "true");
  area.addEventListener("keyup", () => {
    const i = points.findIndex((one) => out.textContent === one.said);
    if (i >= 0 && i !== at) plot.setCursor({ left: plot.valToPos(data[0][i], "x"), top: 10 }, false);
  });
  if (pick) area.addEventListener("click", () => { if (plot.cursor.idx !== null && plot.cursor.idx !== undefined) pick(plot.cursor.idx); });
  return figure;
}

/** The share of samples that took at most so long, a curve an arm. */
export function curves(made) {
  const shares = made.shares.map((one) => one * 100);
  const size = unitOf(made.curves.flatMap((one) => one.ns), "ns");
  const data = [shares, ...made.curves.map((one) => one.ns.map((ns) => (ns === null ? null : ns / size[0])))];
  const word = (i) => `${+shares[i].toPrecision(4)} % within: ${made.curves.map((one) => `${one.name} ${one.ns[i] === null ? "∞" : `${+(one.ns[i] / size[0]).toPrecision(3)} ${size[1]}`}`).join(", ")}`;
  const rows = made.shares.map((_, i) => [`${+shares[i].toPrecision(4)} %`, ...made.curves.map((one) => (one.ns[i] === null ? "∞" : `${+(one.ns[i] / size[0]).toPrecision(3)} ${size[1]}`))]);
  const dashes = { 1: [2, 3], 2: [7, 3] };
  return h("div", {}, legend(made.curves), canvas(`${made.word[0].toUpperCase()}${made.word.slice(1)}: of this share of samples none takes longer`, {
    scales: { x: { time: false }, y: { distr: 3 } },
    axes: [axis("share of samples, %"), { ...axis(size[1]), size: 62, values: (_, ticks) => ticks.map((one) => (one === null ? "" : String(+one.toPrecision(3)))) }],
    series: [{}, ...made.curves.map((one) => ({ stroke: solid(one.mark), width: 2, dash: dashes[one.mark], points: { show: false } }))],
  }, data, { word, count: shares.length, extra: { caption: made.word, columns: ["share", ...made.curves.map((one) => one.name)], numeric: made.curves.map((_, i) => i + 1), rows, sql: "" } }));
}

/** The samples of a trial in the order of time; of many the least, median and largest of spans. */
export function samples(made, mark) {
  const p = made.points;
  const ink = solid(mark);
  const dots = { paths: () => null, points: { show: true, size: 4, fill: ink, stroke: ink } };
  const failed = p.ms.map((one) => (one === null ? 0 : null));
  const data = made.bucketed ? [p.at_ms, p.least, p.ms, p.largest] : [p.at_ms, p.ms, failed];
  const series = made.bucketed
    ? [{}, { stroke: css("--muted"), width: 1 }, { stroke: ink, width: 1.6 }, { stroke: css("--muted"), width: 1 }]
    : [{}, { stroke: ink, ...dots }, { stroke: css("--bad"), paths: () => null, points: { show: true, size: 7, fill: css("--bad"), stroke: css("--bad") } }];
  const word = (i) => {
    const when = `after ${+p.at_ms[i].toPrecision(6)} ms`;
    if (made.bucketed) return p.ms[i] === null ? `${when}: all failed` : `${when}: ${p.least[i]} to ${p.largest[i]} ms, median ${p.ms[i]} ms`;
    const what = p.ms[i] === null ? `failed: ${p.error[i]}` : `${+p.ms[i].toPrecision(4)} ms`;
    return `request ${p.request[i]}, ${when}: ${what}${p.warmup[i] ? " (warm-up)" : ""}`;
  };
  const caption = `${made.word[0].toUpperCase()}${made.word.slice(1)} of ${made.said}`;
  const number = (one) => (one === null || one === undefined ? "" : String(+one.toPrecision(6)));
  const extra = made.bucketed
    ? { columns: ["ms from the first", "least, ms", "median, ms", "largest, ms"], numeric: [0, 1, 2, 3], rows: p.at_ms.map((at, i) => [at, p.least[i], p.ms[i], p.largest[i]].map(number)) }
    : { columns: ["request", "ms from the first", "ms", "what"], numeric: [1, 2], rows: p.at_ms.map((at, i) => [String(p.request[i]), number(at), number(p.ms[i]), p.error[i] || (p.warmup[i] ? "warm-up" : "")]) };
  return canvas(caption, {
    scales: { x: { time: false }, y: { range: (_, low, high) => [0, (high || 1) * 1.05] } }, axes: [axis("ms from the first"), { ...axis("ms"), size: 62 }], series,
  }, data, { word, count: p.at_ms.length, extra: { caption, sql: "", ...extra } });
}

const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]; // there is no half a block

/** How an interval closes in: its ratio and both ends after each block. */
export function closing(caption, seen, sql = "") {
  const data = [seen.map((one) => one.block), ...["low", "high", "ratio"].map((end) => seen.map((one) => one[end]))];
  const word = (i) => `after ${seen[i].block} blocks: ${seen[i].said}`;
  return canvas(caption, {
    height: 220, scales: { x: { time: false, range: (_, low, high) => (low === high ? [low - 1, high + 1] : [low, high]) }, y: {} },
    axes: [{ ...axis("blocks"), incrs: WHOLE }, { ...axis("ratio"), size: 62 }],
    // The ratio last: a band is drawn over the series before those that it lies between.
    series: [{}, { stroke: css("--muted"), width: 1 }, { stroke: css("--muted"), width: 1 }, { stroke: solid(seen[0].mark), width: 2 }],
    bands: [{ series: [2, 1], fill: css("--band") }],
  }, data, { word, count: seen.length, extra: { caption, columns: ["block", "verdict"], numeric: [], sql, rows: seen.map((one) => [String(one.block), one.said]) } });
}

/** Rungs of a ladder or claims: the same as intervals, with their own words. */
export function intervals(caption, points, data, margin = 0) {
  return forest(caption, points.map((one) => ({ ...one, label: one.label || one.title || one.text, mark: one.mark ?? 3, decided: one.decided ?? true })), { margin, data });
}
