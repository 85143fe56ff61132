//! What is printed for engines that perfrun does not talk to: an Indexed Job of Kubernetes, a workflow of GitHub Actions.
//!
//! Sources: Kubernetes' API batch/v1 (Indexed completion, `backoffLimitPerIndex`), GitHub's workflow syntax.

use serde_json::{Value, json};

use super::job::Job;
use crate::ui::cli::SubmitArgs;
use crate::ui::error::Error;
use reading::yaml;

/// Where the project's volume is mounted.
const PLACE: &str = "/work";

/// Minutes that a job of GitHub gets beyond twice its planned time, for checkout and installation.
const EXTRA_MINUTES: u64 = 20;

/// A Job for the shards, and a suspended one that merges.
///
/// # Errors
///
/// What cannot be YAML.
pub(super) fn kubernetes(job: &Job, arguments: &SubmitArgs) -> Result<String, Error> {
    let name = name_of_object(&job.experiment);
    let of = job.planned.len();
    let run = run_words(job).join(" ");
    // Failed cells and missed goals are in the record: measuring them again would not help.
    let shell = format!(
        "perfrun {run} --once --shard \"$((JOB_COMPLETION_INDEX + 1))/{of}\" || case $? in 3|4) ;; *) exit $? ;; esac"
    );
    let merging = format!("exec perfrun merge .perfrun/records/{}", job.experiment);
    let parallel = arguments.array_limit.map_or(of, |limit| (limit as usize).min(of));
    let mut shards = object(&name, &pod(&shell, arguments));
    let spec = &mut shards["spec"];
    spec["completionMode"] = "Indexed".into();
    spec["completions"] = of.into();
    spec["parallelism"] = parallel.into();
    spec["backoffLimitPerIndex"] = 3.into();
    spec["maxFailedIndexes"] = of.into();
    // A node that is taken away is no failure; a wrong specification stays wrong.
    spec["podFailurePolicy"] = json!({ "rules": [
        { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
        { "action": "FailIndex", "onExitCodes": { "operator": "In", "values": [2] } },
    ] });
    let mut merge = object(&format!("{name}-merge"), &pod(&merging, arguments));
    merge["spec"]["suspend"] = true.into();
    merge["spec"]["backoffLimit"] = 0.into();
    let document = |value: &Value| serde_saphyr::to_string(value).map_err(|error| Error::Internal(error.to_string()));
    Ok(format!(
        "# {of} shards of {}, each on a node of its own, and a job that merges them once it is resumed:\n\
         #   kubectl apply -f FILE\n\
         #   kubectl get job/{name} --watch       # until it is Complete or Failed\n\
         #   kubectl patch job/{name}-merge --type merge -p '{{\"spec\":{{\"suspend\":false}}}}'\n\
         # The volume `{}` holds the project at its top, with {}; records and the report are written there.\n{}---\n{}",
        job.experiment,
        arguments.volume,
        job.work.spec,
        document(&shards)?,
        document(&merge)?,
    ))
}

/// The words behind `perfrun`.
fn run_words(job: &Job) -> Vec<String> {
    let words = ["run".to_owned(), reading::shell::word(&job.work.spec)].into_iter();
    words.chain(job.work.arguments.iter().cloned()).collect()
}

/// Lower case, digits and `-`, as names of objects have to be.
fn name_of_object(experiment: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String = format!("perfrun-{experiment}").chars().take(50).map(plain).collect();
    name.trim_end_matches('-').to_owned()
}

fn object(name: &str, pod: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": name, "labels": { "app": "perfrun" } },
        "spec": { "template": { "metadata": { "labels": { "app": "perfrun" } }, "spec": pod } },
    })
}

fn pod(command: &str, arguments: &SubmitArgs) -> Value {
    // Requests equal to limits: the pod owns its cores (Guaranteed quality of service).
    let resources = json!({ "cpu": arguments.cpus.to_string(), "memory": arguments.memory });
    let mut pod = json!({
        "restartPolicy": "Never",
        // Two that measure never share a node.
        "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
            { "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "perfrun" } } },
        ] } },
        "containers": [{
            "name": "perfrun", "image": arguments.image.clone().unwrap_or_default(),
            "command": ["/bin/sh", "-c", command], "workingDir": PLACE,
            "resources": { "requests": resources, "limits": resources },
            "volumeMounts": [{ "name": "project", "mountPath": PLACE }],
        }],
        "volumes": [{ "name": "project", "persistentVolumeClaim": { "claimName": arguments.volume } }],
    });
    let labels = arguments.node_selector.iter().filter_map(|label| label.split_once('='));
    let labels: serde_json::Map<String, Value> = labels.map(|(key, value)| (key.to_owned(), value.into())).collect();
    if !labels.is_empty() {
        pod["nodeSelector"] = labels.into();
    }
    pod
}

/// A workflow that measures the shards and merges them.
pub(super) fn github(job: &Job, arguments: &SubmitArgs) -> String {
    let of = job.planned.len();
    let shards: Vec<String> = (1..=of).map(|shard| shard.to_string()).collect();
    let limit = arguments.array_limit.map(|limit| format!("      max-parallel: {limit}\n")).unwrap_or_default();
    let longest =
        job.planned.iter().filter_map(|planned| planned.expected_ns).map(|time| time.0 / 60_000_000_000).max();
    let minutes = 2 * longest.unwrap_or(0) + EXTRA_MINUTES;
    let install = format!(
        "      - uses: actions/checkout@v5\n        with: {{ lfs: true }}\n      - run: pipx install {}\n",
        reading::shell::word(arguments.program.as_deref().unwrap_or("perfrun"))
    );
    // What would be an expression of GitHub's stays text.
    let run = run_words(job).join(" ").replace("${{", "${{ '${{' }}");
    format!(
        "# {of} shards of {name}, each in a job, and a job that merges them. Hosted runners differ from job to job: cells are\n\
         # compared within a shard, and each device carries its machine where there are several.\n\
         name: {title}\non: workflow_dispatch\npermissions:\n  contents: read\njobs:\n  shard:\n    runs-on: ubuntu-24.04\n    \
         timeout-minutes: {minutes}\n    strategy:\n      fail-fast: false\n{limit}      matrix:\n        shard: [{shards}]\n    steps:\n{install}      \
         - run: |\n          perfrun {run} --shard ${{{{ matrix.shard }}}}/{of}\n      - if: always()\n        \
         run: perfrun export latest shard-${{{{ matrix.shard }}}}.tar.zst\n      - if: always()\n        uses: actions/upload-artifact@v5\n        \
         with: {{ name: \"shard-${{{{ matrix.shard }}}}\", path: \"shard-*.tar.zst\" }}\n  merge:\n    needs: shard\n    if: always()\n    \
         runs-on: ubuntu-24.04\n    timeout-minutes: {EXTRA_MINUTES}\n    steps:\n{install}      - uses: actions/download-artifact@v5\n        \
         with: {{ path: shards, merge-multiple: true }}\n      - run: perfrun merge shards --output report\n      - if: always()\n        \
         uses: actions/upload-artifact@v5\n        with: {{ name: report, path: report }}\n",
        name = job.experiment,
        title = yaml::scalar(&format!("perfrun {}", job.experiment)),
        shards = shards.join(", "),
    )
}
