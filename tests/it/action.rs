//! The action at the root, the hook and the schema for others: what passes by perfrun without knowing it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::need::need;
use crate::support::{Done, Workplace};

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

fn git(place: &Workplace, arguments: &[&str]) {
    let own = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let done = Command::new("git").args(own).args(arguments).current_dir(place.root()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A repository whose second commit is slower, and the commands that the steps use.
fn repository() -> Workplace {
    let place = Workplace::new();
    git(&place, &["init", "-q", "-b", "main"]);
    for scale in ["1.0", "1.3"] {
        place.write("experiments/x.yaml", &SPEC.replace("scale: 1.0", &format!("scale: {scale}")));
        git(&place, &["add", "experiments"]);
        git(&place, &["commit", "-q", "-m", scale]);
    }
    place.write("bin/gh", GH);
    place.write("bin/pipx", "#!/bin/bash\necho \"$@\" >>\"$FAKE/pipx\"\n");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_perfrun"), place.path("bin/perfrun")).unwrap();
    let done =
        Command::new("chmod").args(["+x"]).args(["gh", "pipx"].map(|name| place.path("bin").join(name))).status();
    assert!(done.unwrap().success());
    place
}

fn run(place: &Workplace, step_name: &str, environment: &[(&str, &str)]) -> Done {
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    // As GitHub does: `shell: bash`.
    command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &step(step_name)]).current_dir(place.root());
    command.env("PATH", path).env("FAKE", place.root()).env("PERFRUN_WAIT", "0s").env("NO_COLOR", "1");
    command.env("GITHUB_OUTPUT", place.path("outputs")).env("GITHUB_STEP_SUMMARY", place.path("summary"));
    Done::from(command.envs(environment.iter().copied()).output().unwrap())
}

#[test]
fn the_action_measures_comments_and_fails_where_the_gate_does() {
    let place = repository();
    run(&place, "install", &[("PERFRUN", "a wheel.whl")]).expect_code(0);
    assert_eq!(place.read("pipx"), "install a wheel.whl\n");
    let sides =
        [("BASE", "HEAD~1"), ("BUDGET", "1m"), ("ARGUMENTS", "--experiment x"), ("OUTPUT", "report"), ("NUMBER", "7")];
    run(&place, "measure both sides", &sides).expect_code(0);
    assert_eq!(place.read("outputs"), "code=4\n");
    assert_eq!(place.read("report/number"), "7\n");
    assert!(place.read("summary").contains("slower"), "{}", place.read("summary"));
    run(&place, "gate", &[("CODE", "4")]).expect_code(4);
    run(&place, "gate", &[("CODE", "0")]).expect_code(0);
    run(&place, "gate", &[("CODE", "")]).expect_code(2);
    let comment = [("REPO", "o/r"), ("NUMBER", "7"), ("OUTPUT", "report")];
    run(&place, "comment", &comment).expect_code(0);
    assert!(place.read("gh").contains("--method POST repos/o/r/issues/7/comments -F body=@report/diff.md"));
    // The comment with the same first line is kept up to date.
    let first = place.read("report/diff.md").lines().next().unwrap().to_owned();
    let known = format!("12\\tanother comment\\n34\\t{first}\\n");
    run(&place, "comment", &[&comment[..], &[("KNOWN", &known)]].concat()).expect_code(0);
    assert!(place.read("gh").contains("--method PATCH repos/o/r/issues/comments/34 "), "{}", place.read("gh"));
    // Nothing was measured, so there is nothing to say.
    run(&place, "comment", &[("REPO", "o/r"), ("NUMBER", "7"), ("OUTPUT", "nowhere")]).expect_code(0);
}

#[test]
fn the_action_reads_nothing_of_a_pull_request_in_its_shell() {
    for step in action()["runs"]["steps"].as_array().unwrap() {
        let text = step["run"].as_str().unwrap_or_default();
        assert!(!text.contains("${{"), "an expression in a script is code that a pull request writes: {text}");
    }
}

/// actionlint reads workflows, so the steps are put into one; and those of the guides.
#[test]
fn the_action_and_the_workflows_of_guides_pass_actionlint() {
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
        "on:\n  workflow_dispatch:\n    inputs:\n{}jobs:\n  it:\n    runs-on: ubuntu-latest\n    steps:\n{steps}",
        inputs.collect::<String>()
    );
    assert_eq!(crate::submit::lint(module, &workflow), "", "{workflow}");
    let mut found = 0;
    for guide in ["ci.md", "clusters.md"] {
        let text =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides").join(guide)).unwrap();
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
    let place = Workplace::new();
    place.write("experiments/a.yaml", SPEC);
    place.write("experiments/b.yml", &SPEC.replace("models", "modles"));
    place.run(&[&words[..], &["experiments/a.yaml"]].concat()).expect_code(0);
    let wrong = place.run(&[&words[..], &["experiments/a.yaml", "experiments/b.yml"]].concat()).expect_code(2);
    assert!(wrong.stderr.contains("modles"), "{}", wrong.stderr);
}
