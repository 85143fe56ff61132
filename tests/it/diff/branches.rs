//! Branches of a repository with a gate, one for each way in which a gate can end: what terminal, pages, JSON, JUnit and the
//! exit code say of each.
//!
//! Each is tried with a scripted backend; and with a C program and a script of Python, measured on a quiet and on a busy
//! machine, in `.ci/run slow`.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::Repository;
use crate::support::{Done, Project, readable};

/// A way in which a branch differs from `main`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// 20 % slower, and the report is the old one.
    Unmeasured,
    Documents,
    Comment,
    /// 5 % slower.
    Slower,
    Memory,
    /// More memory, which a line of the message accepts.
    Accepted,
    /// Some runs fail.
    Flaky,
    /// One run fails.
    OneFails,
    /// One side does not build, or load.
    Broken,
    /// The specification has another name.
    Renamed,
}
use Change::{Accepted, Broken, Comment, Documents, Flaky, Memory, OneFails, Renamed, Slower, Unmeasured};

/// Branches, what their gates may come to, words that terminal and pages have, and what JSON has. `{b}` is the branch's commit.
#[rustfmt::skip]
const BRANCHES: &[(Change, &[&str], &[&str], &str)] = &[
    (Unmeasured, &["failed"],              &["changed since it was measured", "measure again, or use --remeasure"], r#""kind":"stale""#),
    (Documents,  &["passed"],              &["same report"],                          r#""rows":[]"#),
    (Comment,    &["passed", "undecided"], &[],                                       r#""rows":[{"#),
    (Slower,     &["failed", "undecided"], &[],                                       r#""rows":[{"#),
    (Memory,     &["failed"],              &["larger"],                               r#""outcome":"falls""#),
    (Accepted,   &["passed", "undecided"], &["accepted: bigger cache wanted"],        "bigger cache wanted"),
    (Flaky,      &["failed"],              &["of {b}:", "failed", "lost the database"], "lost the database"),
    (OneFails,   &["passed", "undecided"], &["of {b}: 1 of", "lost the database"],    "lost the database"),
    (Broken,     &["failed"],              &["{b}:", "expected expression"],          "expected expression"),
    (Renamed,    &["passed"],              &["unchanged"],                            r#""kind":"unchanged""#),
];

/// Branches that are not measured again.
fn is_of_reports(change: Change) -> bool {
    matches!(change, Unmeasured | Documents)
}

/// What a gate came to: it is the same in terminal, pages, JSON, JUnit and exit code, which all say why.
fn check(repository: &Repository, change: Change, allowed: &[&str], words: &[&str], data: &str) {
    let branch = repository.git(&["rev-parse", "--short", "HEAD"]);
    let mut arguments = vec!["diff", "main...HEAD", "--gate", "--output", "out", "--format", "md,html,json,junit"];
    if !is_of_reports(change) {
        arguments.extend(["--remeasure", "--budget", "60s"]);
    }
    // The program that fails once counts its runs there.
    let scratch = tempfile::tempdir().unwrap();
    let done = Done::from(repository.0.command(&arguments).env("TMPDIR", scratch.path()).output().unwrap());
    let printed = done.stdout + &done.stderr;
    let read = |name: &str| repository.0.read(&format!("out/{name}"));
    let json: Value = serde_json::from_str(&read("diff.json")).unwrap();
    let gate = json["gate"].as_str().unwrap_or_default();
    assert!(allowed.contains(&gate), "{change:?}: {gate}\n{printed}");
    assert_eq!(done.code, if gate == "failed" { 4 } else { 0 }, "{change:?}: {gate}\n{printed}");
    assert!(json.to_string().contains(data), "{change:?}: {json}");
    let junit = read("diff.junit.xml");
    assert_eq!(junit.contains(r#"failures="0""#), gate != "failed", "{change:?}: {junit}");
    let headline = format!("gate {gate}. ");
    let pages = [("terminal", printed), ("Markdown", read("diff.md")), ("HTML", readable(&read("diff.html")))];
    let cases = (gate == "failed").then_some(("JUnit", junit + &headline));
    for (form, text) in pages.into_iter().chain(cases) {
        let text = text.replace(['`', '*', '\\'], "").split_whitespace().collect::<Vec<_>>().join(" ") + " ";
        for word in [headline.as_str()].iter().chain(words) {
            let word = word.replace("{b}", &branch);
            assert!(text.contains(&word), "{change:?}: {word} is not in {form}: {text}");
        }
    }
}

mod scripted {
    use super::{Accepted, BRANCHES, Broken, Change, Comment, Documents, Flaky, Memory, OneFails, Renamed, Slower};
    use super::{Repository, Unmeasured, check};

    const SPEC: &str = "backend: { mock: { run_sd: 0.1%, noise: 1% } }
models: [tool]
variants: [fp32, { name: new, mock: { scale: 0.5 } }]
runs: 10
measure: { stop: { mode: samples, count: 100 } }
gate: [{ metric: latency, worse_by: 3% }]
";

    /// What the scripted branch writes and says.
    fn change(repository: &Repository, change: Change) {
        let scale = |to: &str| repository.0.write("experiments/x.yaml", &SPEC.replace("scale: 0.5", to));
        let mut message = "branch";
        match change {
            Unmeasured => scale("scale: 0.6"),
            Documents => repository.0.write("README.md", "words\n"),
            Comment => repository.0.write("experiments/x.yaml", &format!("# a comment\n{SPEC}")),
            Slower | Memory => scale("scale: 0.525"),
            Accepted => {
                scale("scale: 0.525");
                message = "branch\n\nPerfrun-Accept: tool/new latency bigger cache wanted";
            }
            Flaky => scale("scale: 0.5, fail: { kind: error }"),
            OneFails => scale("scale: 0.5, fail: { kind: error, runs: [4] }"),
            Broken => scale("scale: 0.5, fail: { kind: error, at: load }"),
            Renamed => drop(repository.git(&["mv", "experiments/x.yaml", "experiments/y.yaml"])),
        }
        repository.commit(message);
    }

    #[test]
    fn branches_end_as_they_should() {
        let repository = Repository::new(SPEC);
        repository.0.write(".gitignore", "out/\n.perfrun/\n");
        repository.commit("outputs");
        for (branch, allowed, words, data) in BRANCHES {
            repository.git(&["checkout", "-q", "-B", "branch", "main"]);
            change(&repository, *branch);
            // What a script says is its own, and it slows down instead of taking memory.
            let (words, data): (&[&str], _) = match branch {
                Memory => (&["slower"], *data),
                Flaky | Broken => (&["of {b}:", "failed", "scripted failure"], "scripted failure"),
                OneFails => (&["of {b}: 1 of", "scripted failure"], "scripted failure"),
                _ => (*words, *data),
            };
            check(&repository, *branch, allowed, words, data);
        }
    }
}

mod measured {
    use super::{
        Accepted, AtomicBool, BRANCHES, Broken, Change, Comment, Documents, Flaky, Memory, OneFails, Ordering,
    };
    use super::{Project, Renamed, Repository, Slower, Unmeasured, check};

    const SPEC: &str = "cwd: ..
setup: cc -O2 -o tool src/tool.c
commands:
  - { name: tool, run: ./tool }
  - { name: script, run: python3 script.py }
gate:
  - { metric: latency, worse_by: 3% }
  - { metric: peak_rss, worse_by: 10% }
";
    const PROGRAM: &str = "#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
enum { ROUNDS = 5000000, MEBIBYTES = 4 };
int main(void) {
  uint64_t x = 88172645463325252ull, sum = 0;
  size_t bytes = (size_t)MEBIBYTES << 20;
  unsigned char *p = malloc(bytes);
  for (size_t i = 0; i < bytes; i += 4096) p[i] = 1;
  for (uint32_t i = 0; i < ROUNDS; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; sum += x; }
  printf(\"%llu %d\\n\", (unsigned long long)sum, p[bytes / 2]);
  return 0;
}
";
    const SCRIPT: &str = "import json, os, random, sys, tempfile
s = 0
for i in range(60000):
    s = (s * 31 + i) % 1000003
print(json.dumps({'s': s}))
";
    /// Lines before those of the script: one of five runs fails.
    const FAILS_AT_TIMES: &str = "if random.random() < 0.2: sys.exit('lost the database')\n";
    /// The sixth run fails.
    const FAILS_ONCE: &str = "path = os.path.join(tempfile.gettempdir(), 'count')
count = int(open(path).read()) + 1 if os.path.exists(path) else 1
open(path, 'w').write(str(count))
if count == 6: sys.exit('lost the database')
";

    /// What the branch of the program writes and says.
    fn change(repository: &Repository, change: Change) {
        let program = |from: &str, to: &str| repository.0.write("src/tool.c", &PROGRAM.replace(from, to));
        let failing = |lines: &str| {
            let (imports, rest) = SCRIPT.split_once('\n').unwrap();
            repository.0.write("script.py", &format!("{imports}\n{lines}{rest}"));
        };
        let mut message = "branch";
        match change {
            Unmeasured => program("5000000", "6000000"),
            Documents => repository.0.write("README.md", "words\n"),
            Comment => program("#include <stdio.h>", "/* a comment */\n#include <stdio.h>"),
            Slower => program("5000000", "5250000"),
            Memory => program("MEBIBYTES = 4", "MEBIBYTES = 8"),
            Accepted => {
                program("MEBIBYTES = 4", "MEBIBYTES = 8");
                message = "branch\n\nPerfrun-Accept: tool peak_rss bigger cache wanted";
            }
            Flaky => failing(FAILS_AT_TIMES),
            OneFails => failing(FAILS_ONCE),
            Broken => program("return 0;", "return 0; int x = ;"),
            Renamed => drop(repository.git(&["mv", "experiments/x.yaml", "experiments/y.yaml"])),
        }
        repository.commit(message);
    }

    fn try_branches(repository: &Repository) {
        for (branch, allowed, words, data) in BRANCHES {
            repository.git(&["checkout", "-q", "-B", "branch", "main"]);
            change(repository, *branch);
            check(repository, *branch, allowed, words, data);
        }
    }

    fn program() -> Repository {
        let repository = Repository(Project::new());
        for (path, text) in [
            ("src/tool.c", PROGRAM),
            ("script.py", SCRIPT),
            ("README.md", "a tool\n"),
            (".gitignore", "/tool\nout/\n.perfrun/\n"),
            ("experiments/x.yaml", SPEC),
        ] {
            repository.0.write(path, text);
        }
        repository.git(&["init", "-q", "-b", "main"]);
        repository.measure();
        repository.commit("first");
        repository
    }

    fn beside_a_busy_core(work: impl FnOnce()) {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            is_over.store(true, Ordering::Relaxed);
            done.unwrap_or_else(|why| std::panic::resume_unwind(why));
        });
    }

    #[test]
    #[ignore = "measures a program for minutes: `.ci/run slow` runs it"]
    fn branches_of_a_program_end_as_they_should() {
        let repository = program();
        try_branches(&repository);
        beside_a_busy_core(|| try_branches(&repository));
    }

    #[test]
    #[ignore = "measures a program for minutes: `.ci/run slow` runs it"]
    fn a_comment_never_fails_a_gate_beside_a_busy_core() {
        let repository = program();
        repository.git(&["checkout", "-q", "-B", "branch"]);
        change(&repository, Comment);
        beside_a_busy_core(|| (0..20).for_each(|_| check(&repository, Comment, &["passed", "undecided"], &[], "")));
    }
}
