//! A rendered report into a folder, whole files only.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Format, Rendered, ReportError, plots};
use reading::plain_file;
use record::write_whole;

/// Writes the report and returns the files, the ones to read first.
///
/// Plots of an earlier report that this one does not have are removed; other files of the folder stay, other SVG files
/// too.
///
/// # Errors
///
/// When the folder or a file cannot be written.
pub fn write(rendered: &Rendered, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let failed = |source| ReportError::Folder { path: folder.to_owned(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    let mut written = Vec::new();
    // Plots come first, so that a report never shows one that is not there.
    let plots = rendered.plots.as_deref();
    for (file, svg) in plots.unwrap_or_default() {
        write_whole(&folder.join(file), svg.as_bytes())?;
    }
    for (format, content) in &rendered.files {
        let path = folder.join(format.file);
        write_whole(&path, content)?;
        written.push(path);
    }
    // Where no file shows any, one that is there from an earlier report keeps its own.
    if let Some(plots) = plots {
        remove_stale_plots(folder, plots).map_err(failed)?;
        written.extend(plots.iter().map(|(file, _)| folder.join(file)));
    }
    Ok(written)
}

/// Removes plots that an earlier report drew; they are known by the mark in their first line.
fn remove_stale_plots(folder: &Path, current: &[(String, String)]) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_current = current.iter().any(|(file, _)| path.file_name().is_some_and(|name| name == file.as_str()));
        let is_svg = path.extension().is_some_and(|extension| extension == "svg");
        let is_stale = || plots::is_ours(&plain_file::text(&path).unwrap_or_default()) && !is_shown(&path);
        if is_svg && !is_current && is_stale() {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Whether a page of the user's own, next to the figure, shows it.
fn is_shown(plot: &Path) -> bool {
    /// A page is text that somebody reads.
    const MOST_BYTES: u64 = 1 << 20;
    let (Some(folder), Some(name)) = (plot.parent(), plot.file_name().and_then(|name| name.to_str())) else {
        return false;
    };
    let is_own = |path: &PathBuf| Format::all().all(|format| path.file_name().is_none_or(|name| name != format.file));
    let is_page = |path: &PathBuf| {
        let is_svg = path.extension().is_some_and(|extension| extension == "svg");
        !is_svg && is_own(path) && path.metadata().is_ok_and(|file| file.is_file() && file.len() <= MOST_BYTES)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter(is_page).any(|page| plain_file::text(&page).is_ok_and(|text| text.contains(name)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn rendered(formats: &[&str], plots: Option<&[&str]>) -> Rendered {
        let plot = |file: &&str| ((*file).to_owned(), format!("<svg {}/>", plots::MARK));
        let files = formats.iter().map(|name| (Format::named(name).unwrap(), b"x".to_vec())).collect();
        Rendered { files, plots: plots.map(|plots| plots.iter().map(plot).collect()) }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn stale_plots_go_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let all = ["md", "html", "json"];
        write(&rendered(&all, Some(&["a.svg", "b.svg"])), path).unwrap();
        fs::write(path.join("own.svg"), "<svg>not a plot of a report</svg>").unwrap();
        fs::write(path.join("page.txt"), "my own page shows c.svg").unwrap();
        fs::write(path.join("c.svg"), format!("<svg {}/>", plots::MARK)).unwrap();
        write(&rendered(&all, Some(&["a.svg"])), path).unwrap();
        assert_eq!(names(path), ["a.svg", "c.svg", "own.svg", "page.txt", "report.html", "report.md", "results.json"]);
        write(&rendered(&["csv"], None), path).unwrap();
        assert!(names(path).contains(&"a.svg".to_owned()), "report.md still shows it");
    }
}
