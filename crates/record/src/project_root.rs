//! Where records and reports lie (docs/reference/record.md).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{LocalPaths, Manifest, StoreError, provenance};
use base::machine::host::Host;

/// What stands for the newest record.
pub const LATEST: &str = "latest";

/// The folders that belong to one root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRoot {
    /// Nearest folder above the specification that has `.perfrun` or `.git`, else the current one.
    pub root: PathBuf,
}

impl ProjectRoot {
    /// The root that a specification belongs to.
    ///
    /// # Errors
    ///
    /// When the current folder is not to be had.
    pub fn of(spec: &Path) -> Result<Self, StoreError> {
        let unreadable = |source| StoreError::Read { path: spec.to_owned(), source };
        let current = std::env::current_dir().map_err(unreadable)?;
        let absolute = std::path::absolute(spec).map_err(unreadable)?;
        let marked = absolute.ancestors().skip(1).find(|folder| {
            // A home folder may hold `.perfrun` of its own; the first mark found from below wins all the same.
            folder.join(".perfrun").is_dir() || folder.join(".git").exists()
        });
        Ok(ProjectRoot { root: marked.map_or(current, Path::to_path_buf) })
    }

    /// That of the current folder.
    ///
    /// # Errors
    ///
    /// When there is no current folder.
    pub fn here() -> Result<Self, StoreError> {
        // The folder of any file in it.
        ProjectRoot::of(Path::new("x"))
    }

    /// Records of one experiment.
    pub fn records(&self, experiment: &str) -> PathBuf {
        self.root.join(".perfrun").join("records").join(experiment)
    }

    /// The last calibration, by which budgets and conditions are judged.
    pub fn calibration(&self) -> PathBuf {
        self.root.join(".perfrun").join("calibration.json")
    }

    /// The committed report of one experiment.
    pub fn report(&self, experiment: &str) -> PathBuf {
        self.root.join("reports").join(experiment)
    }

    /// Path relative to the root where it lies below, else its last component: committed files name no home.
    pub fn relative(&self, path: &Path) -> String {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let below = absolute.strip_prefix(&self.root).ok();
        let shown = below.map(Path::to_path_buf).or_else(|| Some(PathBuf::from(absolute.file_name()?)));
        shown.unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The schema of specifications for editors, where the root has none of its own.
    pub fn schema(&self) -> PathBuf {
        self.root.join(".perfrun").join("experiment.schema.json")
    }

    /// Creates the local store with its own `.gitignore`.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn create_store(&self) -> Result<(), StoreError> {
        let store = self.root.join(".perfrun");
        create_folder(&store)?;
        let ignore = store.join(".gitignore");
        if ignore.exists() { Ok(()) } else { super::write_whole(&ignore, b"*\n") }
    }

    /// Creates the folder of a new record, and the local store where there is none.
    ///
    /// # Errors
    ///
    /// When a folder cannot be written.
    pub fn new_record(&self, experiment: &str, started: &jiff::Timestamp) -> Result<PathBuf, StoreError> {
        self.create_store()?;
        let records = self.records(experiment);
        create_folder(&records)?;
        let time = started.strftime("%Y%m%dT%H%M%SZ").to_string();
        // A clock may stand before 1970.
        let fraction = (u64::from(started.subsec_nanosecond().unsigned_abs()) << 16) / 1_000_000_000;
        for attempt in 0..100_u32 {
            let unique = format!("{}/{}/{attempt}", started.as_nanosecond(), std::process::id());
            let hash = statistics::random::fnv1a64(unique.as_bytes()) >> 48;
            // Names sort by time, within a second too.
            let folder = records.join(format!("{time}-{fraction:04x}{hash:04x}"));
            match fs::create_dir(&folder) {
                Ok(()) => {
                    for inner in ["journal", "logs"] {
                        create_folder(&folder.join(inner))?;
                    }
                    return Ok(folder);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(StoreError::Write { path: folder, source }),
            }
        }
        Err(StoreError::Write { path: records, source: io::Error::other("every name of a new record is taken") })
    }

    /// The record that a text names: its folder, its name, the newest of the experiment of that name, or `latest` for the
    /// newest of all.
    pub fn record(&self, text: &str) -> Option<PathBuf> {
        let folder = PathBuf::from(text);
        if folder.join(Manifest::FILE).is_file() {
            return Some(folder);
        }
        let records = self.all_records();
        match text {
            LATEST => records.into_iter().next_back(),
            name => {
                let is_called =
                    |folder: Option<&Path>| folder.and_then(Path::file_name).is_some_and(|found| found == name);
                let of_this_name = records.iter().find(|folder| is_called(Some(folder)));
                of_this_name.or_else(|| records.iter().rfind(|folder| is_called(folder.parent()))).cloned()
            }
        }
    }

    /// The records of all experiments, the oldest first: their names begin with the time.
    pub fn all_records(&self) -> Vec<PathBuf> {
        let folders = |folder: &Path| -> Vec<PathBuf> {
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        };
        let mut records: Vec<PathBuf> = folders(&self.records("")).iter().flat_map(|folder| folders(folder)).collect();
        records.retain(|folder| folder.join(Manifest::FILE).is_file());
        records.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
        records
    }

    /// The newest record of an experiment, or of any, that `run` did not complete, or that cannot be read: opening
    /// that one says why. One of this machine comes before those that were imported.
    pub fn newest_unfinished(&self, experiment: Option<&str>, host: &Host) -> Option<PathBuf> {
        let here = provenance::machine(host);
        let is_of = |folder: &PathBuf| experiment.is_none_or(|name| folder.starts_with(self.records(name)));
        let is_here =
            |manifest: &Manifest| provenance::differences(&provenance::machine(&manifest.host), &here).is_empty();
        let mut elsewhere = None;
        for folder in self.all_records().into_iter().rev().filter(is_of) {
            match Manifest::read(&folder) {
                Ok(manifest) if manifest.findings.complete || !manifest.is_of_run() => {}
                Ok(manifest) if !is_here(&manifest) || !LocalPaths::is_here(&folder) => {
                    elsewhere = elsewhere.or(Some(folder))
                }
                Err(StoreError::NotARecord { .. }) => {}
                Ok(_) | Err(_) => return Some(folder),
            }
        }
        elsewhere
    }
}

/// The time; where the clock of the machine stands beyond all calendars, the last one that they have.
pub fn now() -> jiff::Timestamp {
    in_calendar(SystemTime::now())
}

fn in_calendar(time: SystemTime) -> jiff::Timestamp {
    jiff::Timestamp::try_from(time).unwrap_or(jiff::Timestamp::MAX)
}

fn create_folder(path: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(path).map_err(|source| StoreError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_record_is_not_passed_over_for_an_older_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let project = ProjectRoot { root: folder.path().to_owned() };
        let records = project.records("x");
        for (name, manifest) in [("1", Some("{}")), ("2", Some("{")), ("3", None)] {
            fs::create_dir_all(records.join(name)).expect("writable");
            if let Some(text) = manifest {
                fs::write(records.join(name).join(Manifest::FILE), text).expect("writable");
            }
        }
        assert_eq!(
            project.newest_unfinished(Some("x"), &base::machine::host::describe()),
            Some(records.join("2")),
            "3 is no record"
        );
    }

    #[test]
    fn a_clock_of_the_year_12000_names_a_record_too() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let project = ProjectRoot { root: folder.path().to_owned() };
        let far = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(316_516_500_000);
        let record = project.new_record("x", &in_calendar(far)).expect("writable");
        assert!(record.file_name().is_some_and(|name| name.to_string_lossy().starts_with("99991230T")));
    }

    #[test]
    fn the_root_is_the_nearest_marked_folder() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let inner = folder.path().join("a/experiments");
        fs::create_dir_all(&inner).expect("writable");
        fs::create_dir(folder.path().join("a/.perfrun")).expect("writable");
        let project = ProjectRoot::of(&inner.join("x.yaml")).expect("a project");
        assert_eq!(project.root, folder.path().join("a"));
        assert_eq!(project.relative(&inner.join("m.onnx")), "experiments/m.onnx");
        assert_eq!(project.relative(Path::new("/elsewhere/secret/m.onnx")), "m.onnx");
    }

    #[test]
    fn records_of_one_second_sort_by_time() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let project = ProjectRoot { root: folder.path().to_owned() };
        let at = |milliseconds| jiff::Timestamp::from_millisecond(milliseconds).expect("in range");
        let made: Vec<PathBuf> = [0, 1, 2, 500, 999, 1000]
            .into_iter()
            .map(|milliseconds| project.new_record("x", &at(1_700_000_000_000 + milliseconds)).expect("writable"))
            .collect();
        assert!(made.is_sorted());
    }

    #[test]
    fn a_new_record_ignores_itself_in_git() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let project = ProjectRoot { root: folder.path().to_owned() };
        let time = jiff::Timestamp::from_second(1_700_000_000).expect("in range");
        let first = project.new_record("x", &time).expect("writable");
        let second = project.new_record("x", &time).expect("writable");
        assert_ne!(first, second);
        assert!(first.file_name().is_some_and(|name| name.to_string_lossy().starts_with("20231114T221320Z-")));
        assert_eq!(fs::read_to_string(folder.path().join(".perfrun/.gitignore")).expect("written"), "*\n");
        assert_eq!(project.newest_unfinished(None, &base::machine::host::describe()), None);
    }
}
