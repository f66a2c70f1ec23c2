"use strict";
// Tables that are sorted by a click on a column's head, and the filters of the table of platforms.
(() => {
  const collator = new Intl.Collator("en", { numeric: true });
  // A cell's figure, or its text; nothing comes last whichever way.
  const key = (cell) => {
    if (!cell) return null;
    if (cell.dataset.order !== undefined) return cell.dataset.order === "" ? null : Number(cell.dataset.order);
    const text = cell.textContent.trim();
    const number = Number(text.replace(/,/g, ""));
    return text === "" ? null : Number.isNaN(number) ? text : number;
  };
  const before = (one, other) => (typeof one === "number" && typeof other === "number" ? one - other : collator.compare(one, other));

  function sort(table, column, up) {
    const rows = [...table.tBodies[0].rows];
    const keyed = rows.map((row) => [key(row.cells[column]), row]);
    keyed.sort(([one], [other]) => {
      if (one === null || other === null) return (one === null) - (other === null);
      return up ? before(one, other) : before(other, one);
    });
    table.tBodies[0].append(...keyed.map(([, row]) => row));
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      if (at === column) head.setAttribute("aria-sort", up ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
  }

  document.querySelectorAll("table.sortable").forEach((table) => {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, column, head.getAttribute("aria-sort") !== "ascending"));
    });
  });

  function filter(form) {
    const table = document.getElementById(form.dataset.for);
    const written = form.elements.namedItem("name").value;
    let name = null;
    try {
      name = written ? new RegExp(written, "i") : null;
    } catch {
      return; // not yet a whole expression
    }
    const limits = [...form.querySelectorAll("[data-below]")].filter((field) => field.value !== "");
    const ruledOut = [...form.querySelectorAll("[data-without]")].filter((field) => field.checked);
    const fits = (row) => (name === null || name.test(row.dataset.platform))
      && limits.every(({ dataset: { below }, value }) => row.dataset[below] !== undefined && Number(row.dataset[below]) < Number(value))
      && ruledOut.every(({ dataset: { without } }) => row.dataset[without] === "no");
    const rows = [...table.tBodies[0].rows];
    const shown = new Set(rows.filter(fits).map((row) => row.dataset.platform));
    const all = new Set(rows.map((row) => row.dataset.platform));
    form.closest("main").querySelectorAll("[data-platform]").forEach((entry) => {
      entry.hidden = all.has(entry.dataset.platform) && !shown.has(entry.dataset.platform);
    });
    const parts = shown.size === all.size ? [] : [`${shown.size} of ${all.size} platforms`];
    const known = rows.filter((row) => fits(row) && row.dataset.cpu !== undefined && row.dataset.isolates === "yes");
    const weighed = rows.filter((row) => fits(row) && row.dataset.isolates === "yes" && row.querySelector(".is-weighted")?.dataset.order);
    if (weighed.length > 0 && parts.length > 0) {
      const cost = (row) => Number(row.querySelector(".is-weighted").dataset.order);
      const best = weighed.reduce((one, other) => (cost(other) < cost(one) ? other : one));
      const use = form.parentElement.querySelector("form.uses select").selectedOptions[0].textContent;
      parts.push(`for ${use}: ${best.dataset.platform}, ${best.querySelector(".is-weighted").textContent.trim()}`);
    } else if (known.length > 0 && parts.length > 0) {
      const least = known.reduce((one, other) => (Number(other.dataset.cpu) < Number(one.dataset.cpu) ? other : one));
      parts.push(`least CPU cost: ${least.dataset.platform}, ${least.querySelector(".is-cost").textContent.trim()}`);
    }
    form.querySelector("output").textContent = parts.join("; ");
  }

  // What the user runs: weighted costs, as tare.report.campaign.use_views makes them.
  const coarse = (times) => {
    const factor = (value) => value.toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
    if (Math.abs(Math.log2(times)) > 1) return times > 1 ? `${factor(times)} ×` : `${factor(1 / times)} × better`;
    const per = 100 * (times - 1);
    const text = Math.abs(per).toFixed(Math.abs(per) >= 10 ? 0 : 1);
    return `${Number(text) === 0 ? "" : per > 0 ? "+" : "−"}${text} %`;
  };
  function weigh(form) {
    const table = document.getElementById(form.dataset.for);
    const fields = [...form.querySelectorAll("[data-weight]")];
    const weights = fields.map((field) => [field.dataset.weight, Math.max(0, Number(field.value) || 0)]).filter(([, weight]) => weight > 0);
    const counts = new Set(weights.map(([name]) => name));
    const total = weights.reduce((sum, [, weight]) => sum + weight, 0);
    [...table.tBodies[0].rows].forEach((row) => {
      const costs = JSON.parse(row.dataset.costs);
      const works = Object.keys(costs.cpu).filter((name) => counts.has(name));
      const worst = (works.length > 0 ? works : Object.keys(costs.cpu)).map((name) => costs.cpu[name])
        .reduce((one, other) => (one && one[0] >= other[0] ? one : other), undefined);
      const terms = weights.map(([name, weight]) => [weight, name === "cpu-cost" ? worst : costs.of[name]]);
      const cell = row.querySelector(".is-weighted");
      const known = total > 0 && terms.every(([, cost]) => cost);
      const [times, low, high] = [0, 1, 2].map((end) => (known ? 2 ** (terms.reduce((sum, [weight, cost]) => sum + weight * cost[end], 0) / total) : null));
      cell.dataset.order = known ? String(times) : "";
      const unsure = weights.some(([name]) => costs.unsure.includes(name));
      cell.textContent = known ? `${unsure ? "? " : ""}${coarse(times)}` : "–";
      cell.title = known ? `${coarse(low)} to ${coarse(high)}` : "";
    });
    sort(table, [...table.tBodies[0].rows[0].cells].findIndex((cell) => cell.classList.contains("is-weighted")), true);
  }
  document.querySelectorAll("form.uses").forEach((form) => {
    const uses = JSON.parse(form.dataset.uses);
    form.hidden = false;
    form.addEventListener("input", (event) => {
      if (event.target.name === "use") form.querySelectorAll("[data-weight]").forEach((field) => { field.value = uses[event.target.value][field.dataset.weight] ?? 0; });
      weigh(form);
      const filters = form.parentElement.querySelector("form.filters");
      if (filters) filter(filters);
    });
    form.addEventListener("submit", (event) => event.preventDefault());
  });
  document.querySelectorAll("form.filters").forEach((form) => {
    form.hidden = false;
    form.addEventListener("input", () => filter(form));
    form.addEventListener("submit", (event) => event.preventDefault());
    filter(form);
  });

  // The score sheet: sums of points by priority, weighted, as tare.features.studies.analysis.profile adds them up.
  function add(form) {
    const table = document.getElementById(form.dataset.for);
    const most = [...table.tHead.rows[0].cells].filter((head) => head.dataset.most).map((head) => Number(head.dataset.most));
    const weights = [...form.querySelectorAll("[data-priority]")].map((field) => Math.max(0, Number(field.value) || 0));
    const chosen = [...form.querySelectorAll("[data-feature]")].map((field) => (field.value === "" ? null : Number(field.value)));
    const show = (cell, number, text) => {
      cell.dataset.order = number === null ? "" : String(number);
      cell.textContent = number === null ? "–" : text;
    };
    const plain = (number) => String(Math.round(100 * number) / 100);
    [...table.tBodies[0].rows].forEach((row) => {
      const sums = weights.map(() => 0);
      let attainable = 0;
      let [fewest, mostPoints] = [0, 0];
      row.querySelectorAll(".points-of").forEach((cell, at) => {
        const counts = chosen[at] !== null;
        cell.classList.toggle("off", !counts);
        if (!counts || cell.dataset.order === "") return;
        sums[chosen[at]] += Number(cell.dataset.order);
        attainable += weights[chosen[at]] * most[at];
        fewest += weights[chosen[at]] * Number(cell.dataset.fewest ?? cell.dataset.order);
        mostPoints += weights[chosen[at]] * Number(cell.dataset.most ?? cell.dataset.order);
      });
      const weighted = sums.reduce((total, sum, at) => total + weights[at] * sum, 0);
      row.querySelectorAll(".sum-of").forEach((cell, at) => show(cell, sums[at], String(sums[at])));
      show(row.querySelector(".weighted"), weighted, plain(weighted));
      const [low, high] = [fewest, mostPoints].map((sum) => Math.round((100 * sum) / attainable));
      const within = low === high ? "" : ` (${low} to ${high})`;
      const share = attainable ? (100 * weighted) / attainable : null;
      show(row.querySelector(".share"), share, share === null ? "" : `${Math.round(share)} %${within}`);
    });
    const sorted = [...table.tHead.rows[0].cells].findIndex((head) => head.hasAttribute("aria-sort"));
    if (sorted >= 0) sort(table, sorted, table.tHead.rows[0].cells[sorted].getAttribute("aria-sort") === "ascending");
  }
  document.querySelectorAll("form.scoring").forEach((form) => {
    form.addEventListener("input", () => add(form));
    form.addEventListener("reset", () => setTimeout(() => add(form)));
    form.addEventListener("submit", (event) => event.preventDefault());
  });

  // A link to what is folded away opens it, and a print has all.
  function unfold() {
    let entry = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    const target = entry;
    for (; entry; entry = entry.parentElement) if (entry.tagName === "DETAILS") entry.open = true;
    if (target) target.querySelectorAll("details.notes").forEach((notes) => { notes.open = true; });
  }
  addEventListener("hashchange", unfold);
  unfold();
  addEventListener("beforeprint", () => document.querySelectorAll("details:not([name])").forEach((entry) => { entry.open = true; }));
})();
