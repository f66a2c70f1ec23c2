"use strict";
// Footprints: UpSet plots, and source files with the hits of each platform beside the lines.
const footprints = (() => {
  function upset(figure, { css, plain, axis, layout }) {
    const names = figure.platforms;
    const at = figure.bars.map((_, index) => index);
    const height = 230 + 24 * names.length;
    const dots = { in: { x: [], y: [] }, out: { x: [], y: [] } };
    figure.bars.forEach((bar, index) => names.forEach((_, row) => {
      const kind = bar.in.includes(row) ? dots.in : dots.out;
      kind.x.push(index);
      kind.y.push(row);
    }));
    const said = (bar) => bar.in.map((row) => plain(names[row])).join(" and ") + (bar.in.length < names.length ? " only" : "");
    const lines = figure.bars.map((bar, index) => ({
      type: "line", xref: "x", yref: "y2", x0: index, x1: index, y0: Math.min(...bar.in), y1: Math.max(...bar.in),
      line: { color: css("ink"), width: 2 },
    }));
    const split = 24 * names.length / height;
    return {
      data: [
        {
          type: "bar", x: at, y: figure.bars.map((bar) => bar.things), marker: { color: css("soft") }, width: 0.62,
          text: figure.bars.map((bar) => bar.things.toLocaleString("en")), textposition: "outside", cliponaxis: false,
          hovertext: figure.bars.map(said), hovertemplate: "%{hovertext}: %{y:,}<extra></extra>",
        },
        {
          type: "scatter", mode: "markers", ...dots.out, yaxis: "y2", hoverinfo: "skip",
          marker: { size: 9, symbol: "circle-open", color: css("line"), line: { width: 1.5 } },
        },
        { type: "scatter", mode: "markers", ...dots.in, yaxis: "y2", hoverinfo: "skip", marker: { size: 11, color: css("ink") } },
      ],
      layout: layout({
        height, shapes: lines, bargap: 0.3,
        xaxis: axis({ showticklabels: false, showgrid: false, zeroline: false, range: [-0.7, Math.max(6.7, figure.bars.length - 0.3)] }),
        yaxis: axis({ domain: [split + 0.06, 1], zeroline: true, rangemode: "tozero", tickformat: "," }),
        yaxis2: axis({
          domain: [0, split], range: [names.length - 0.4, -0.6], showgrid: false, zeroline: false, tickmode: "array",
          tickvals: names.map((_, row) => row), ticktext: names.map((name, row) => `${plain(name)} ${figure.sizes[row].toLocaleString("en")}`),
        }),
        margin: { l: 8, r: 8, t: 26, b: 10 },
      }),
    };
  }

  function table({ platforms, seconds, rows }) {
    const made = document.createElement("table");
    made.className = "lines";
    const add = (parent, tag, text, kind) => {
      const cell = parent.appendChild(document.createElement(tag));
      cell.textContent = text;
      if (kind) cell.className = kind;
      return cell;
    };
    const head = made.createTHead().insertRow();
    const names = platforms.map((name, index) => `${name} in ${seconds[index].toLocaleString("en")} s`);
    ["", ...names, "source"].forEach((name) => { add(head, "th", name).scope = "col"; });
    const body = made.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      if (row === null) {
        const gap = add(line, "td", "⋯", "gap");
        gap.colSpan = platforms.length + 2;
        continue;
      }
      const [number, text, ...hits] = row;
      add(line, "th", number).scope = "row";
      platforms.forEach((_, index) => {
        const count = hits[index];
        if (count === undefined) add(line, "td", "");
        else if (count < 0) add(line, "td", `(${(-count).toLocaleString("en")})`, "idle");
        else add(line, "td", count.toLocaleString("en"), count ? "ran" : "not");
      });
      add(line, "td", text, "text");
    }
    return made;
  }

  function show(entry) {
    const source = entry.querySelector("script.lines");
    if (!entry.open || !source || entry.querySelector("table.lines")) return;
    const frame = entry.appendChild(document.createElement("div"));
    frame.className = "wide";
    frame.append(table(JSON.parse(source.textContent)));
  }
  document.querySelectorAll("details.source").forEach((entry) => entry.addEventListener("toggle", () => show(entry)));
  return { upset };
})();
