"use strict";
// Flame graphs: each an icicle of plotly's, standing on its root. A search colours frames in all of them.
const flames = (() => {
  const LETTER = 6.4; // about as wide as one of the labels' is, in pixels
  const widened = new Map(); // by plot: the frame that fills its width
  let wanted = null;
  let narrow = false; // to what is above the frames that match

  const hash = (text) => [...text].reduce((sum, letter) => (Math.imul(sum, 31) + letter.charCodeAt(0)) >>> 0, 7);
  const share = (part, of) => `${(100 * part / of).toFixed(part / of < 0.1 ? 2 : 1)} %`;
  // The same name has the same colour on every platform: modules green, the kernel's own red to yellow.
  const shade = (name, depth) => {
    if (depth === 0) return "#c3c9d0";
    if (name === "[user]") return "#a9cdf0";
    if (name === "[guest]") return "#d5b8e8";
    if (depth === 1 || name === "[no path]") return "#d9dde2";
    const number = hash(name);
    const light = 70 + (number >>> 8) % 14;
    return name.endsWith("]") ? `hsl(${95 + number % 60}, 45%, ${light}%)` : `hsl(${8 + number % 42}, 80%, ${light}%)`;
  };

  // Samples under frames that match, each counted once.
  function matched(frames, hit) {
    const under = [];
    let samples = 0;
    frames.forEach(([, parent, count], index) => {
      const inside = parent >= 0 && under[parent];
      under.push(inside || hit[index]);
      if (hit[index] && !inside) samples += count;
    });
    return samples;
  }

  // One graph of all that stands on frames that match, wherever these stand: they are its first row.
  function above(frames, names, hit) {
    const root = { name: frames[0][0], samples: 0, above: new Map() };
    const places = [];
    frames.forEach(([name, parent, samples], index) => {
      const below = parent >= 0 ? places[parent] : undefined;
      const on = below || (hit[index] ? root : undefined);
      if (!on) return;
      if (on === root) root.samples += samples;
      if (!on.above.has(name)) on.above.set(name, { name, samples: 0, above: new Map() });
      places[index] = on.above.get(name);
      places[index].samples += samples;
    });
    const made = [];
    const add = (node, parent) => {
      const place = made.push([node.name, parent, node.samples]) - 1;
      [...node.above.values()].sort((one, other) => (names[one.name] < names[other.name] ? -1 : 1)).forEach((each) => add(each, place));
    };
    add(root, -1);
    return made;
  }

  // What fits into a frame: all of the name, its beginning, or nothing.
  function fitting(name, pixels) {
    const letters = Math.floor((pixels - 8) / LETTER);
    if (name.length <= letters) return name;
    return letters < 4 ? "" : `${name.slice(0, letters - 1)}…`;
  }

  // How many rows there are from a frame up: those above it come after it in the list, until one is as low again.
  function rows(depths, level) {
    const end = depths.findIndex((depth, index) => index > level && depth <= depths[level]);
    return Math.max(...depths.slice(level, end < 0 ? undefined : end)) - depths[level] + 1;
  }

  function flame({ names, frames: every, row }, { css, plain, layout }, id) {
    const matches = every.map(([name, parent]) => wanted !== null && parent >= 0 && wanted.test(names[name]));
    const all = every[0][2];
    const said = document.getElementById(`${id}-found`);
    if (said) said.textContent = wanted === null ? "" : `matched: ${share(matched(every, matches), all)}`;
    const frames = narrow && wanted !== null ? above(every, names, matches) : every;
    if (!frames[0][2]) return { data: [], layout: layout({ height: 2 * row, xaxis: { visible: false }, yaxis: { visible: false } }) };
    const hit = frames === every ? matches : frames.map(() => false);
    const depths = [];
    frames.forEach(([, parent]) => depths.push(parent < 0 ? 0 : depths[parent] + 1));
    const level = widened.get(id) || 0;
    const width = document.getElementById(id).clientWidth;
    const root = (count) => (frames === every ? `all ${count} samples` : `${count} samples that match`);
    const called = frames.map(([name, , count]) => (names[name] === "" ? root(count.toLocaleString("en")) : names[name]));
    return {
      data: [{
        type: "icicle", branchvalues: "total", sort: false, leaf: { opacity: 1 }, maxdepth: -1, level: String(level),
        ids: frames.map((_, index) => String(index)), parents: frames.map(([, parent]) => (parent < 0 ? "" : String(parent))),
        labels: called.map(plain), values: frames.map(([, , count]) => count),
        text: frames.map(([, , count], index) => plain(fitting(called[index], width * Math.min(1, count / frames[level][2])))),
        hovertext: frames.map(([, , count], index) => `${plain(called[index])}<br>${share(count, all)} of the samples (${count.toLocaleString("en")})`),
        tiling: { orientation: "v", flip: "y", pad: 0 }, pathbar: { visible: level > 0, side: "bottom", thickness: 20 },
        marker: {
          colors: frames.map(([name], index) => (hit[index] ? "#c77ee6" : shade(names[name], frames === every || !depths[index] ? depths[index] : 2))),
          line: { width: 0.6, color: css("paper") },
        },
        textfont: { size: 11, color: "#1c2127" }, textinfo: "text", textposition: "middle left", hoverinfo: "text",
      }],
      layout: layout({
        height: row * rows(depths, level) + (level ? 32 : 8), margin: { l: 0, r: 0, t: 4, b: level ? 28 : 4 },
      }),
      ready: (drawn, again) => {
        drawn.removeAllListeners("plotly_icicleclick");
        drawn.on("plotly_icicleclick", ({ points: [point] }) => {
          const chosen = Number(point.id);
          widened.set(id, chosen === (widened.get(id) || 0) ? Math.max(0, frames[chosen][1]) : chosen);
          again();
          return false; // the labels' places are another's to know
        });
      },
    };
  }

  function again(section) {
    const [search, only] = section.querySelectorAll("input");
    try {
      wanted = search.value ? new RegExp(search.value, "i") : null;
    } catch {
      return; // not yet a whole expression
    }
    narrow = only.checked;
    widened.clear();
    document.dispatchEvent(new CustomEvent("draw-again", { detail: "flame" }));
  }
  document.querySelectorAll(".flame-search").forEach((section) => section.addEventListener("input", () => again(section)));
  return { flame };
})();
