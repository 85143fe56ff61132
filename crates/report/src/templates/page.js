// Without this script tables stand in plan order, whole, and links into folded parts lead to the part.
const order = new Intl.Collator("en", { numeric: true });
const each = (list, act) => Array.prototype.forEach.call(list, act);

// Sorts a table by a column when its heading is pressed.
each(document.querySelectorAll("table.sortable"), (table) => {
  const headings = table.tHead.rows[0].cells;
  // The number that a text begins with, bytes in their unit; what has none has no value.
  const number = (text) => {
    const found = /^[<>= ]*([-+\u2212]?[\d.]+(?:e-?\d+)?)\s*(?:([KMGT])i?B)?/.exec(text);
    return found ? Number(found[1].replace("\u2212", "-")) * 1024 ** (" KMGT".indexOf(found[2] || " ")) : "";
  };
  const key = (cell, numeric) => {
    const text = "sort" in cell.dataset ? cell.dataset.sort : cell.textContent.trim();
    return numeric && text !== "" ? number(text) : text;
  };
  each(headings, (heading, column) => {
    const numeric = heading.classList.contains("number");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const direction = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      each(headings, (other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      each(table.tBodies, (body) => {
        const rows = Array.from(body.rows).filter((row) => !row.classList.contains("group"));
        const keyed = rows.map((row) => ({ row, key: key(row.cells[column], numeric) }));
        keyed.sort((a, b) => {
          // What has no value stands last in either direction.
          if (a.key === "" || b.key === "") return (a.key === "") - (b.key === "");
          return direction * (numeric ? a.key - b.key : order.compare(a.key, b.key));
        });
        body.append(...keyed.map((entry) => entry.row));
      });
    });
  });
});

// A link into a folded part opens it; on paper all parts are open.
(() => {
  function reveal() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    if (target) target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  addEventListener("beforeprint", () => each(document.querySelectorAll("details.part"), (part) => { part.open = true; }));
  reveal();
})();
