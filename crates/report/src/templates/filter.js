// One filter for the page: the cells of the experiment that match stay, in the figure and in every table. Its state is in the
// address, so that a link keeps it. Pages that are no report have a search of rows.
(() => {
  const texts = (list) => Array.from(list, (item) => item.textContent.trim());
  const isReport = document.querySelector("table.main") !== null;
  const tables = Array.from(document.querySelectorAll("table.sortable"));
  const main = isReport ? document.querySelector("table.main[data-by]") : tables.find((table) => table.tBodies[0].rows.length >= 8);
  if (!main) return;

  // The cells: a row of the main table each, with its names on the axes.
  const isGroup = (row) => row.classList.contains("group");
  const first = Array.from(main.rows).find((row) => row.cells[0].scope === "row");
  const ofGroup = isReport ? main.dataset.by.split("|").filter(Boolean) : [];
  const ofRow = isReport ? texts(main.tHead.rows[0].cells).slice(0, first.querySelectorAll("th").length) : [];
  const axes = ofGroup.concat(ofRow);
  const cells = [];
  each(main.tBodies, (body) => {
    const head = body.rows[0] && isGroup(body.rows[0]) ? body.rows[0] : null;
    const group = head ? texts(head.querySelectorAll("span")) : [];
    each(body.rows, (row) => {
      if (row === head) return;
      const names = group.concat(texts(row.querySelectorAll("th"))).slice(0, axes.length);
      // Both as they are shown and as paths have them: `batch 1`, `vit/b1/int8`.
      const path = names.join("/").replace(/\bbatch (?=\d)/g, "b");
      cells.push({ row, names, text: [path, ...group, ...texts(row.cells)].join(" ").toLowerCase() });
    });
  });

  // What other rows and columns are about: a cell, or the names in their label.
  const byPath = new Map();
  const axisOf = new Map();
  for (const cell of cells) {
    const link = cell.row.querySelector("th a");
    const path = link && decodeURIComponent(link.hash.slice(1));
    const twin = path && document.getElementById(path);
    if (path) byPath.set(path, cell);
    if (twin && twin.cells) byPath.set(twin.cells[0].textContent, cell);
    cell.names.forEach((name, axis) => axisOf.set(name, axisOf.get(name) >= 0 && axisOf.get(name) !== axis ? -1 : axis));
  }
  const named = (labels) => {
    const names = axes.map(() => []);
    for (const label of labels) {
      for (const part of axisOf.has(label) ? [label] : label.split(/, | and | at |\//)) {
        const name = part.replace(/^b(\d+)$/, "batch $1");
        const axis = axisOf.has(part) ? axisOf.get(part) : axisOf.get(name);
        if (axis >= 0) names[axis].push(axisOf.has(part) ? part : name);
      }
    }
    return names.some((some) => some.length) ? names : null;
  };
  const agrees = (names, cell) => names.every((some, axis) => !some.length || some.includes(cell.names[axis]));
  const rest = [];
  for (const table of tables) {
    if (table === main) continue;
    each(table.tBodies, (body) => each(body.rows, (row) => {
      const label = row.cells[0].textContent;
      rest.push({ row, cell: byPath.get(label), names: named([label]), text: row.textContent.toLowerCase() });
    }));
  }
  // A mark of the figure has the number of its row among the results.
  const heat = document.querySelector("table.heat");
  const heads = heat ? Array.from(heat.tHead.rows[0].cells).slice(1) : [];
  const columns = heads.flatMap((head) => Array(head.colSpan).fill(head)).map((head, index) => {
    const column = heat.tHead.rows[1].cells[index];
    const marks = Array.from(heat.tBodies[0].rows, (row) => {
      const mark = row.cells[index + 1];
      return { mark, row, cell: cells[mark.dataset.row] };
    });
    return { head, column, marks };
  });

  const form = document.createElement("form");
  form.className = "filter";
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", isReport ? "Filter cells" : "Filter rows");
  const field = (name, control) => {
    const label = document.createElement("label");
    control.name = name;
    label.append(name + " ", control);
    form.append(label);
    return control;
  };
  const selects = axes.map((axis, index) => {
    const values = new Set(cells.map((cell) => cell.names[index]));
    if (values.size < 2) return null;
    const select = document.createElement("select");
    select.add(new Option("all", ""));
    values.forEach((value) => select.add(new Option(value)));
    return field(axis, select);
  });
  const search = field("search", Object.assign(document.createElement("input"), { type: "search" }));
  const all = Object.assign(document.createElement("button"), { type: "button", textContent: "all" });
  const shown = document.createElement("output");
  form.append(all, shown);
  (document.querySelector(".heats") || main.closest(".scroll") || main).before(form);

  function draw() {
    const spans = new Map();
    each(heat.tBodies[0].rows, (row) => { row.hidden = true; });
    for (const { head, column, marks } of columns) {
      const found = marks.filter(({ mark, cell }) => {
        const isFound = cell !== undefined && !cell.row.hidden;
        mark.classList.toggle("off", !isFound);
        return isFound;
      });
      found.forEach(({ row }) => { row.hidden = false; });
      column.hidden = !found.length;
      marks.forEach(({ mark }) => { mark.hidden = column.hidden; });
      spans.set(head, (spans.get(head) || 0) + !column.hidden);
    }
    spans.forEach((span, head) => { head.hidden = !span; head.colSpan = span || 1; });
    heat.parentNode.hidden = columns.every(({ column }) => column.hidden);
  }
  function apply() {
    const words = search.value.toLowerCase().split(/\s+/);
    const holds = (text) => words.every((word) => text.includes(word));
    const isChosen = (cell) => selects.every((select, axis) => !select || !select.value || select.value === cell.names[axis]);
    const found = cells.filter((cell) => {
      cell.row.hidden = !(isChosen(cell) && holds(cell.text));
      return !cell.row.hidden;
    });
    each(main.tBodies, (body) => { body.hidden = !Array.from(body.rows).some((row) => !isGroup(row) && !row.hidden); });
    const isAbout = (names) => found.some((cell) => agrees(names, cell));
    for (const other of rest) {
      if (other.cell) other.row.hidden = !(isChosen(other.cell) && holds(other.cell.text + " " + other.text));
      else if (other.names) other.row.hidden = !isAbout(other.names);
      else if (!isReport) other.row.hidden = !holds(other.text);
    }
    if (heat) draw();
    const isWhole = found.length === cells.length;
    form.classList.toggle("on", !isWhole);
    shown.value = `${isWhole ? "" : found.length + " of "}${cells.length} ${isReport ? "cells" : "rows"}`;
    all.hidden = isWhole;
  }
  const controls = () => selects.concat(search).filter(Boolean);
  function changed() {
    apply();
    const state = new URLSearchParams(controls().filter((control) => control.value).map((control) => [control.name, control.value]));
    const isFilter = location.hash.startsWith("#?");
    if (state.size || isFilter) history.replaceState(null, "", state.size ? "#?" + state : location.pathname + location.search);
  }
  function read() {
    if (!location.hash.startsWith("#?")) return;
    const state = new URLSearchParams(location.hash.slice(2));
    controls().forEach((control) => { control.value = state.get(control.name) || ""; });
    apply();
  }
  function reset() {
    controls().forEach((control) => { control.value = ""; });
    changed();
    search.focus();
  }
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") reset(); });
  all.addEventListener("click", reset);
  addEventListener("hashchange", read);
  apply();
  read();
})();
