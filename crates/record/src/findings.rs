//! What a record holds besides its manifest and its runs: each pass's findings in a file of their own, and what the
//! runner decided on the way.
//!
//! Every file appears whole, by renaming, when there is something to say; one that is not there says that its pass is
//! not over. The manifest is never touched.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::found::{Compared, Converted, DevicesSeen, Preview, Rates, Rehearsed, Scored, Searched, SetUp, SideBySide};
use super::profiled::Profiled;
use super::roofline::Roofline;
use super::sums::{self, COMPLETE, Sums};
use super::used::Invocation;
use super::{BudgetUsed, FORMAT, StoreError, read_versioned, write_whole};

/// The folder of what passes found.
pub const PASSES: &str = "passes";
const INVOCATIONS: &str = "sessions.json";
const BUDGET: &str = "budget.json";

/// The findings of one pass.
pub trait Finding: Serialize + DeserializeOwned + PartialEq {
    /// The name of the pass and, with `.json`, of the file.
    const PASS: &'static str;

    /// What a record has of them.
    fn of(findings: &PassFindings) -> Option<&Self>;

    /// Where a record keeps them.
    fn slot(findings: &mut PassFindings) -> &mut Option<Self>;
}

/// Declares [`PassFindings`], and which pass a field is of: its name is that of the field.
macro_rules! findings {
    ($($(#[$meaning:meta])* $pass:ident: $kind:ty,)*) => {
        /// What was found since a record began. `None` where a pass is not over, or had nothing to do.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct PassFindings {
            $($(#[$meaning])* pub $pass: Option<$kind>,)*
            /// Every invocation that added to this record.
            pub invocations: Vec<Invocation>,
            /// What the budget left of what was asked for; `None` without one.
            pub budget: Option<BudgetUsed>,
            /// All runs have an outcome and the Parquet files are written.
            pub complete: bool,
            /// What the files of a complete record must hash to; `None` in those of earlier versions.
            pub sums: Option<Sums>,
        }

        $(impl Finding for $kind {
            const PASS: &'static str = stringify!($pass);

            fn of(findings: &PassFindings) -> Option<&Self> {
                findings.$pass.as_ref()
            }

            fn slot(findings: &mut PassFindings) -> &mut Option<Self> {
                &mut findings.$pass
            }
        })*

        impl PassFindings {
            fn write_passes(&self, folder: &Path) -> Result<(), StoreError> {
                $(if let Some(found) = &self.$pass {
                    write(&folder.join(concat!(stringify!($pass), ".json")), found)?;
                })*
                Ok(())
            }

            fn read_passes(&mut self, folder: &Path) -> Result<(), StoreError> {
                $(self.$pass = read_if_there(&folder.join(concat!(stringify!($pass), ".json")))?;)*
                Ok(())
            }
        }
    };
}

findings! {
    /// What was run before anything else.
    setup: SetUp,
    /// What devices are and draw while nothing runs on them.
    devices: DevicesSeen,
    /// The files of variants that are not run with the model's own.
    convert: Converted,
    /// The best batch of cells that are searched for it.
    search: Searched,
    /// What the rehearsal said about all runs.
    rehearsal: Rehearsed,
    /// The rate of cells that look for the largest.
    rates: Rates,
    /// How like the reference's the outputs of cells are.
    outputs: Compared,
    /// What the machine can do at most.
    peak: Roofline,
    /// How right variants are on the data.
    accuracy: Scored,
    /// How quiet the machine was when a requirement let the record through.
    requirements: Preview,
    /// Whether cells of different devices disturb each other.
    side_by_side: SideBySide,
    /// Where the time of inferences goes.
    profile: Profiled,
}

impl PassFindings {
    /// Reads what there is in a record's folder.
    pub(super) fn read(record: &Path) -> Result<Self, StoreError> {
        let Invocations { invocations } = read_versioned(&record.join(INVOCATIONS))?;
        let budget = read_if_there(&record.join(BUDGET))?;
        let complete: Option<Marker> = read_if_there(&record.join(COMPLETE))?;
        let mut findings = PassFindings {
            invocations,
            budget,
            complete: complete.is_some(),
            sums: complete.and_then(|marker| marker.sha256),
            ..PassFindings::default()
        };
        findings.read_passes(&record.join(PASSES))?;
        Ok(findings)
    }

    /// Writes everything but the mark that a record is complete.
    pub(super) fn write(&self, record: &Path) -> Result<(), StoreError> {
        let folder = record.join(PASSES);
        fs::create_dir_all(&folder).map_err(|source| StoreError::Write { path: folder.clone(), source })?;
        self.write_passes(&folder)?;
        if let Some(budget) = &self.budget {
            write(&record.join(BUDGET), budget)?;
        }
        write(&record.join(INVOCATIONS), &Invocations { invocations: self.invocations.clone() })
    }

    pub(super) fn keep<F: Finding>(&mut self, record: &Path, found: F) -> Result<(), StoreError> {
        let slot = F::slot(self);
        if slot.as_ref() != Some(&found) {
            let folder = record.join(PASSES);
            fs::create_dir_all(&folder).map_err(|source| StoreError::Write { path: folder.clone(), source })?;
            write(&folder.join(format!("{}.json", F::PASS)), &found)?;
            *slot = Some(found);
        }
        Ok(())
    }

    /// Adds an invocation.
    pub(super) fn begin_invocation(&mut self, record: &Path, invocation: Invocation) -> Result<(), StoreError> {
        self.invocations.push(invocation);
        write(&record.join(INVOCATIONS), &Invocations { invocations: self.invocations.clone() })
    }

    /// Keeps what the budget left.
    pub(super) fn keep_budget(&mut self, record: &Path, budget: BudgetUsed) -> Result<(), StoreError> {
        self.budget = Some(budget);
        write(&record.join(BUDGET), &budget)
    }

    /// Says that everything is written, and what it hashes to.
    pub(super) fn complete(&mut self, record: &Path) -> Result<(), StoreError> {
        self.sums = Some(sums::of_record(record)?);
        write(&record.join(COMPLETE), &Marker { sha256: self.sums.clone() })?;
        self.complete = true;
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct Invocations {
    #[serde(rename = "sessions")]
    invocations: Vec<Invocation>,
}

/// A file that says by being there that a record is complete.
#[derive(Serialize, Deserialize)]
struct Marker {
    /// SHA-256 of every other file of the record by its path; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<Sums>,
}

/// Content with the version of the record.
#[derive(Serialize)]
struct Versioned<'a, T> {
    format: u32,
    #[serde(flatten)]
    content: &'a T,
}

fn write<T: Serialize>(path: &Path, content: &T) -> Result<(), StoreError> {
    let text =
        serde_json::to_vec_pretty(&Versioned { format: FORMAT, content }).expect("findings have string keys only");
    write_whole(path, &text)
}

fn read_if_there<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    if path.is_file() { read_versioned(path).map(Some) } else { Ok(None) }
}
