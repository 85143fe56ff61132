//! `perfrun report RECORD --trace CELL`: the profiler's own trace of a cell, for a viewer of traces.

use std::io::Read;
use std::path::Path;

use reading::nearest::suggestion;
use reading::plain_file;

use crate::plan::Cell;
use crate::record::profiled::TRACES;
use crate::record::{Detail, Record};
use crate::report::format::some;
use crate::ui::Ui;
use crate::ui::error::{Error, ExitCode};

/// A record may come from anywhere; a million events are less.
const MOST_BYTES: u64 = 1 << 30;

/// Prints the trace of the cell of that id or path, or of the only one whose path holds the name.
pub(super) fn print(record: &Path, name: &str, ui: &Ui) -> Result<ExitCode, Error> {
    let record = Record::open_with(record, Detail::Durations)?;
    let plan = &record.manifest.plan;
    let file = |cell: &Cell| record.folder.join(TRACES).join(format!("{}.json.zst", cell.id));
    let traced: Vec<(String, &Cell)> =
        plan.cells.iter().filter(|cell| file(cell).is_file()).map(|cell| (plan.path(cell), cell)).collect();
    if traced.is_empty() {
        let message = format!("{} has no traces", record.folder.display());
        return Err(Error::refused(message, "measure it with `--profile`, or with `profile: true` in `measure`"));
    }
    let exact = traced.iter().find(|(path, cell)| path == name || cell.id.to_string() == name);
    let holding: Vec<&(String, &Cell)> = traced.iter().filter(|(path, _)| path.contains(name)).collect();
    let (_, cell) = match (exact, holding.as_slice()) {
        (Some(found), _) => found,
        (None, [found]) => *found,
        (None, found) => return Err(not_one(name, found.is_empty(), &traced)),
    };
    let path = file(cell);
    let failed = |source| Error::read(&path, source);
    let packed = zstd::Decoder::new(plain_file::open(&path).map_err(failed)?).map_err(failed)?;
    let mut text = String::new();
    packed.take(MOST_BYTES).read_to_string(&mut text).map_err(failed)?;
    super::print(ui, &text)
}

fn not_one(name: &str, is_none: bool, traced: &[(String, &Cell)]) -> Error {
    const MOST_NAMED: usize = 8;
    let paths = traced.iter().map(|(path, _)| path.clone());
    let named = format!("cells with a trace: {}", some(paths, MOST_NAMED).join(", "));
    if is_none {
        let all: Vec<&str> = traced.iter().map(|(path, _)| path.as_str()).collect();
        let hint = suggestion(name, all, "cell").unwrap_or(named);
        return Error::refused(format!("no cell `{name}` has a trace"), hint);
    }
    Error::refused(format!("`{name}` is part of the name of several cells"), named)
}
