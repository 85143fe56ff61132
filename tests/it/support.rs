//! A folder of its own for each test, and perfrun in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use record::Record;
use tempfile::TempDir;

/// A temporary folder that is a root of its own.
pub struct Project {
    folder: TempDir,
    /// Of the lock on the machine: no time is checked, so that tests need not wait for each other.
    lock: TempDir,
}

/// What a command did.
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Compares a text with the committed snapshot of that name.
pub fn check_snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

impl Project {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join(".perfrun")).unwrap();
        Project { folder, lock: TempDir::new().unwrap() }
    }

    /// A workplace with `x.yaml`.
    pub fn with_spec(text: &str) -> Self {
        let project = Project::new();
        project.write("x.yaml", text);
        project
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// What `report.html` in a folder reads like: see [`readable`].
    pub fn page(&self, folder: &str) -> String {
        readable(&self.read(&format!("{folder}/report.html")))
    }

    /// The file by which its measuring processes wait for each other.
    pub fn lock(&self) -> PathBuf {
        self.lock.path().join("lock")
    }

    /// perfrun in this folder, with nothing of this machine's settings.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perfrun"));
        without_settings(&mut command)
            .args(arguments)
            .current_dir(self.root())
            .env("NO_COLOR", "1")
            .env("PERFRUN_LOCK", self.lock())
            .env("PERFRUN_WAIT", "0s");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Done {
        Done::from(self.command(arguments).output().unwrap())
    }

    /// The only record of the experiment.
    pub fn record_folder(&self, experiment: &str) -> PathBuf {
        let records: Vec<PathBuf> = fs::read_dir(self.path(&format!(".perfrun/records/{experiment}")))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(records.len(), 1, "one record is expected: {records:?}");
        records[0].clone()
    }

    pub fn record(&self, experiment: &str) -> Record {
        whole_record(&self.record_folder(experiment))
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Done {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Done {
    /// Fails with everything that was printed unless the code is as expected.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// A page of HTML as text: a line for each row of a table, `| a | b |`, and for each paragraph; figures are left out.
pub fn readable(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        // Within an element the source breaks lines where it likes.
        text += &before.replace('\n', " ");
        let (tag, after) = after.split_once('>').unwrap_or((after, ""));
        let name = tag.split([' ', '/']).find(|part| !part.is_empty()).unwrap_or_default();
        text += match (name, tag.starts_with('/')) {
            ("th" | "td", false) => "| ",
            ("th" | "td", true) => " ",
            ("tr", true) => "|\n",
            ("code", _) => "`",
            ("strong", _) => "**",
            ("s", _) => "~~",
            ("span", false) => " ",
            ("tr" | "p" | "li" | "h1" | "h2" | "h3" | "dt" | "dd" | "div" | "summary" | "pre", _) => "\n",
            _ => "",
        };
        rest = match name {
            "style" | "script" | "svg" if !tag.starts_with('/') => {
                after.split_once(&format!("</{name}>")).map_or("", |(_, rest)| rest)
            }
            _ => after,
        };
    }
    for (entity, letter) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&amp;", "&")]
    {
        text = text.replace(entity, letter);
    }
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// What this machine, the job of a server or cargo may set.
pub const SET: [&str; 8] = [
    "ORT_DYLIB_PATH",
    // What cargo sets for tests.
    "LD_LIBRARY_PATH",
    "GITHUB_STEP_SUMMARY",
    "CUDA_VISIBLE_DEVICES",
    "RUST_BACKTRACE",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
];

/// A command with nothing that this machine or the job of a server sets: for git, GitHub, CUDA, a runtime, or backtraces.
pub fn without_settings(command: &mut Command) -> &mut Command {
    for name in SET {
        command.env_remove(name);
    }
    // Whoever signs every commit does not sign those of tests.
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1")
}

/// A record with its samples in memory.
pub fn whole_record(folder: &Path) -> Record {
    let record = Record::open(folder).unwrap();
    let runs = record.runs.iter().map(|run| run.here().unwrap()).collect();
    Record { runs, ..record }
}
