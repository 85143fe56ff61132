// Renders the pages of records in Chromium and fails where one does not look or work as a page should:
//
//     node tests/pages/pages.mjs PERFRUN [FOLDER_FOR_PICTURES [NAME...]]
//
// Texts overlap or leave the page, the answer or its figure is below the first screen, axe-core objects, something asks
// the network or the console complains, a summary has no focus, a rule or a script is used by no page, or the page of the
// quickstart has too many words. With names only those records, and nothing about rules and scripts.
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";
import * as look from "./look.mjs";

const [perfrun, pictures, ...only] = process.argv.slice(2);
const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const reports = path.join(here, "../../reports");
const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SIZES = [[1280, 800], [768, 1024], [390, 844]];
const MOST_WORDS = 1600;
// Colours of figures are for fill and for stroke (a test in plots/canvas.rs), and a heading is no cell that needs a label. No
// record here has several experiments in a diff, differences far below what they differ from, every tint, or long groups;
// when rules are counted, everything is open and sorted downwards.
const ALLOWED = [
  'figure svg [stroke="#FFFFFF"]',
  'figure svg [fill="#E2E2E2"]',
  ".main td:nth-child(1)",
  "article + article",
  ".cut",
  ...[1, 2, 3, 4].flatMap(depth => [`.f${depth}`, `.s${depth}`]),
  ".forest.named .c1",
  ".subject details:not([open])",
  ".filter:not(.on)",
  'th[aria-sort="ascending"] button::after',
];

const work = fs.mkdtempSync(path.join(os.tmpdir(), "perfrun-pages-"));
const problems = [];
const pages = [];

/* Records */

const spec = name => fs.readFileSync(path.join(here, "specs", `${name}.yaml`), "utf8");
const NOISE = text => text.replace("run_sd: 0.4%", "run_sd: 6%, disturbed: 30%, disturbance: 60%");
const BROKEN = text => {
  const failing = text.replace(/^variants:\n(  - .*\n)/m, "$&  - { name: broken, mock: { fail: { kind: crash } } }\n");
  if (failing === text) throw new Error(`no variants: ${text}`);
  return failing;
};
const FALLEN = text => text.replace("differ: 1%", "differ: 200%") + "fidelity: { int8: { cosine: -1, close: 0%, top1: 0% } }\n";

/** perfrun in a folder of its own; the commands of these records may end with 3 or 4. */
function run(folder, ...args) {
  const env = { ...process.env, NO_COLOR: "1", PERFRUN_LOCK: path.join(work, "lock"), PERFRUN_WAIT: "0s" };
  const done = spawnSync(path.resolve(perfrun), [...args, "-q"], { cwd: folder, env, encoding: "utf8" });
  if (![0, 3, 4].includes(done.status)) throw new Error(`perfrun ${args.join(" ")}: ${done.error ?? done.stderr}`);
}

function folder(name, text) {
  const root = path.join(work, name);
  fs.mkdirSync(path.join(root, ".perfrun"), { recursive: true });
  fs.writeFileSync(path.join(root, `${name}.yaml`), text);
  const array = (file, type, shape, values) => {
    const head = `{'descr': '${type}', 'fortran_order': False, 'shape': (${shape},)}`.padEnd(117) + "\n";
    const bytes = [Buffer.from([0x93]), Buffer.from("NUMPY\x01\x00\x76\x00"), Buffer.from(head), Buffer.from(values.buffer)];
    fs.writeFileSync(path.join(root, file), Buffer.concat(bytes));
  };
  // Of three classes, one label in ten is wrong.
  array("scores.npy", "<f4", "600,3", Float32Array.from({ length: 1800 }, (_, i) => (i % 3 === ((i / 3) | 0) % 3 ? 1 : 0.2)));
  array("labels.npy", "<i8", "600", BigInt64Array.from({ length: 600 }, (_, i) => BigInt((i % 10 === 9 ? i + 1 : i) % 3)));
  return root;
}

const wanted = name => !only.length || only.includes(name);
const page = (name, file, kind = "report") => pages.push({ name, file, kind });

function measured(name, text, ...args) {
  if (!wanted(name)) return;
  const root = folder(name, text);
  run(root, `${name}.yaml`, "--output", "out", ...args);
  page(name, path.join(root, "out/report.html"));
}

/** As if the control of these results had failed, or was biased: what a script cannot play. */
function unconfirmed(name, from, outcome = "failed") {
  if (!wanted(name)) return;
  const results = JSON.parse(fs.readFileSync(path.join(work, from, "out/results.json")));
  for (const control of results.controls) Object.assign(control, { outcome, verdict: "worse", ratio: 1.06, low: 1.05, high: 1.07 });
  if (outcome === "failed") {
    for (const row of results.comparisons) row.reason = "control_failed";
    results.claims = results.claims.filter(claim => claim.place.answer === undefined);
    results.choice = { ...results.choice, failed_control: { cell: results.controls[0].cell, difference: 0.06 }, contests: [] };
  }
  const root = folder(name, "");
  fs.writeFileSync(path.join(root, "results.json"), JSON.stringify(results));
  run(root, "report", "results.json", "--output", "out");
  page(name, path.join(root, "out/report.html"));
}

function merged(name, text) {
  if (!wanted(name)) return;
  const root = folder(name, text);
  const records = path.join(root, ".perfrun/records", name);
  const machines = ["epyc", "xeon", "arm"].map(machine => {
    const before = fs.existsSync(records) ? fs.readdirSync(records) : [];
    run(root, `${name}.yaml`, "--output", machine);
    return `${machine}=${fs.readdirSync(records).find(record => !before.includes(record))}`;
  });
  run(root, "merge", ...machines, "--output", "out");
  page(name, path.join(root, "out/report.html"));
}

/** What a commit changed, and the site of both. */
function changed(name, before, after) {
  if (!wanted(name)) return;
  const root = folder(name, before);
  const git = (...args) => execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", ...args], { cwd: root });
  git("init", "-q");
  for (const text of [before, after]) {
    fs.writeFileSync(path.join(root, `${name}.yaml`), text);
    run(root, `${name}.yaml`, "--replace");
    git("add", "-A");
    git("commit", "-qm", "a commit");
  }
  run(root, "diff", "HEAD~1", "HEAD", "--gate", "--output", "diff", "--format", "html");
  page(name, path.join(root, "diff/diff.html"), "diff");
  run(root, "site", "--output", "site");
  const site = fs.readdirSync(path.join(root, "site"), { recursive: true }).filter(file => file.endsWith(".html"));
  site.forEach(file => page(`${name}-site-${file.replace(/\W/g, "-")}`, path.join(root, "site", file), "site"));
}

function make() {
  for (const name of ["quickstart", "heat", "load", "profile"]) {
    measured(name, spec(name));
    measured(`${name}-bad`, BROKEN(NOISE(spec(name))));
    unconfirmed(`${name}-failed`, name);
  }
  merged("fleet", spec("fleet"));
  merged("fleet-bad", BROKEN(NOISE(spec("fleet"))));
  unconfirmed("biased", "quickstart", "biased");
  unconfirmed("fleet-failed", "fleet");
  const slower = spec("quickstart").replace("scale: 0.55", "scale: 0.7");
  const gate = "gate: [{ metric: latency, worse_by: 5% }]\n";
  changed("diff", spec("quickstart") + gate, slower + gate);
  changed("diff-bad", NOISE(spec("quickstart")) + gate, BROKEN(NOISE(slower)) + gate);
  measured("fallen", FALLEN(spec("quickstart")));
  measured("differ", spec("quickstart").replace("differ: 1%", "differ: 60%"));
  measured("quick", spec("quickstart"), "--quick");
  measured("screens", fs.readFileSync(path.join(here, "../fixtures/specs/screens.yaml"), "utf8"));
  for (const name of ["one", "alone", "devices", "runtimes", "names", "search", "clients"]) measured(name, spec(name));
  for (const name of ["devices", "runtimes", "names", "clients"]) measured(`${name}-bad`, BROKEN(NOISE(spec(name))));
  if (wanted("committed")) {
    const root = folder("committed", "");
    run(root, "report", path.join(reports, "quickstart/results.json"), "--output", "out");
    page("committed", path.join(root, "out/report.html"));
  }
}

/* Pages */

const matched = new Set();
const missed = new Set();
const scripts = new Map();

async function checked(browser, { name, file, kind }) {
  const tab = await browser.newPage();
  const url = pathToFileURL(file).href;
  const report = (where, what, details) => problems.push({ name, where, what, details });
  tab.on("request", request => request.url().split("#")[0] === url || report("", "network", request.url()));
  tab.on("console", said => said.type() === "log" || report("", "console", said.text()));
  tab.on("pageerror", error => report("", "console", error.message));
  await tab.coverage.startJSCoverage({ useBlockCoverage: true });
  for (const [width, height] of SIZES) {
    const found = async (state, problems) => problems.forEach(([what, details]) => report(`${width}${state}`, what, details));
    const picture = async state => {
      if (pictures) await tab.screenshot({ path: path.join(pictures, `${name}-${width}${state}.png`), fullPage: true });
    };
    await tab.setViewport({ width, height });
    await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
    await tab.goto(url);
    await picture("");
    await found("", await tab.evaluate(look.fold, kind, width, height));
    await found("", await tab.evaluate(look.places, width));
    await tab.evaluate(look.open);
    await picture("-open");
    await found("-open", await tab.evaluate(look.places, width));
    if (width === SIZES[0][0]) {
      await found("", await focused(tab));
      if (name === "committed") {
        const words = await tab.evaluate(look.words);
        if (words > MOST_WORDS) report("", "words", `${words}, more than ${MOST_WORDS}`);
        console.log(`${words} words on the page of the quickstart`);
      }
    }
    if (width === 768) continue;
    await tab.evaluate(axe);
    for (const scheme of ["light", "dark"].slice(0, width < 500 ? 1 : 2)) {
      await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await found(`-${scheme}`, await tab.evaluate(look.accessible));
      if (scheme === "dark") await picture("-dark");
    }
  }
  for (const [what, details] of await tab.evaluate(look.used)) report("used", what, details);
  for (const [selector, isMatched] of await tab.evaluate(look.unmatched)) (isMatched ? matched : missed).add(selector);
  for (const { text, ranges } of await tab.coverage.stopJSCoverage()) {
    const unused = scripts.get(text) ?? new Set(Array.from(text, (letter, at) => (/\S/.test(letter) ? at : -1)));
    ranges.forEach(({ start, end }) => { for (let at = start; at < end; at += 1) unused.delete(at); });
    scripts.set(text, unused);
  }
  await tab.close();
}

/** Tab reaches every summary, and Enter closes and opens it. */
async function focused(tab) {
  const problems = [];
  for (let index = 0; await tab.evaluate(look.approach, index); index += 1) {
    await tab.keyboard.press("Tab");
    await tab.keyboard.press("Enter");
    problems.push(...(await tab.evaluate(look.arrived, index)));
  }
  return problems;
}

/** What no page matched or ran. */
function unused() {
  for (const selector of missed) {
    if (!matched.has(selector) && !ALLOWED.includes(selector)) problems.push({ name: "all", where: "", what: "unused rule", details: selector });
  }
  for (const [text, left] of scripts) {
    // Whole lines: a branch within one may be for what no record has.
    let at = 0;
    const lines = text.split("\n").map(line => ({ line, from: at, to: (at += line.length + 1) - 1 }));
    const isUnused = ({ from, to }) => !/[\w]/.test([...text.slice(from, to)].filter((_, index) => !left.has(from + index)).join(""));
    const code = lines.filter(isUnused).map(({ line }) => line.trim()).filter(line => !line.startsWith("//") && /\w/.test(line));
    code.forEach(line => problems.push({ name: "all", where: "", what: "unused script", details: line }));
  }
}

try {
  if (!perfrun) throw new Error("usage: node tests/pages/pages.mjs PERFRUN [FOLDER_FOR_PICTURES [NAME...]]");
  if (pictures) fs.mkdirSync(pictures, { recursive: true });
  make();
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const browser = await puppeteer.launch({ executablePath, protocolTimeout: 600_000, args: ["--no-sandbox", "--hide-scrollbars", "--disable-gpu"] });
  for (const one of pages) {
    const before = problems.length;
    await checked(browser, one);
    console.log(`${one.name}: ${problems.length - before} problems`);
  }
  await browser.close();
  if (!only.length) unused();
} finally {
  fs.rmSync(work, { recursive: true, force: true });
}
const grouped = new Map();
for (const { name, where, what, details } of problems) {
  const key = `${what}: ${details}`;
  grouped.set(key, (grouped.get(key) ?? new Set()).add(`${name} ${where}`.trim()));
}
for (const [key, places] of [...grouped].sort()) console.log(`${key}\n    ${[...places].slice(0, 8).join(", ")}${places.size > 8 ? ` and ${places.size - 8} more` : ""}`);
console.log(`${pages.length} pages, ${problems.length} problems`);
process.exitCode = problems.length ? 1 : 0;
