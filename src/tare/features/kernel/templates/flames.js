"use strict";
// Flame graphs, standing on their root. A search colours frames in all of them.
(() => {
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

  const SVG = "http://www.w3.org/2000/svg";
  const made = (parent, tag, attributes, text) => {
    const element = parent.appendChild(document.createElementNS(SVG, tag));
    Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // Where each frame stands: its depth, and its left side in samples; children stand side by side from their parent's.
  function placed(frames) {
    const depths = [];
    const lefts = [];
    const filled = [];
    frames.forEach(([, parent, count], index) => {
      depths.push(parent < 0 ? 0 : depths[parent] + 1);
      lefts.push(parent < 0 ? 0 : lefts[parent] + filled[parent]);
      filled.push(0);
      if (parent >= 0) filled[parent] += count;
    });
    return { depths, lefts };
  }

  function draw({ names, frames: every, row }, id) {
    const place = document.getElementById(id);
    const matches = every.map(([name, parent]) => wanted !== null && parent >= 0 && wanted.test(names[name]));
    const all = every[0][2];
    const said = document.getElementById(`${id}-found`);
    if (said) said.textContent = wanted === null ? "" : `matched: ${share(matched(every, matches), all)}`;
    const frames = narrow && wanted !== null ? above(every, names, matches) : every;
    place.textContent = "";
    if (!frames[0][2]) return;
    const hit = frames === every ? matches : frames.map(() => false);
    const { depths, lefts } = placed(frames);
    const level = widened.get(id) || 0;
    const width = place.clientWidth || 900;
    const height = row * rows(depths, level) + (level ? 24 : 0);
    const picture = made(place, "svg", { width, height, role: "img", "aria-label": `flame graph of ${all.toLocaleString("en")} samples` });
    const root = (count) => (frames === every ? `all ${count} samples` : `${count} samples that match`);
    const scale = width / frames[level][2];
    const floor = height - (level ? 24 : 0);
    const frame = (index, x, wide, y) => {
      const [name, , count] = frames[index];
      const called = names[name] === "" ? root(count.toLocaleString("en")) : names[name];
      const group = made(picture, "g", { class: "frame" });
      made(group, "title", {}, `${called}\n${share(count, all)} of the samples (${count.toLocaleString("en")})`);
      const box = made(group, "rect", { x, y, width: wide, height: row - 0.6 });
      box.style.fill = hit[index] ? "#c77ee6" : shade(names[name], frames === every || !depths[index] ? depths[index] : 2);
      const label = fitting(called, wide);
      if (label) made(group, "text", { x: x + 4, y: y + row - 5.5 }, label);
      group.addEventListener("click", () => {
        widened.set(id, index === level ? Math.max(0, frames[index][1]) : index);
        draw({ names, frames: every, row }, id);
      });
    };
    const end = depths.findIndex((depth, index) => index > level && depth <= depths[level]);
    for (let index = level; index < (end < 0 ? frames.length : end); index += 1) {
      const wide = frames[index][2] * scale;
      if (wide >= 0.4) frame(index, (lefts[index] - lefts[level]) * scale, wide, floor - row * (depths[index] - depths[level] + 1));
    }
    if (level) frame(frames[level][1], 0, width, height - row);
  }

  const sources = [...document.querySelectorAll("script[data-flame]")];
  const drawn = new Set();
  const show = (source) => {
    drawn.add(source);
    draw(JSON.parse(source.textContent), source.dataset.flame);
  };
  // What is in view first; what is folded away has no width, and is drawn when it is opened.
  const watch = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
    watch.unobserve(entry.target);
    show(sources.find((source) => source.dataset.flame === entry.target.id));
  }), { rootMargin: "300px" });
  sources.forEach((source) => watch.observe(document.getElementById(source.dataset.flame)));
  addEventListener("beforeprint", () => sources.forEach(show));
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => drawn.forEach(show), 150);
  });

  function again(section) {
    const [search, only] = section.querySelectorAll("input");
    try {
      wanted = search.value ? new RegExp(search.value, "i") : null;
    } catch {
      return; // not yet a whole expression
    }
    narrow = only.checked;
    widened.clear();
    drawn.forEach(show);
  }
  document.querySelectorAll(".flame-search").forEach((section) => section.addEventListener("input", () => again(section)));
})();
