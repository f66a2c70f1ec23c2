"use strict";
// Footprints: source files with the hits of each platform beside the lines.
(() => {
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
})();
