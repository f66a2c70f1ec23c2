// Draws what the JSON beside each plot says; again when the theme changes.
(() => {
  const SYMBOLS = {
    baseline: "circle", slower: "triangle-right", faster: "triangle-left",
    "surely-worse": "triangle-right-open", "surely-better": "triangle-left-open", equivalent: "circle", typical: "circle-open",
    inconclusive: "diamond-open", invalid: "x", "no-data": "line-ew",
  };
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const CURVES = ["#7f8b97", "#0072b2", "#009e73", "#d55e00", "#cc79a7", "#e69f00", "#56b4e9"];

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const colour = (kind) => css(kind) || css("soft");
  // Plotly reads tags in its texts; names from a store must stay names.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  const axis = (more) => ({
    gridcolor: css("grid"), zerolinecolor: css("soft"), linecolor: css("line"), automargin: true,
    tickfont: { size: 12 }, title: { font: { size: 12 } }, ...more,
  });
  const layout = (more) => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, hovermode: "closest",
    font: { family: "system-ui, sans-serif", size: 12, color: css("ink") }, margin: { l: 8, r: 8, t: 26, b: 44 },
    hoverlabel: { align: "left" }, ...more,
  });
  const band = (ends, ref, fill, more) => ({
    type: "rect", xref: ref, yref: "paper", x0: ends[0], x1: ends[1], y0: 0, y1: 1,
    fillcolor: fill, line: { width: 0 }, layer: "below", ...more,
  });
  const heading = (text, x, anchor) => ({
    text, x, y: 1, xref: "paper", yref: "paper", yanchor: "bottom", xanchor: anchor, showarrow: false,
    font: { size: 12, color: css("soft") }, yshift: 4,
  });

  // Deterministic, so that the same report looks the same twice.
  const jitter = (index) => ((index * 0.618034) % 1 - 0.5) * 0.55;

  const whiskers = (row, shade) => ({
    type: "data", symmetric: false, array: [row.high - row.point], arrayminus: [row.point - row.low],
    color: shade, thickness: 2, width: 5,
  });

  function forest(figure) {
    const limit = figure.limit;
    const traces = [];
    const notes = [];
    const note = (row, x, text, more) => notes.push({ x, y: row, xref: "x", yref: "y", text, showarrow: false, ...more });
    if (figure.floor) {
      const row = figure.floor;
      traces.push({
        x: [row.point], y: [row.row], type: "scatter", mode: "markers", error_x: whiskers(row, css("soft")),
        marker: { size: 7, symbol: "circle-open", color: css("soft") },
        hovertemplate: `A/A: ${row.point.toFixed(2)} %, ${row.low.toFixed(2)} to ${row.high.toFixed(2)}<extra></extra>`,
      });
    }
    note(0, 0, `${plain(figure.baseline)} = 0`, { xanchor: "left", xshift: 6, font: { color: css("soft") } });
    for (const row of figure.intervals) {
      if (row.point === null) {
        note(row.row, 0, plain(row.text), { font: { color: css("soft") } });
        continue;
      }
      const far = Math.abs(row.point) > limit;
      const worse = row.point > 0;
      const at = far ? (worse ? 1 : -1) * limit * 0.96 : row.point;
      traces.push({
        x: [at], y: [row.row], type: "scatter", mode: "markers", error_x: far || row.low === null ? undefined : whiskers(row, colour(row.kind)),
        marker: { size: far ? 12 : 9, symbol: far ? (worse ? "triangle-right" : "triangle-left") : SYMBOLS[row.kind], color: colour(row.kind) },
        hovertemplate: `${plain(row.name)}: ${plain(row.hover)}<extra></extra>`,
      });
      if (far) {
        note(row.row, at, `${plain(row.text)}, off the scale`, {
          xanchor: worse ? "right" : "left", xshift: worse ? -10 : 10, font: { color: colour(row.kind) },
        });
      }
    }
    return { traces, notes };
  }

  function strip(figure) {
    const traces = figure.strips.map((entry, row) => ({
      x: entry.value, y: entry.value.map((_, index) => row + jitter(index)), type: "scatter", mode: "markers",
      xaxis: "x2", yaxis: "y", customdata: entry.block,
      marker: { size: entry.value.length > 300 ? 3 : 5, opacity: entry.value.length > 300 ? 0.45 : 0.7, color: colour(entry.kind) },
      hovertemplate: `${plain(entry.name)}: %{x:,.6~g}, block %{customdata}<extra></extra>`,
    }));
    traces.push({
      x: figure.strips.map((entry) => entry.median), y: figure.strips.map((_, row) => row), type: "scatter", mode: "markers",
      xaxis: "x2", yaxis: "y", marker: { symbol: "line-ns-open", size: 19, line: { width: 2.5, color: css("ink") }, color: css("ink") },
      hovertemplate: "median %{x:,.6~g}<extra></extra>",
    });
    return traces;
  }

  function metric(figure) {
    const left = forest(figure);
    const rows = figure.rows.length;
    return {
      data: [...left.traces, ...strip(figure)],
      layout: layout({
        height: 76 + 32 * rows, shapes: [band([-figure.margin, figure.margin], "x", css("band"))],
        annotations: [
          ...left.notes,
          heading(`overhead against ${plain(figure.baseline)}, % (right is worse; band: margin)`, 0, "left"),
          heading(`every sample: ${plain(figure.label)} (${figure.better} is better; bar: median)`, 1, "right"),
        ],
        xaxis: axis({ domain: [0, 0.47], range: [-figure.limit, figure.limit], zeroline: true, ticksuffix: " %" }),
        xaxis2: axis({ domain: [0.51, 1], type: figure.log ? "log" : "linear", zeroline: false }),
        yaxis: axis({
          tickmode: "array", tickvals: figure.rows.map((_, row) => row), ticktext: figure.rows.map(plain),
          range: [rows - 0.4, -0.6], showgrid: false, zeroline: false,
        }),
        margin: { l: 8, r: 8, t: 26, b: 40 },
      }),
    };
  }

  function floor(figure) {
    const names = figure.rows.map((row) => plain(row.name));
    const kind = (row) => (row.silent ? "equivalent" : "inconclusive");
    // One hopeless metric must not squeeze the others to dots: beyond this its whiskers leave the picture.
    const worst = Math.min(20, Math.max(...figure.rows.map((row) => Math.max(row.margin, Math.abs(row.low), Math.abs(row.high)))));
    return {
      data: [
        {
          type: "bar", orientation: "h", y: names, base: figure.rows.map((row) => -row.margin), x: figure.rows.map((row) => 2 * row.margin),
          marker: { color: css("band") }, hoverinfo: "skip", width: 0.7,
        },
        ...figure.rows.map((row, index) => ({
          x: [row.point], y: [names[index]], type: "scatter", mode: "markers",
          marker: { size: 8, color: colour(kind(row)), symbol: row.silent ? "circle" : "diamond" },
          error_x: whiskers(row, colour(kind(row))),
          hovertemplate: `${names[index]}: %{x:.2f} %<extra>${row.silent ? "holds zero" : "does not hold zero"}</extra>`,
        })),
      ],
      layout: layout({
        height: 70 + 24 * names.length, bargap: 0.2,
        xaxis: axis({ ticksuffix: " %", zeroline: true, range: [-1.1 * worst, 1.1 * worst] }),
        yaxis: axis({ autorange: "reversed", showgrid: false }),
        margin: { l: 8, r: 8, t: 8, b: 36 },
      }),
    };
  }

  function start(figure) {
    const rows = Math.ceil(figure.panels.length / 2);
    const shape = layout({
      height: 300 * rows, showlegend: true, legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 }, margin: { l: 8, r: 8, t: 34, b: 44 },
      grid: { rows, columns: Math.min(2, figure.panels.length), pattern: "independent", ygap: 0.3 }, annotations: [],
    });
    const order = [...new Set(figure.panels.flatMap((panel) => panel.curves.map((curve) => curve.name)))];
    const data = figure.panels.flatMap((panel, index) => {
      const suffix = index ? String(index + 1) : "";
      const all = panel.curves.flatMap((curve) => curve.x);
      const wide = all.length > 0 && Math.min(...all) > 0 && Math.max(...all) / Math.min(...all) > 8;
      shape[`xaxis${suffix}`] = axis({ title: { text: plain(panel.label), font: { size: 12 } }, type: wide ? "log" : "linear" });
      shape[`yaxis${suffix}`] = axis({ tickformat: ".0%", range: [0, 1.03] });
      return panel.curves.map((curve) => {
        const at = order.indexOf(curve.name);
        return {
          x: [curve.x[0], ...curve.x], y: [0, ...curve.y], type: "scatter", mode: "lines", name: plain(curve.name), xaxis: `x${suffix}`, yaxis: `y${suffix}`,
          line: { shape: "hv", width: 2, color: CURVES[at % CURVES.length], dash: DASHES[at % DASHES.length] }, legendgroup: String(at), showlegend: index === 0,
          hovertemplate: `${plain(curve.name)}: %{y:.0%} within %{x:,.4~g}<extra></extra>`,
        };
      });
    });
    return { data, layout: shape };
  }

  const upset = (figure) => footprints.upset(figure, { css, plain, axis, layout });
  const flame = (figure, id) => flames.flame(figure, { css, plain, layout }, id);
  const builders = { metric, floor, start, upset, flame };
  const drawn = new Set();
  function draw(source) {
    const figure = JSON.parse(source.textContent);
    const { data, layout: shape, ready } = builders[figure.kind](figure, source.dataset.plot);
    drawn.add(source);
    const done = Plotly.react(source.dataset.plot, data, shape, { displayModeBar: false, responsive: true });
    return ready ? done.then((made) => ready(made, () => draw(source))) : done;
  }

  const sources = [...document.querySelectorAll("script[data-plot]")];
  const drawOnce = (source) => { if (!drawn.has(source)) draw(source); };
  // What is in view first, the others one by one while the page is idle.
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watch.unobserve(entry.target);
      drawOnce(sources.find((source) => source.dataset.plot === entry.target.id));
    }
  }, { rootMargin: "300px" });
  sources.forEach((source) => watch.observe(document.getElementById(source.dataset.plot)));
  const later = window.requestIdleCallback || ((work) => setTimeout(work, 50));
  const queue = [...sources];
  const next = () => { if (queue.length) { drawOnce(queue.shift()); later(next); } };
  later(next);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(draw));
  // What was drawn while it was folded away knew no width.
  document.querySelectorAll("details").forEach((entry) => entry.addEventListener("toggle", () => {
    if (entry.open) sources.filter((source) => drawn.has(source) && entry.contains(source)).forEach(draw);
  }));
  document.addEventListener("draw-again", ({ detail }) => drawn.forEach((source) => {
    if (JSON.parse(source.textContent).kind === detail) draw(source);
  }));
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((entry) => { entry.open = true; });
    sources.forEach(drawOnce);
  });
})();
