//! What is printed for engines that perfrun does not talk to: an Indexed Job of Kubernetes, a workflow of GitHub Actions.
//!
//! Sources: Kubernetes' API batch/v1 (Indexed completion, `backoffLimitPerIndex`), GitHub's workflow syntax.

use serde_json::{Value, json};

use super::job::Job;
use crate::ui::cli::SubmitArgs;
use crate::ui::error::Error;
use base::wording::count;
use reading::yaml;
use statistics::random::fnv1a64;

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
    let total = job.planned.len();
    let run = run_words(job).join(" ");
    // Failed cells and missed goals are in the record: measuring them again would not help.
    let shell = format!(
        "perfrun {run} --once --shard \"$((JOB_COMPLETION_INDEX + 1))/{total}\" || case $? in 3|4) ;; *) exit $? ;; esac"
    );
    let merging = format!("exec perfrun merge .perfrun/records/{}", job.experiment);
    let parallel = arguments.array_limit.map_or(total, |limit| (limit as usize).min(total));
    let mut shards = object(&name, &pod(&shell, arguments));
    let spec = &mut shards["spec"];
    spec["completionMode"] = "Indexed".into();
    spec["completions"] = total.into();
    spec["parallelism"] = parallel.into();
    spec["backoffLimitPerIndex"] = 3.into();
    spec["maxFailedIndexes"] = total.into();
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
        "# {} of {}, each on a node of its own, and a job that merges them once it is resumed:\n\
         #   kubectl apply -f FILE\n\
         #   kubectl get job/{name} --watch       # until it is Complete or Failed\n\
         #   kubectl patch job/{name}-merge --type merge -p '{{\"spec\":{{\"suspend\":false}}}}'\n\
         # The volume `{}` holds the project at its top, with {}; records and the report are written there.\n{}---\n{}",
        count(total as u64, "shard"),
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

/// Lower case, digits and `-`, as names of objects have to be. Where that or their length changes a name, a hash
/// distinguishes it from others.
fn name_of_object(experiment: &str) -> String {
    const LONGEST: usize = 50;
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String = format!("perfrun-{experiment}").chars().map(plain).collect();
    if name == format!("perfrun-{experiment}") && name.len() <= LONGEST && !name.ends_with('-') {
        return name;
    }
    let short: String = name.chars().take(LONGEST - 5).collect();
    format!("{}-{:04x}", short.trim_end_matches('-'), fnv1a64(experiment.as_bytes()) >> 48)
}

/// What of the options no object of Kubernetes can hold.
///
/// # Errors
///
/// The first of them.
pub(super) fn check(arguments: &SubmitArgs) -> Result<(), Error> {
    let SubmitArgs { image, memory, volume, node_selector, program, .. } = arguments;
    let refused = |message: String, help: &str| Err(Error::refused(message, help));
    let digits = memory.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let (unit, has_exponent) = (&memory[digits.len()..], digits.contains(['e', 'E']));
    let is_number = digits.parse::<f64>().is_ok_and(|number| number > 0.0);
    let units = ["", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if !is_number || !units.contains(&unit) || has_exponent && !unit.is_empty() {
        return refused(format!("`--memory {memory}` is no quantity of Kubernetes"), "such as `--memory 16Gi`");
    }
    let is_within = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter);
    let is_end = |letter: Option<char>| letter.is_some_and(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
    if volume.len() > 253
        || !volume.chars().all(is_within)
        || !is_end(volume.chars().next())
        || !is_end(volume.chars().last())
    {
        let help = "lower case, digits, `-` and `.`: `kubectl get pvc` lists the claims";
        return refused(format!("`--volume {volume}` is no name of a claim"), help);
    }
    if let Some(image) = image.as_ref().filter(|image| image.contains(char::is_whitespace)) {
        return refused(format!("`--image {image}` is no image"), "such as `--image registry.example/perfrun:1`");
    }
    let is_word = |text: &str, most: usize| {
        let letters = || text.chars();
        let is_within = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        let is_end = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
        text.len() <= most && letters().all(is_within) && is_end(letters().next()) && is_end(letters().last())
    };
    let is_label = |label: &&String| {
        label.split_once('=').is_some_and(|(key, value)| {
            let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
            let is_prefix = prefix.is_none_or(|prefix| is_word(prefix, 253) && !prefix.contains('_'));
            is_prefix && is_word(name, 63) && (value.is_empty() || is_word(value, 63))
        })
    };
    if let Some(program) = program {
        let help = "leave it out: the image has perfrun on its path";
        return refused(format!("`--program {program}` has no effect for Kubernetes"), help);
    }
    let key = |label: &String| label.split('=').next().map(str::to_owned);
    let mut labels = (0..).zip(node_selector);
    if let Some((_, twice)) =
        labels.find(|(index, label)| node_selector[..*index].iter().any(|it| key(it) == key(label)))
    {
        return refused(
            format!("`--node-selector {twice}` gives a key a second value"),
            "a node has one value for each key",
        );
    }
    match node_selector.iter().find(|label| !is_label(label)) {
        Some(label) => refused(format!("`--node-selector {label}` is no label"), "a key and a value: `pool=bench`"),
        None => Ok(()),
    }
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
            // The API expands `$(NAME)`, and takes `$$` for `$`.
            "command": ["/bin/sh", "-c", command.replace('$', "$$")], "workingDir": PLACE,
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

/// The lines of a script that installs perfrun from a wheel of known bytes: whoever registers its name at an index must not
/// run on anybody's machine.
///
/// # Errors
///
/// No wheel, or one that no line of a script can name.
fn install(arguments: &SubmitArgs) -> Result<String, Error> {
    if let Some(program) = &arguments.program {
        return Err(Error::refused(
            format!("`--program {program}` has no effect for GitHub"),
            "name a wheel: `--wheel`",
        ));
    }
    let Some((wheel, sha256)) = arguments.wheel.as_ref().zip(arguments.sha256.as_ref()) else {
        let help =
            "name a wheel by `--wheel` and `--sha256`; a release has both, and `bash packaging/wheel.sh` makes one";
        return Err(Error::refused("GitHub's machines have no perfrun", help));
    };
    let name = wheel.rsplit('/').next().unwrap_or_default();
    let is_within = |letter: char| letter.is_ascii_alphanumeric() || "-._~:/%+@".contains(letter);
    if !name.ends_with(".whl") || wheel.starts_with('-') || !wheel.chars().all(is_within) {
        let help = "an https address or a path that ends with `.whl`, without spaces and quotes";
        return Err(Error::refused(format!("`--wheel {wheel}` is no wheel"), help));
    }
    let (fetch, file) = match wheel.split_once("://") {
        Some(("https", _)) => (format!("curl --proto =https -fsSLo {name} {wheel}\n          "), name),
        Some(_) => return Err(Error::refused(format!("`--wheel {wheel}` is not an https address"), "use https")),
        None => (String::new(), wheel.as_str()),
    };
    Ok(format!("{fetch}echo '{sha256}  {file}' | sha256sum --check --strict\n          pipx install ./{file}"))
}

/// A workflow that measures the shards and merges them.
///
/// # Errors
///
/// Nothing that installs perfrun.
pub(super) fn github(job: &Job, arguments: &SubmitArgs) -> Result<String, Error> {
    let total = job.planned.len();
    let shards: Vec<String> = (1..=total).map(|shard| shard.to_string()).collect();
    let limit = arguments.array_limit.map(|limit| format!("      max-parallel: {limit}\n")).unwrap_or_default();
    let longest =
        job.planned.iter().filter_map(|planned| planned.expected_ns).map(|time| time.0 / 60_000_000_000).max();
    let minutes = 2 * longest.unwrap_or(0) + EXTRA_MINUTES;
    let install = format!(
        "      - uses: actions/checkout@v5\n        with: {{ lfs: true }}\n      - run: |\n          {}\n",
        install(arguments)?
    );
    // What would be an expression of GitHub's stays text.
    let run = run_words(job).join(" ").replace("${{", "${{ '${{' }}");
    Ok(format!(
        "# {total} shards of {name}, each in a job, and a job that merges them. Hosted runners differ from job to job: cells are\n\
         # compared within a shard, and each device carries its machine where there are several.\n\
         name: {title}\non: workflow_dispatch\npermissions:\n  contents: read\njobs:\n  shard:\n    runs-on: ubuntu-24.04\n    \
         timeout-minutes: {minutes}\n    strategy:\n      fail-fast: false\n{limit}      matrix:\n        shard: [{shards}]\n    steps:\n{install}      \
         - run: |\n          perfrun {run} --shard ${{{{ matrix.shard }}}}/{total}\n      - if: always()\n        \
         run: perfrun export latest shard-${{{{ matrix.shard }}}}.tar.zst\n      - if: always()\n        uses: actions/upload-artifact@v5\n        \
         with: {{ name: \"shard-${{{{ matrix.shard }}}}\", path: \"shard-*.tar.zst\" }}\n  merge:\n    needs: shard\n    if: always()\n    \
         runs-on: ubuntu-24.04\n    timeout-minutes: {EXTRA_MINUTES}\n    steps:\n{install}      - uses: actions/download-artifact@v5\n        \
         with: {{ path: shards, merge-multiple: true }}\n      - run: perfrun merge shards --output report\n      - if: always()\n        \
         uses: actions/upload-artifact@v5\n        with: {{ name: report, path: report }}\n",
        name = job.experiment,
        title = yaml::scalar(&format!("perfrun {}", job.experiment)),
        shards = shards.join(", "),
    ))
}
