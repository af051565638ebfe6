// The front: its plot, the chosen design, and the rows of all tables that stand for a design.
// A design is named by its key: "t" and a trial's number, or "c" and a classic's name.

window.designs = (() => {
  const data = payload.front;
  const placeOf = new Map(data.ids.map((id, place) => [`t${id}`, place]));
  const classicOf = new Map(data.classics.map((classic) => [`c${classic.name}`, classic]));
  const axes = new Map(data.objectives.map((objective) => [objective.name, objective]));
  const onFront = new Set(data.front);
  let redraw = () => {};
  let chosen = null;

  // Texts -------------------------------------------------------------------------------------------------------------

  function valueText(name, value) {
    if (value === null || value === undefined) return "–";
    const unit = (axes.get(name) || { unit: "" }).unit;
    if (unit === "1") return `${(100 * value).toFixed(1)} %`;
    if (unit === "s") return value < 1 ? `${+(1e3 * value).toPrecision(3)} ms` : `${+value.toPrecision(3)} s`;
    if (unit === "B") return value < 1e9 ? `${+(value / 1e6).toPrecision(3)} MB` : `${+(value / 1e9).toPrecision(3)} GB`;
    if (unit === "count") return Math.round(value).toLocaleString("en");
    return `${+value.toPrecision(4)}`;
  }

  const title = (name) => (axes.get(name) || { title: name }).title;

  /** A text as Plotly shows it literally. */
  const plotText = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  /** What each part of a design means. */
  function words(design) {
    return design.split("/").map((part, place) => data.words[`${place}:${part}`]).filter(Boolean);
  }

  // The plot ----------------------------------------------------------------------------------------------------------

  const axisName = (which) => document.getElementById(`axis-${which}`).value;

  function hover(name, design, values, x, y) {
    const lines = [`<b>${plotText(name)}</b>`, plotText(design)];
    for (const axis of [y, x]) lines.push(`${title(axis)} ${valueText(axis, values(axis))}`);
    return lines.join("<br>");
  }

  function points(places, x, y, style) {
    return {
      type: "scatter", mode: "markers",
      x: places.map((place) => data.values[x][place]),
      y: places.map((place) => data.values[y][place]),
      customdata: places.map((place) => `t${data.ids[place]}`),
      text: places.map((place) =>
        hover(`design ${data.ids[place]}`, data.designs[place], (name) => data.values[name][place], x, y)),
      hovertemplate: "%{text}<extra></extra>",
      ...style,
    };
  }

  function traces(x, y) {
    const all = data.ids.map((_, place) => place).filter((place) => data.values[x][place] !== null);
    const others = all.filter((place) => !onFront.has(place));
    const inTurn = data.front.slice().sort((one, other) => data.values[x][one] - data.values[x][other]);
    const searched = data.searched.length === 2 && data.searched.includes(x) && data.searched.includes(y) && x !== y;
    const found = [
      points(others.filter((place) => data.feasible[place] && data.statuses[place] === "complete"), x, y, {
        name: "evaluated", marker: { color: "var(--muted)", size: 7, opacity: 0.45 },
      }),
      points(others.filter((place) => !data.feasible[place]), x, y, {
        name: "breaks a bound", marker: { color: "var(--warn)", size: 8, symbol: "x-thin-open", line: { width: 1.5 } },
      }),
      points(others.filter((place) => data.feasible[place] && data.statuses[place] === "stopped"), x, y, {
        name: "stopped early", marker: { color: "var(--muted)", size: 7, symbol: "circle-open" },
      }),
      points(inTurn, x, y, {
        name: "front", mode: searched ? "lines+markers" : "markers",
        line: { shape: "hv", color: "var(--accent)", width: 1.5 },
        marker: {
          color: "var(--accent)", size: inTurn.map((place) => (place === data.knee ? 15 : 10)),
          symbol: inTurn.map((place) => (place === data.knee ? "star" : "circle")), opacity: 1,
        },
        ...(y === "val_error" ? { error_y: {
          type: "data", array: inTurn.map((place) => data.deviations[data.front.indexOf(place)] || 0),
          color: "var(--accent)", thickness: 1, width: 3,
        } } : {}),
      }),
    ].filter((trace) => trace.x.length);
    const classics = data.classics.filter((classic) => [x, y].every((name) => Number.isFinite(classic.values[name])));
    if (classics.length) {
      found.push({
        type: "scatter", mode: "markers+text", name: "classic",
        x: classics.map((classic) => classic.values[x]), y: classics.map((classic) => classic.values[y]),
        customdata: classics.map((classic) => `c${classic.name}`),
        text: classics.map((classic) => plotText(classic.name)),
        hovertext: classics.map((classic) => hover(classic.name, classic.design, (name) => classic.values[name], x, y)),
        hovertemplate: "%{hovertext}<extra></extra>",
        textposition: labelPlaces(classics, found, x, y), textfont: { size: 11, color: "var(--muted)" },
        marker: { color: "var(--series-2)", size: 9, symbol: "diamond", line: { width: 1, color: "var(--card)" } },
      });
    }
    const value = chosen === null ? null : valuesOf(chosen);
    if (value && Number.isFinite(value(x)) && Number.isFinite(value(y))) {
      found.push({
        type: "scatter", mode: "markers", x: [value(x)], y: [value(y)], hoverinfo: "skip", showlegend: false,
        marker: { color: "var(--text)", size: 20, symbol: "circle-open", line: { width: 2 } },
      });
    }
    return found;
  }

  /** From the best value to where three quarters of the designs are, and the whole front; null for all of them. */
  function range(name, log) {
    const known = data.values[name].filter(Number.isFinite).sort((one, other) => one - other);
    if (known.length < 8) return null;
    const kept = [known[0], known[Math.floor(0.75 * (known.length - 1))]];
    for (const [at, place] of data.front.entries()) {
      const deviation = name === "val_error" ? data.deviations[at] || 0 : 0;
      kept.push(data.values[name][place] - deviation, data.values[name][place] + deviation);
    }
    kept.push(...data.classics.map((classic) => classic.values[name]).filter(Number.isFinite));
    const ends = [Math.min(...kept), Math.max(...kept)].map((value) => (log ? Math.log10(value) : value));
    const pad = 0.08 * (ends[1] - ends[0] || 1);
    return [ends[0] - pad, ends[1] + pad];
  }

  /** Where each classic's name stands beside its point, so that names cover few points and no other names. */
  function labelPlaces(classics, drawn, x, y) {
    const [across, up] = [x, y].map((name) => {
      const { type, range: given } = axisOf(name);
      const scaled = (value) => (type === "log" ? Math.log10(value) : value);
      const all = [...data.values[name].filter(Number.isFinite), ...classics.map((classic) => classic.values[name])].map(scaled);
      const [low, high] = given || [Math.min(...all), Math.max(...all)];
      return (value) => (scaled(value) - low) / (high - low || 1);
    });
    const [wide, tall] = [Math.min(window.innerWidth, 1216) - (window.innerWidth < 900 ? 130 : 480), 400];
    const at = (one, other) => [across(one) * wide, (1 - up(other)) * tall];
    const marked = (left, top) => [left - 6, top - 6, left + 6, top + 6];
    const taken = classics.map((classic) => marked(...at(classic.values[x], classic.values[y])));
    for (const trace of drawn) trace.x.forEach((value, place) => taken.push(marked(...at(value, trace.y[place]))));
    return classics.map((classic) => {
      const [left, top] = at(classic.values[x], classic.values[y]);
      const width = 6.5 * classic.name.length;
      const boxes = {
        "top center": [left - width / 2, top - 22, left + width / 2, top - 7],
        "bottom center": [left - width / 2, top + 7, left + width / 2, top + 22],
        "middle right": [left + 8, top - 7, left + 8 + width, top + 7],
        "middle left": [left - 8 - width, top - 7, left - 8, top + 7],
      };
      const worse = ([a, b, c, d]) => (a < 0 || b < 0 || c > wide || d > tall ? 2 : 0)
        + taken.filter(([e, f, g, h]) => a < g && e < c && b < h && f < d).length;
      const [place, box] = Object.entries(boxes).sort(([, one], [, other]) => worse(one) - worse(other))[0];
      taken.push(box, box);  // names on names are worse than names on points
      return place;
    });
  }

  /** Ticks of a logarithmic axis at 1, 2 and 5 of every decade, or at 1 where there are many; in handy units. */
  function ticks(name, known) {
    const [low, high] = [Math.log10(Math.min(...known)), Math.log10(Math.max(...known))];
    const digits = high - low > 2.5 ? [1] : [1, 2, 5];
    const values = [];
    for (let decade = Math.floor(low) - 1; decade <= Math.ceil(high); decade += 1) {
      values.push(...digits.map((digit) => digit * 10 ** decade));
    }
    return { tickvals: values, ticktext: values.map((value) => tickText(name, value)) };
  }

  function tickText(name, value) {
    if (axes.get(name).unit !== "count") return valueText(name, value);
    for (const [sign, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
      if (value >= size) return `${+(value / size).toPrecision(3)}${sign}`;
    }
    return `${+value.toPrecision(3)}`;
  }

  function axisOf(name) {
    const objective = axes.get(name);
    const known = data.values[name].filter(Number.isFinite);
    const log = objective.unit !== "1" && known.length > 0 && Math.min(...known) > 0;
    const limits = range(name, log);
    return {
      title: { text: objective.title }, gridcolor: "var(--line)", zeroline: false, automargin: true,
      type: log ? "log" : "linear",
      ...(limits ? { range: limits } : {}),
      ...(objective.unit === "1" ? { tickformat: ".0%" } : {}),
      ...(log ? ticks(name, known) : { exponentformat: "SI" }),
    };
  }

  function figure() {
    const [x, y] = [axisName("x"), axisName("y")];
    const shapes = [];
    for (const [name, limit] of Object.entries(data.bounds)) {
      const line = { type: "line", line: { color: "var(--warn)", dash: "dash", width: 1 } };
      if (name === x) shapes.push({ ...line, xref: "x", x0: limit, x1: limit, yref: "paper", y0: 0, y1: 1 });
      if (name === y) shapes.push({ ...line, yref: "y", y0: limit, y1: limit, xref: "paper", x0: 0, x1: 1 });
    }
    return {
      data: traces(x, y),
      layout: {
        height: window.innerWidth < 600 ? 440 : 540, hovermode: "closest", shapes, xaxis: axisOf(x), yaxis: axisOf(y),
        legend: { orientation: "h", y: 1.02, yanchor: "bottom" }, uirevision: `${x} ${y}`,
      },
    };
  }

  // The chosen design -------------------------------------------------------------------------------------------------

  function valuesOf(key) {
    if (placeOf.has(key)) return (name) => (data.values[name] || [])[placeOf.get(key)];
    return classicOf.has(key) ? (name) => classicOf.get(key).values[name] : null;
  }

  function element(name, text, inner = []) {
    const made = document.createElement(name);
    if (text !== null) made.textContent = text;
    made.append(...inner);
    return made;
  }

  function showDetail() {
    const panel = document.getElementById("detail");
    const place = placeOf.get(chosen);
    const classic = classicOf.get(chosen);
    if (place === undefined && classic === undefined) {
      panel.replaceChildren(element("p", "No design is chosen."));
      return;
    }
    const design = classic ? classic.design : data.designs[place];
    const at = classic ? -1 : data.front.indexOf(place);
    const rows = data.objectives.map((objective) => [objective.title, valueText(objective.name, valuesOf(chosen)(objective.name))])
      .filter(([, text]) => text !== "–");
    const tested = classic ? classic.tested : data.tested[at];
    if (tested) {
      rows.push([`test ${data.metric}`, `${(100 * tested[0]).toFixed(1)}${tested[1] === null ? "" : ` ± ${(100 * tested[1]).toFixed(1)}`} %`]);
    }
    if (!classic) {
      rows.push(["seeds", `${data.seeds[place]}`], ["evaluated in", `${+data.seconds[place].toPrecision(3)} s`]);
      if (data.methods[place]) rows.push(["proposed by", data.methods[place]]);
    }
    const what = classic ? classic.name : `Design ${data.ids[place]}`;
    const role = classic ? "classic" : place === data.knee ? "knee of the front" : at >= 0 ? "on the front"
      : data.statuses[place] === "failed" ? "failed" : data.feasible[place] ? "not on the front" : "breaks a bound";
    const parts = [
      element("h3", `${what}, ${role}`),
      element("code", design),
      element("ul", null, words(design).map((text) => element("li", text))),
      element("dl", null, rows.flatMap(([name, text]) => [element("dt", name), element("dd", text)])),
    ];
    if (!classic && data.reasons[data.ids[place]]) parts.push(element("p", data.reasons[data.ids[place]]));
    if (!classic && data.feasible[place] && data.statuses[place] === "complete") {
      const command = element("code", `pasca export ${data.run} --pick ${data.ids[place]}`);
      command.className = "command";
      parts.push(element("p", "To get this design as a model:"), command);
    }
    panel.replaceChildren(...parts);
  }

  /** Choose a design: its point is circled, its rows are marked, its details are shown. */
  function choose(key, { scroll = false } = {}) {
    if (!placeOf.has(key) && !classicOf.has(key)) return;
    chosen = key;
    for (const row of document.querySelectorAll("tr[data-key]")) {
      if (row.dataset.key === key) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
    const row = document.querySelector("#front tr[aria-current]");
    if (scroll && row) row.scrollIntoView({ block: "nearest" });
    showDetail();
    history.replaceState(null, "", `#${encodeURIComponent(key)}`);
    redraw();
  }

  /** Walk along the front from the chosen design. */
  function step(by) {
    if (!data.front.length) return;
    const at = data.front.indexOf(placeOf.get(chosen));
    const next = at < 0 ? 0 : Math.min(Math.max(at + by, 0), data.front.length - 1);
    choose(`t${data.ids[data.front[next]]}`, { scroll: true });
  }

  function onKey(event) {
    const row = event.target.closest("tr[data-key]");
    if (row && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      choose(row.dataset.key);
    } else if (row && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      const next = event.key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling;
      if (next) {
        event.preventDefault();
        next.focus();
        choose(next.dataset.key);
      }
    } else if (event.target.id === "plot-front" && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      event.preventDefault();
      step(event.key === "ArrowRight" ? 1 : -1);
    }
  }

  // All designs as a table, made when it is opened --------------------------------------------------------------------

  function fillEverything(sortedBy = null, falling = false) {
    const box = document.getElementById("everything");
    const names = data.objectives.map((objective) => objective.name);
    const columns = [
      ["id", (place) => data.ids[place], (place) => `${data.ids[place]}`],
      ["design", (place) => data.designs[place], (place) => data.designs[place]],
      ["status", (place) => data.statuses[place], (place) => data.statuses[place]],
      ...names.map((name) => [title(name), (place) => data.values[name][place], (place) => valueText(name, data.values[name][place])]),
      ["proposed by", (place) => data.methods[place], (place) => data.methods[place]],
    ];
    const places = data.ids.map((_, place) => place);
    if (sortedBy !== null) {
      const worth = columns[sortedBy][1];
      // What has no value comes last, whichever way is sorted.
      places.sort((one, other) => {
        const [a, b] = [worth(one), worth(other)];
        if (a === null || b === null) return (a === null) - (b === null);
        return (falling ? -1 : 1) * (a < b ? -1 : a > b ? 1 : 0);
      });
    }
    box.querySelector("thead").replaceChildren(element("tr", null, columns.map(([name], column) => {
      const button = element("button", name + (column === sortedBy ? (falling ? " ▾" : " ▴") : ""));
      button.addEventListener("click", () => fillEverything(column, column === sortedBy && !falling));
      const head = element("th", null, [button]);
      head.scope = "col";
      return head;
    })));
    box.querySelector("tbody").replaceChildren(...places.map((place) => {
      const row = element("tr", null, columns.map(([, , text], column) => {
        const cell = element("td", text(place));
        if (column === 1) {
          cell.className = "design";
          cell.replaceChildren(...text(place).split(/(?<=\/)(?!-)/).flatMap((part) => [part, element("wbr", null)]));
        }
        if (column >= 3 && column < 3 + names.length) cell.className = "number";
        return cell;
      }));
      row.dataset.key = `t${data.ids[place]}`;
      row.tabIndex = 0;
      if (row.dataset.key === chosen) row.setAttribute("aria-current", "true");
      return row;
    }));
  }

  // Start -------------------------------------------------------------------------------------------------------------

  function start(drawFront) {
    const searched = data.searched;
    const up = searched.includes("val_error") ? "val_error" : searched[0];
    const first = { y: up, x: searched.find((name) => name !== up) };
    for (const which of ["x", "y"]) {
      const menu = document.getElementById(`axis-${which}`);
      menu.replaceChildren(...data.objectives.map((objective) => {
        const option = element("option", objective.title);
        option.value = objective.name;
        option.selected = objective.name === first[which];
        return option;
      }));
      menu.addEventListener("change", () => redraw());
    }
    document.getElementById("everything-count").textContent = `${data.ids.length}`;
    const everything = document.getElementById("everything");
    everything.addEventListener("toggle", () => everything.open && fillEverything());
    document.addEventListener("click", (event) => {
      const row = event.target.closest("tr[data-key]");
      if (row) choose(row.dataset.key);
    });
    document.addEventListener("keydown", onKey);
    const asked = decodeURIComponent(location.hash.slice(1));
    const best = data.knee === null ? data.front[0] : data.knee;
    if (placeOf.has(asked) || classicOf.has(asked)) choose(asked);
    else if (best !== undefined) {
      chosen = `t${data.ids[best]}`;
      document.querySelectorAll("tr[data-key]").forEach((row) => {
        if (row.dataset.key === chosen) row.setAttribute("aria-current", "true");
      });
    }
    showDetail();
    redraw = drawFront;
  }

  function listen(plot) {
    plot.on("plotly_click", (event) => {
      const key = event.points[0].customdata;
      if (key) choose(key, { scroll: true });
    });
  }

  return { start, figure, listen };
})();
