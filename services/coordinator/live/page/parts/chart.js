// Line charts with axes, units and hover, drawn by uPlot (vendor/README.md).

import { make } from "./dom.js";

const PALETTE = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"];
const HEIGHT = 210;
const CYCLES = [undefined, [8, 4], [2, 3]];   // beyond eight colours, dashes keep lines apart
const BORDERS = ["solid", "dashed", "dotted"];   // of their signs in the legend
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A figure with one chart, or null without a value. `lines` are {label, points: [[x, y], ...], dash},
// with `margin: [[x, half], ...]` a band around the points; `mark: [label, y]` draws a line to compare with, `across` names the horizontal axis.
export function chart(title, lines, { unit = "", mark, low, high, across = "epoch" } = {}) {
  const drawn = lines.map((line) => ({ ...line, points: line.points.filter(([, y]) => Number.isFinite(y)) }))
    .filter((line) => line.points.length);
  if (!drawn.length) return null;
  const figure = make("figure", [make("figcaption", unit ? `${title} (${unit})` : title)]);
  const xs = [...new Set(drawn.flatMap((line) => line.points.map(([x]) => x)))].sort((a, b) => a - b);
  if (mark) drawn.push({ label: mark[0], points: xs.map((x) => [x, mark[1]]), dash: [2, 4], stroke: "--dim", marks: true });
  const bands = drawn.flatMap((line, at) => edges(line, at));
  const data = [xs, ...[...drawn, ...bands].map((line) => {
    const values = new Map(line.points);
    return xs.map((x) => values.get(x) ?? null);
  })];
  const plot = make("div", [], "plot", { role: "img", "aria-label": summary(title, drawn, unit) });
  figure.append(plot);
  // A chart needs its width, so it is drawn once its figure is on the page.
  const observer = new ResizeObserver(() => {
    const width = plot.clientWidth;
    if (!plot.isConnected) return release(observer, figure);
    if (!width) return;
    if (figure.uplot) return void figure.uplot.setSize({ width, height: HEIGHT });
    const drawing = figure.uplot = new uPlot(options(width, drawn, bands, xs, low, high, across), data, plot);
    // Without a pointer the legend shows the newest values.
    const newest = () => requestAnimationFrame(() => drawing.setLegend({ idx: xs.length - 1 }));
    drawing.over.addEventListener("mouseleave", newest);
    newest();
  });
  observer.observe(plot);
  return figure;
}

// A drawing listens to the window, so one that has left the page would stay in memory.
function release(observer, figure) {
  observer.disconnect();
  if (figure.uplot) figure.uplot.destroy();
}

// " ± 0.1" where the interval is known.
function half(line, drawing, place) {
  const found = (line.margin || []).find(([x]) => place !== null && x === drawing.data[0][place]);
  return found && Number.isFinite(found[1]) ? ` ± ${Number(found[1].toPrecision(2))}` : "";
}

// The upper and the lower edge of a line's band, as lines without a stroke.
function edges(line, at) {
  const margin = new Map((line.margin || []).filter(([, half]) => Number.isFinite(half)));
  if (!margin.size) return [];
  return [1, -1].map((side) => ({ of: at, points: line.points.filter(([x]) => margin.has(x)).map(([x, y]) => [x, y + side * margin.get(x)]) }));
}

// What a screen reader says: the newest value of each line.
function summary(title, lines, unit) {
  const newest = lines.map((line) => `${line.label} ${line.points.at(-1)[1].toPrecision(3)}`).join(", ");
  return `${title}${unit ? ` in ${unit}` : ""}, newest values: ${newest}`;
}

const cycle = (line, at) => (line.stroke ? 0 : Math.floor(at / PALETTE.length) % CYCLES.length);

function options(width, lines, bands, xs, low, high, across) {
  const places = xs.length, border = (line, at) => (line && line.dash ? "dashed" : BORDERS[line ? cycle(line, at) : 0]);
  const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
  const sign = (value) => (value === null || value === undefined ? "–" : Number(value.toPrecision(4)).toString());
  return {
    width, height: HEIGHT, scales: {
      x: { time: false, range: (_, from, to) => (places === 1 ? [xs[0] - 0.5, xs[0] + 0.5] : [from, to]) },
      y: { range: (_, from, to) => range(from, to, low, high) },
    },
    axes: [{ ...axis, label: across, labelSize: 18, size: 32, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] },
      { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => Number(tick.toPrecision(6)).toString()) }],
    legend: { live: true, markers: { dash: (_, at) => border(lines[at - 1], at - 1) } }, cursor: { points: { size: 7 }, drag: { x: true, y: false } },
    series: [{ label: across, value: (_, x) => (x === null || x === undefined ? "–" : String(x)) },
      ...lines.map((line, at) => ({
        label: line.label, stroke: colour(line.stroke || PALETTE[at % PALETTE.length]), width: 2, value: (drawing, y, __, place) => sign(y) + half(line, drawing, place),
        dash: line.dash || CYCLES[cycle(line, at)],
        spanGaps: true, points: { show: places <= 40 && !line.marks, size: 5 },
      })), ...bands.map(() => ({ label: "edge", class: "edge", stroke: "transparent", points: { show: false }, spanGaps: true }))],
    bands: bands.flatMap((edge, at) => (at % 2 ? [] : [{ series: [lines.length + at + 1, lines.length + at + 2],
      fill: `${colour(lines[edge.of].stroke || PALETTE[edge.of % PALETTE.length])}33` }])),
  };
}

function range(from, to, low, high) {
  const margin = (to - from || Math.abs(to) || 1) * 0.08;
  return [low ?? from - margin, high ?? to + margin];
}
