//! `perfrun report RECORD --trace CELL`: the profiler's own trace of a cell, for a viewer of traces.

use std::io::Read;
use std::path::Path;

use crate::ui::Ui;
use crate::ui::error::{Error, ExitCode};
use plan::Cell;
use reading::nearest::suggestion;
use reading::plain_file;
use record::Record;
use record::profiled::TRACES;
use report::format::some;

/// A record may come from anywhere; a million events are less.
const MOST_BYTES: u64 = 1 << 30;

/// Prints the trace of the cell of that id or path, or of the only one in whose path the name stands: as entries
/// (`odd/one`), else anywhere.
pub(super) fn print(record: &Path, name: &str, ui: &Ui) -> Result<ExitCode, Error> {
    let record = Record::open(record)?;
    let plan = &record.manifest.plan;
    let file = |cell: &Cell| record.folder.join(TRACES).join(format!("{}.json.zst", cell.id));
    let traced: Vec<(String, &Cell)> =
        plan.cells.iter().filter(|cell| file(cell).is_file()).map(|cell| (plan.path(cell), cell)).collect();
    if traced.is_empty() {
        let message = format!("{} has no traces", record.folder.display());
        let help = match record.manifest.findings.profile {
            Some(_) => "those of a merged record are in the records that it was merged from",
            None => "measure it with `--profile`, or with `profile: true` in `measure`",
        };
        return Err(Error::refused(message, help));
    }
    let rank = |path: &str, cell: &Cell| {
        let id = cell.id.to_string();
        let matches =
            [path == name || id == name, has_entries(path, name), path.contains(name) || id.starts_with(name)];
        matches.iter().position(|is_match| *is_match)
    };
    let best = traced.iter().filter_map(|(path, cell)| rank(path, cell)).min();
    let found: Vec<&(String, &Cell)> =
        traced.iter().filter(|(path, cell)| best.is_some() && rank(path, cell) == best).collect();
    let [(_, cell)] = found.as_slice() else { return Err(not_one(name, &found, &traced)) };
    let path = file(cell);
    let failed = |source| Error::read(&path, source);
    let packed = zstd::Decoder::new(plain_file::open(&path).map_err(failed)?).map_err(failed)?;
    let mut text = String::new();
    packed.take(MOST_BYTES).read_to_string(&mut text).map_err(failed)?;
    super::print(ui, &text)
}

/// Whether the entries of a name stand in a path, in order: `odd/one` in `odd/b1/one/cpu`.
fn has_entries(path: &str, name: &str) -> bool {
    let mut entries = path.split('/');
    name.split('/').all(|wanted| entries.any(|entry| entry == wanted))
}

fn not_one(name: &str, found: &[&(String, &Cell)], traced: &[(String, &Cell)]) -> Error {
    const MOST_NAMED: usize = 8;
    let named = |paths: Vec<String>| format!("cells with a trace: {}", some(paths.into_iter(), MOST_NAMED).join(", "));
    if found.is_empty() {
        let all: Vec<&str> = traced.iter().map(|(path, _)| path.as_str()).collect();
        let named = || named(traced.iter().map(|(path, _)| path.clone()).collect());
        let hint = suggestion(name, all, "cell").unwrap_or_else(named);
        return Error::refused(format!("no cell `{name}` has a trace"), hint);
    }
    let found = found.iter().map(|(path, _)| path.clone()).collect();
    Error::refused(format!("`{name}` is part of the name of several cells"), named(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_entries_are_found_in_order() {
        for name in ["odd", "one", "odd/one", "b1/cpu", "odd/b1/one/cpu"] {
            assert!(has_entries("odd/b1/one/cpu", name), "{name}");
        }
        for name in ["on", "one/odd", "odd/two", "", "ODD"] {
            assert!(!has_entries("odd/b1/one/cpu", name), "{name}");
        }
    }
}
