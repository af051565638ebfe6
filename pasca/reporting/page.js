"use strict";
// Draws every plot of the page in the colours of the day or the night, each when it comes into view.

const payload = JSON.parse(document.getElementById("payload").textContent);
const night = window.matchMedia("(prefers-color-scheme: dark)");
const drawn = new Set();

/** The value of a colour such as "var(--accent)"; any other text as it is. */
function colour(name) {
  const match = /^var\((--[a-z0-9-]+)\)$/.exec(name);
  return match ? getComputedStyle(document.documentElement).getPropertyValue(match[1]).trim() : name;
}

/** A copy of a plot's description with its colours looked up. */
function coloured(value) {
  if (typeof value === "string") return value.startsWith("var(") ? colour(value) : value;
  if (Array.isArray(value)) return value.map(coloured);
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, coloured(inner)]));
  }
  return value;
}

/** What all plots share. Dragging would keep a finger from scrolling, so touch screens have none. */
function layoutOf(layout) {
  const text = colour("var(--text)");
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const base = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: text, family: getComputedStyle(document.body).fontFamily, size: 13 },
    margin: { l: 56, r: 12, t: 28, b: 44 },
    dragmode: touch ? false : "zoom",
    hoverlabel: {
      bgcolor: colour("var(--card)"), bordercolor: colour("var(--muted)"), font: { color: text }, align: "left",
    },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("var(--line)"), activecolor: colour("var(--accent)") },
    showlegend: layout.legend !== undefined,
  };
  const merged = { ...base, ...coloured(layout) };
  for (const name of Object.keys(merged)) {
    if (/^[xy]axis/.test(name)) merged[name] = { linecolor: colour("var(--line)"), ...merged[name] };
  }
  return merged;
}

const CONFIG = {
  responsive: true,
  displayModeBar: window.matchMedia("(hover: hover)").matches ? "hover" : false,
  displaylogo: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "toggleSpikelines"],
};

function draw(place) {
  const id = place.dataset.figure;
  const figure = id === "front" ? window.designs.figure() : payload.figures[id];
  const first = !drawn.has(id);
  drawn.add(id);
  return Plotly.react(place, coloured(figure.data), layoutOf(figure.layout), CONFIG).then(() => {
    if (id === "front" && first) window.designs.listen(place);
  });
}

function drawAll() {
  return Promise.all(Array.from(document.querySelectorAll(".plot"), draw));
}

document.addEventListener("DOMContentLoaded", () => {
  window.designs.start(() => draw(document.getElementById("plot-front")));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((entry) => entry.isIntersecting)) {
      watcher.unobserve(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "300px" });
  document.querySelectorAll(".plot").forEach((place) => watcher.observe(place));
  night.addEventListener("change", () => {
    for (const place of document.querySelectorAll(".plot")) if (drawn.has(place.dataset.figure)) draw(place);
  });
  window.addEventListener("beforeprint", drawAll);
});
