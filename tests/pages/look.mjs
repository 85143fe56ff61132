// What runs inside a page: each function stands alone, and gives back pairs of what is wrong and where.

/** Texts that overlap, are cut, or leave the page. */
export function places(width) {
  const FREE = ".scroll, .heats, .figure, pre";
  const NEAR = 2;
  const problems = [];
  const boxes = [];
  const name = text => `"${text.replace(/\s+/g, " ").trim().slice(0, 50)}"`;
  const named = element => [element.tagName.toLowerCase(), ...element.classList].join(".");
  const known = new Map();
  /** How an element hides what is in it. */
  function hides(element) {
    if (!known.has(element)) {
      const style = getComputedStyle(element);
      const isOpen = style.overflowX === "visible" && style.overflowY === "visible";
      known.set(element, {
        isHidden: style.clipPath !== "none" || style.visibility === "hidden",
        edge: isOpen || style.display === "inline" ? null : element.getBoundingClientRect(),
        scrolls: ["auto", "scroll"].includes(style.overflowX),
      });
    }
    return known.get(element);
  }
  /** What of a box its ancestors leave to be seen; `null` where nothing. */
  function seen(element, box, text) {
    let { left, top, right, bottom } = box;
    for (let outer = element; outer && outer !== document.body; outer = outer.parentElement) {
      const { isHidden, edge, scrolls } = hides(outer);
      if (isHidden) return null;
      if (!edge) continue;
      if (text && !scrolls && (left < edge.left - NEAR || right > edge.right + NEAR || top < edge.top - NEAR || bottom > edge.bottom + NEAR))
        problems.push(["cut", `${name(text)} by ${named(outer)}`]);
      [left, right] = [Math.max(left, edge.left), Math.min(right, edge.right)];
      [top, bottom] = [Math.max(top, edge.top), Math.min(bottom, edge.bottom)];
      if (left >= right || top >= bottom) return null;
    }
    return { left, top, right, bottom };
  }
  function add(node, element, rects) {
    for (const rect of rects) {
      const box = rect.width && rect.height && seen(element, rect, node.textContent);
      if (box) boxes.push({ ...box, node, element, text: node.textContent });
    }
    return boxes.at(-1)?.node === node;
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const element = node.parentElement;
    if (!node.textContent.trim() || element.closest("script, style, title, text") || !element.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const lines = range.getClientRects();
    if (!add(node, element, lines) || lines.length < 2 || element.closest("pre, code")) continue;
    // Words without a place to break them, but for hashes.
    for (const word of node.textContent.matchAll(/(?<![\w.@])[\w.@]{2,14}(?![\w.@])/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(line => Math.round(line.top))).size > 1) problems.push(["broken word", `${word[0]} in ${named(element)} of ${named(element.closest("table, dl, ul, p") ?? element.parentElement)}`]);
    }
  }
  for (const text of document.querySelectorAll("svg text")) if (text.checkVisibility()) add(text, text, [text.getBoundingClientRect()]);
  const block = element => (getComputedStyle(element).display === "inline" && element.parentElement ? block(element.parentElement) : element);
  boxes.sort((a, b) => a.top - b.top);
  boxes.forEach((one, index) => {
    for (let next = index + 1; next < boxes.length && boxes[next].top < one.bottom - NEAR; next += 1) {
      const other = boxes[next];
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (one.node === other.node) continue;
      if (high > 5 && wide > -3 && wide <= 0 && block(one.element) !== block(other.element)) problems.push(["touch", `${name(one.text)} and ${name(other.text)}`]);
      if (wide > NEAR && high > NEAR)
        problems.push(["overlap", `${name(one.text)} and ${name(other.text)} by ${Math.round(wide)}x${Math.round(high)} px`]);
    }
  });
  const isBeyond = element => element.getBoundingClientRect().right > width + 1;
  for (const box of boxes) {
    if ((box.right > width + 1 || box.left < -1) && !box.element.closest(FREE) && !isBeyond(box.element)) problems.push(["beyond the edge", `${name(box.text)} ends at ${Math.round(box.right)}`]);
  }
  // The outermost of what is beyond.
  for (const element of document.querySelectorAll("body *:not(svg *)")) {
    if (!isBeyond(element) || isBeyond(element.parentElement) || !element.checkVisibility() || element.closest(FREE)) continue;
    const { right, top } = element.getBoundingClientRect();
    if (seen(element, { left: 0, right, top, bottom: top + 1 }, "")) problems.push(["beyond the edge", `${named(element)} ends at ${Math.round(right)}`]);
  }
  const wide = document.scrollingElement.scrollWidth;
  if (wide > width) problems.push(["beyond the edge", `the page is ${wide} wide`]);
  return problems;
}

/** Opens every part, and waits until it is laid out. */
export async function open() {
  for (const details of document.querySelectorAll("details")) details.open = true;
  for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
}

/** Where the answer and its figure are in the first screen. */
export function fold(kind, width, height) {
  if (kind === "site" || width === 768) return [];
  const problems = [];
  const shown = selector => [...document.querySelectorAll(selector)].find(element => element.checkVisibility());
  const answer = shown("h2.ans, .note-large, .answer p, header .lede");
  if (!answer) return [["no answer", "neither h2.ans nor a note nor a headline"]];
  const box = answer.getBoundingClientRect();
  const [edge, what] = width < 500 ? [box.bottom, "ends"] : [box.top, "begins"];
  if (edge > height) problems.push(["below the first screen", `the answer ${what} at ${Math.round(edge)}`]);
  const figure = shown(".forest, .heat, figure");
  if (width < 500 || !figure) return problems;
  const { top, bottom } = figure.getBoundingClientRect();
  if (top > height) problems.push(["below the first screen", `the figure begins at ${Math.round(top)}`]);
  const rows = figure.querySelectorAll("tbody tr").length;
  if (figure.matches(".forest") && rows <= 8 && bottom > height) problems.push(["below the first screen", `the figure of ${rows} rows ends at ${Math.round(bottom)}`]);
  return problems;
}

/** The words of a page but for the table of every metric, the specification and queries. */
export function words() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let found = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (element.closest("script, style, title, pre, #metrics + .filter + .scroll, #metrics + .scroll") || !element.checkVisibility()) continue;
    found += walker.currentNode.textContent.split(/\s+/).filter(word => /[\p{L}\p{N}]/u.test(word)).length;
  }
  return found;
}

/** Each selector and variable of the style, and whether this page has what it is for. */
export function unmatched() {
  const found = new Map();
  const text = [...document.querySelectorAll("style")].map(style => style.textContent).join("");
  function rules(list) {
    for (const rule of list) {
      if (rule.cssRules?.length) rules(rule.cssRules);
      if (!rule.selectorText || rule instanceof CSSPageRule) continue;
      for (const selector of rule.selectorText.split(/,(?![^(]*\))/).map(it => it.trim())) {
        const plain = selector.replace(/::[\w-]+|:(hover|target|focus-visible)/g, "").trim() || "*";
        found.set(selector, document.querySelector(plain.replace(/([>+~]) *$/, "$1 *")) !== null);
      }
      for (const property of rule.style) if (property.startsWith("--")) found.set(property, text.includes(`var(${property})`));
    }
  }
  for (const sheet of document.styleSheets) rules(sheet.cssRules);
  return [...found];
}

/** What axe-core objects to. */
export async function accessible() {
  const { violations } = await window.axe.run({ resultTypes: ["violations"] });
  return violations.map(({ id, nodes }) => {
    const why = nodes[0].any.concat(nodes[0].all, nodes[0].none)[0]?.message ?? "";
    return ["axe", `${id} x${nodes.length}: ${nodes[0].html.slice(0, 160)} :: ${why.slice(0, 160)}`];
  });
}

/** Puts the focus just before a summary; `false` where there are no more. */
export function approach(index) {
  const summary = document.querySelectorAll("summary")[index];
  if (!summary) return false;
  const before = document.createElement("span");
  before.tabIndex = -1;
  summary.parentElement.before(before);
  before.id = "before";
  before.focus();
  return true;
}

/** Whether the focus is on that summary, can be seen, and Enter closed it. */
export function arrived(index) {
  const summary = document.querySelectorAll("summary")[index];
  const { outlineStyle, outlineWidth } = getComputedStyle(summary);
  const why = [
    [document.activeElement !== summary, "no focus"],
    [outlineStyle === "none" || outlineWidth === "0px", "focus cannot be seen"],
    [summary.parentElement.open, "Enter does not close it"],
  ];
  summary.parentElement.open = true;
  document.getElementById("before").remove();
  return why.filter(([isWrong]) => isWrong).map(([, what]) => [what, summary.textContent.slice(0, 80)]);
}

/** Uses what there is: sorts tables both ways, filters rows, follows links, prepares to print. What the filter did wrong. */
export async function used() {
  for (const button of document.querySelectorAll("th:first-child button, th:last-child button")) for (const _ of [1, 2]) button.click();
  const turn = () => new Promise(done => setTimeout(done));
  const problems = [];
  const visible = selector => [...document.querySelectorAll(selector)].filter(element => element.checkVisibility({ visibilityProperty: true })).length;
  for (const form of document.querySelectorAll("form.filter")) {
    const { search } = form.elements;
    const input = () => form.dispatchEvent(new Event("input"));
    const check = (when, isRight) => {
      const [shown] = form.querySelector("output").value.split(" ");
      const rows = visible("table.main tbody tr:not(.group)");
      if (document.querySelector("table.main") && String(rows) !== shown) problems.push(["filter", `${when}: ${rows} rows, said are ${shown}`]);
      if (!isRight(Number(shown), visible(".heat td"))) problems.push(["filter", `${when}: ${shown} cells, ${visible(".heat td")} marks`]);
    };
    const marks = visible(".heat td");
    const [all] = form.querySelector("output").value.split(" ").map(Number);
    check("unused", (cells, seen) => cells > 0 && seen === marks);
    for (const select of form.querySelectorAll("select")) select.selectedIndex = select.options.length - 1;
    input();
    if (form.querySelector("select")) check("one of each", (cells, seen) => cells > 0 && cells < all && (marks === 0 || (seen > 0 && seen <= cells)));
    // As from a link.
    location.hash += "&search=int8";
    await turn();
    search.value = "no such cell";
    input();
    check("nothing", (cells, seen) => cells === 0 && seen === 0);
    form.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
    check("all again", (cells, seen) => cells === all && seen === marks);
    search.value = "int8";
    input();
    form.dispatchEvent(new Event("submit", { cancelable: true }));
  }
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    location.hash = link.hash;
    await turn();
    break;
  }
  dispatchEvent(new Event("beforeprint"));
  return problems;
}
