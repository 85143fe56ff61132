//! What the commands of the documents need that no test has, and what stands for names that are made up.

use crate::need;

/// Commands that no test can run: the page, a part of the command, and the reason.
pub(super) const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "cargo test", "this is it"),
    ("README.md", "cargo install --locked --path .", "builds perfrun again"),
    ("README.md", "bash packaging/wheel.sh", "builds perfrun again; .ci/run does so"),
    ("README.md", "pip install dist/perfrun-*.whl", "of what the line before builds; .ci/run does so"),
    ("docs/start.md", "cargo install --locked --path .", "builds perfrun again"),
    ("docs/start.md", "bash packaging/wheel.sh", "builds perfrun again; .ci/run does so"),
    ("docs/start.md", "pip install dist/perfrun-*.whl", "of what the line before builds; .ci/run does so"),
    ("docs/reference/converters.md", "tests/compare_converters.py", "takes minutes, and converters from PyPI"),
    ("docs/devices.md", "perfrun runtime install --gpu --with-cuda", "fetches 2.7 GB"),
    ("docs/devices.md", "perfrun doctor --device cuda --verify", "needs a GPU"),
    ("docs/clusters.md", "kubectl apply", "needs a cluster; submit.rs checks the file against its schema"),
    ("docs/commands.md", "perfrun ab --prove", "the exit code is what it finds out about the machine; ab.rs"),
    ("docs/frameworks.md", "pip install torch", "fetches 1 GB"),
    ("docs/reports.md", "pip install mlflow", "fetches packages; .ci/run does so"),
    ("docs/reports.md", "perfrun export latest --to", "of those packages: adapters/python/tests/test_track.py"),
    ("docs/reference/other-tools.md", "python3 benches/", "takes minutes to hours"),
    ("help runtime", "--with-cuda", "fetches 2.7 GB"),
    ("help doctor", "--verify", "needs a GPU"),
    ("help ab", "perfrun ab --prove", "as on the page of commands"),
];

type IsHere = fn() -> bool;

/// Commands that need what a machine may lack: a part of the command, and whether it is here.
pub(super) const NEEDS: &[(&str, IsHere)] = &[
    ("perfrun model.onnx", has_onnxruntime),
    ("perfrun experiments/models.yaml", has_onnxruntime),
    ("perfrun experiments/threads.yaml", has_onnxruntime),
    ("perfrun zoo:", has_onnxruntime),
    ("perfrun report threads", has_onnxruntime),
    ("perfrun runtime path", has_two_onnxruntimes),
    ("perfrun runtime install", has_two_onnxruntimes),
    ("perfrun-cache.tar", has_two_onnxruntimes),
    ("/opt/onnxruntime/lib", has_onnxruntime),
    ("jq ", has_jq),
];

fn has_onnxruntime() -> bool {
    need::onnxruntime().is_some()
}

fn has_two_onnxruntimes() -> bool {
    need::two_onnxruntimes().is_some()
}

fn has_jq() -> bool {
    need::duckdb().is_some()
}

/// What stands for something else: the page, what it shows, and what a test has. The output that a page shows is read so too.
pub(super) const STAND_INS: &[(&str, &str, &str)] = &[
    ("README.md", "cargo run -- ", "perfrun "),
    // As its verdicts need, it takes half a minute.
    (
        "README.md",
        "perfrun experiments/models.yaml",
        "perfrun experiments/models.yaml --runs 1 --set measure.warmup.max_time=50ms --set measure.stop.max_time=50ms",
    ),
    (
        "docs/start.md",
        "perfrun experiments/models.yaml",
        "perfrun experiments/models.yaml --runs 1 --set measure.warmup.max_time=50ms --set measure.stop.max_time=50ms",
    ),
    (
        "docs/experiment.md",
        "perfrun experiments/threads.yaml",
        "perfrun experiments/threads.yaml --runs 1 --set measure.warmup.max_time=50ms --set measure.stop.max_time=50ms",
    ),
    // Records of three machines.
    (
        "docs/clusters.md",
        "epyc=RECORD xeon=RECORD laptop=RECORD",
        "$(for machine in epyc xeon laptop; do perfrun experiments/matrix.yaml --runs 1 --output o >o.txt; \
         echo $machine=$(ls -d .perfrun/records/matrix/* | tail -1); done)",
    ),
    ("help plan", "x.yaml --shards", "matrix.yaml --shards"),
    ("help submit", "x.yaml --to", "matrix.yaml --to"),
    ("docs/clusters.md", "--wheel https://...", "--wheel https://example.org/perfrun-1-py3-none-any.whl"),
    ("docs/clusters.md", "--sha256 ...", "--sha256 $(printf %064d 1)"),
    // Executions of half a second, until the verdict is there, take half a minute.
    ("docs/commands.md", "perfrun ab", "perfrun ab --runs 1 --set measure.stop.time=10ms"),
    // It ends with the commit that made int8 slower.
    ("docs/changes.md", "optimization: disabled/", "optimization: disabled, mock: { scale: 1.4 }/"),
    (
        "docs/changes.md",
        "--remeasure --bisect",
        "--remeasure --bisect && git bisect log | grep -q '^# first bad commit: .* no graph optimisation$'",
    ),
    ("docs/share.md", "/opt/onnxruntime/lib/libonnxruntime.so.1.31.1", "$(perfrun runtime path)"),
    ("docs/share.md", "/opt/onnxruntime/lib", "$(dirname $(perfrun runtime path))"),
    ("docs/share.md", "merge RECORD RECORD RECORD", "merge $(ls -d .perfrun/records/detector/* | tail -3)"),
    ("docs/share.md", "laptop=RECORD server=RECORD", "laptop=$record1 server=$record2"),
    // On another machine.
    ("docs/share.md", "export detector detector.tar.zst", "export detector ../other/detector.tar.zst"),
    ("docs/share.md", "perfrun import", "cd ../other && perfrun import"),
    // Forty start some hundred processes.
    ("docs/reference/other-tools.md", "--comparisons 40", "--comparisons 8"),
    ("help calibrate", "--comparisons 40", "--comparisons 8"),
    ("help ab", "perfrun ab", "perfrun ab --runs 1 --set measure.stop.time=10ms"),
    ("help merge", "laptop=RECORD server=RECORD", "laptop=$record1 server=$record2"),
    ("help clean", "--keep 3", "--keep 3 --yes"),
    ("docs/frameworks.md", "perfrun experiments/frameworks.yaml", "perfrun plan experiments/frameworks.yaml"),
    // Scripts have no model files.
    ("docs/profiles.md", "node       embeddings.LayerNorm (", "node       layernormalization_0 ("),
    (
        "docs/profiles.md",
        "embeddings.LayerNorm.onnx and embeddings.LayerNorm.yaml; the node alone: 0.179x [0.179, 0.180] slower",
        "nothing: this backend has no model file",
    ),
];
