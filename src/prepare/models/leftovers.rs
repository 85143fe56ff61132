//! What a killed perfrun left behind in the cache: unfinished downloads and conversions.

use std::path::Path;
use std::time::{Duration, SystemTime};

/// Another perfrun may be at work, but writes to what it has begun.
const OLD: Duration = Duration::from_secs(24 * 3600);

/// Removes the entries of a folder whose names begin like this and that nobody has written to for a day. What cannot be
/// removed is in nobody's way.
pub(super) fn remove_leftovers(folder: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix)) {
        // Of a link itself: what it points to is not ours.
        let Ok(metadata) = entry.metadata() else { continue };
        let age = metadata.modified().ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
        if age.is_some_and(|age| age > OLD) {
            let path = entry.path();
            let removed = if metadata.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            drop(removed);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn old_leftovers_go_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, days: u64| {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(days * 24 * 3600)).unwrap();
        };
        for (name, days) in [(".partial-a", 3), (".partial-b", 0), ("model.onnx", 3)] {
            make(name, days);
        }
        remove_leftovers(folder.path(), ".partial-");
        let mut left: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".partial-b", "model.onnx"]);
    }
}
