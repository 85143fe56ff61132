// Sorts a table by a column when its heading is pressed; without this script the tables stand in plan order.
document.querySelectorAll("table.sortable").forEach(function (table) {
  var headings = table.tHead.rows[0].cells;
  var body = table.tBodies[0];
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
      var rows = Array.prototype.map.call(body.rows, function (row) { return { row: row, key: key(row, column) }; });
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
