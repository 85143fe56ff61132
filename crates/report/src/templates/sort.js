// Sorts a table by a column when its heading is pressed; without this script the tables stand in plan order.
document.querySelectorAll("table.sortable").forEach(function (table) {
  var headings = table.tHead.rows[0].cells;
  function key(row, column) {
    var cell = row.cells[column];
    return cell.hasAttribute("data-sort") ? cell.getAttribute("data-sort") : cell.textContent.trim();
  }
  function compare(a, b, numeric) {
    if (a === "" || b === "") return null;
    return numeric ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true });
  }
  Array.prototype.forEach.call(headings, function (heading, column) {
    var numeric = heading.classList.contains("number");
    var button = document.createElement("button");
    button.type = "button";
    while (heading.firstChild) button.appendChild(heading.firstChild);
    heading.appendChild(button);
    button.addEventListener("click", function () {
      var direction = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      Array.prototype.forEach.call(headings, function (other) { other.removeAttribute("aria-sort"); });
      heading.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      Array.prototype.forEach.call(table.tBodies, function (body) {
      var members = Array.prototype.filter.call(body.rows, function (row) { return !row.classList.contains("group"); });
      var rows = members.map(function (row) { return { row: row, key: key(row, column) }; });
      rows.sort(function (a, b) {
        var order = compare(a.key, b.key, numeric);
        // What has no value stands last in either direction.
        if (order === null) return (a.key === "") - (b.key === "");
        return direction * order;
      });
      rows.forEach(function (entry) { body.appendChild(entry.row); });
      });
    });
  });
});

// A table of many rows gets a field: those rows stay that hold every word in it.
document.querySelectorAll("table.sortable").forEach(function (table) {
  var rows = table.tBodies[0].rows;
  if (rows.length < 8) return;
  var field = document.createElement("input");
  field.type = "search";
  field.className = "filter";
  field.placeholder = "filter rows";
  field.setAttribute("aria-label", "Filter rows");
  table.parentNode.parentNode.insertBefore(field, table.parentNode);
  field.addEventListener("input", function () {
    var words = field.value.toLowerCase().split(/\s+/);
    Array.prototype.forEach.call(rows, function (row) {
      var text = row.textContent.toLowerCase();
      row.hidden = !words.every(function (word) { return text.indexOf(word) >= 0; });
    });
  });
});

// A link into a folded part opens it; on paper all parts are open.
(function () {
  function reveal() {
    var target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (var part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    if (target) target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  addEventListener("beforeprint", function () { document.querySelectorAll("details.part").forEach(function (part) { part.open = true; }); });
  reveal();
})();
