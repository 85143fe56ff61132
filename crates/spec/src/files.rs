//! Files of a specification: from a path, a folder or a glob to the files themselves, and what is wrong with one.
//!
//! Input: the spec's folder and a text. Output: paths in order, or a message with a hint. Deliberately absent: what is
//! inside a model; only pointers of Git LFS and git-annex are recognised, because they stand where a model should.

use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use globset::GlobBuilder;

use experiment::is_glob;
use files::below::{OutOfBoundsError, files_below};
use onnx::decoder::model_of_folder;
use reading::nearest::near_name;
use reading::plain_file;
use reading::stand_in;

/// How closely files are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// They must be there, with something in them.
    Contents,
    /// Their names are enough, as of a commit that is not checked out.
    Names,
}

impl Depth {
    /// As [`find`].
    pub(super) fn find(self, folder: &Path, text: &str) -> Result<Vec<PathBuf>, SpecFileError> {
        match find(folder, text) {
            Err(_) if self == Depth::Names && !is_glob(text) => Ok(vec![absolute(folder, Path::new(text))]),
            found => found,
        }
    }

    /// The one file that `text` stands for, looked into.
    pub(super) fn one(self, folder: &Path, text: &str) -> Result<PathBuf, SpecFileError> {
        match self.find(folder, text)?.as_slice() {
            [file] => self.inspect(file, text).map(|()| file.clone()),
            files => Err(problem(format!("`{text}` matches {} files", files.len()), "name one file".to_owned())),
        }
    }

    /// As [`existing`].
    pub(super) fn existing(self, folder: &Path, text: &str) -> Result<PathBuf, SpecFileError> {
        match self {
            Depth::Contents => existing(folder, text),
            Depth::Names => Ok(absolute(folder, Path::new(text))),
        }
    }

    /// As [`inspect`].
    pub(super) fn inspect(self, path: &Path, text: &str) -> Result<(), SpecFileError> {
        if self == Depth::Contents { inspect(path, text) } else { Ok(()) }
    }
}

/// What is wrong with a path: a message and advice.
pub(super) struct SpecFileError {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

fn problem(message: impl Into<String>, hint: impl Into<Option<String>>) -> SpecFileError {
    SpecFileError { message: message.into(), hint: hint.into() }
}

/// The model files that `text` stands for, in the order of their paths; never none.
pub(super) fn find(folder: &Path, text: &str) -> Result<Vec<PathBuf>, SpecFileError> {
    let path = absolute(folder, Path::new(text));
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            // The other models of such a folder are parts of this one, or come before it.
            if let Some(decoder) = model_of_folder(&path) {
                return Ok(vec![decoder]);
            }
            let files = walk(&path, None, |file| file.extension().is_some_and(|ending| ending == "onnx"))?;
            if files.is_empty() {
                return Err(problem(format!("there is no `.onnx` file in the folder `{text}`"), None));
            }
            Ok(files)
        }
        Ok(_) => Ok(vec![path]),
        Err(_) if is_glob(text) => glob(folder, text),
        Err(error) if error.kind() == io::ErrorKind::NotFound || error.kind() == io::ErrorKind::NotADirectory => {
            Err(missing(folder, text, &path))
        }
        Err(error) => Err(problem(format!("cannot read `{text}`: {error}"), None)),
    }
}

fn glob(folder: &Path, text: &str) -> Result<Vec<PathBuf>, SpecFileError> {
    // The part before the first component with a glob character is a plain folder; only what is below it is walked.
    let components: Vec<&str> = text.split('/').collect();
    let plain = components.iter().take_while(|component| !is_glob(component)).count();
    let start = absolute(folder, Path::new(&components[..plain].join("/")));
    let start = if plain == 1 && components[0].is_empty() { PathBuf::from("/") } else { start };
    let pattern = components[plain..].join("/");
    let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
    let matcher = match glob {
        Ok(glob) => glob.compile_matcher(),
        Err(error) => return Err(problem(format!("`{text}` is not a valid glob: {}", error.kind()), None)),
    };
    if !start.is_dir() {
        return Err(missing_folder(folder, Path::new(&components[..plain].join("/")), &start));
    }
    // Only `**` stands for any number of folders.
    let levels = (!pattern.contains("**")).then_some(components.len() - plain);
    let files = walk(&start, levels, |file| file.strip_prefix(&start).is_ok_and(|below| matcher.is_match(below)))?;
    if files.is_empty() {
        return Err(problem(format!("no file matches `{text}`"), Some(relative_to(folder))));
    }
    Ok(files)
}

fn walk(folder: &Path, levels: Option<usize>, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, SpecFileError> {
    files_below(folder, levels, wanted).map_err(|beyond| problem(beyond.to_string(), OutOfBoundsError::HINT.to_owned()))
}

/// The file or folder at `text`, absolute.
fn existing(folder: &Path, text: &str) -> Result<PathBuf, SpecFileError> {
    let path = absolute(folder, Path::new(text));
    if path.exists() { Ok(path) } else { Err(missing(folder, text, &path)) }
}

fn missing(folder: &Path, text: &str, path: &Path) -> SpecFileError {
    if let Some((target, remedy)) = stand_in::dangling(path) {
        return problem(format!("`{text}` is a link to `{target}`, where nothing is"), remedy);
    }
    let message = format!("there is no file `{text}`");
    let Some(parent) = path.parent() else { return problem(message, None) };
    // perfrun is often started in the folder above, or in one next to the spec's.
    if !Path::new(text).is_absolute() && folder.join("..").join(text).is_file() {
        return problem(message, format!("did you mean `../{text}`? {}", relative_to(folder)));
    }
    if !parent.is_dir() {
        return missing_folder(folder, Path::new(text).parent().unwrap_or(Path::new("")), parent);
    }
    let similar = near_name(path).map(|name| format!("did you mean `{}`?", with_name(Path::new(text), &name)));
    problem(message, similar.unwrap_or_else(|| relative_to(folder)))
}

fn missing_folder(folder: &Path, written: &Path, path: &Path) -> SpecFileError {
    let similar = near_name(path).map(|name| format!("did you mean `{}`?", with_name(written, &name)));
    problem(format!("there is no folder `{}`", written.display()), similar.unwrap_or_else(|| relative_to(folder)))
}

fn with_name(path: &Path, name: &str) -> String {
    path.with_file_name(name).display().to_string()
}

fn relative_to(folder: &Path) -> String {
    let shown = folder.display().to_string();
    let shown = if shown.is_empty() { "." } else { &shown };
    format!("paths are relative to the spec's folder, `{shown}`")
}

/// An absolute path without `.` and `..`, as far as these can be taken out by name alone.
pub fn absolute(folder: &Path, path: &Path) -> PathBuf {
    let joined = folder.join(path);
    let written = std::path::absolute(&joined).unwrap_or(joined);
    let mut tidy = PathBuf::new();
    for component in written.components() {
        match component {
            Component::ParentDir => drop(tidy.pop()),
            Component::CurDir => {}
            other => tidy.push(other),
        }
    }
    // Through a linked folder `..` is elsewhere; the file system then knows better than the text.
    if written.exists() && !tidy.exists() { written } else { tidy }
}

/// What is wrong with the content of a model file, without reading more than its first bytes.
fn inspect(path: &Path, text: &str) -> Result<(), SpecFileError> {
    let unreadable = |error: io::Error| problem(format!("cannot read `{text}`: {error}"), None);
    let mut start = Vec::new();
    let file = plain_file::open(path).map_err(unreadable)?;
    file.take(stand_in::HEAD as u64).read_to_end(&mut start).map_err(unreadable)?;
    if start.is_empty() {
        return Err(problem(format!("`{text}` is empty"), None));
    }
    if let Some((what, fetch)) = stand_in::pointer(&start) {
        return Err(problem(
            format!("`{text}` is {what}, not the file itself"),
            Some(format!("fetch the files with `{fetch}`")),
        ));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.onnx", "a.onnx", "deep/c.onnx", ".hidden/d.onnx", "notes.txt"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "model").unwrap();
        }
        folder
    }

    fn names(folder: &Path, text: &str) -> Vec<String> {
        let files = find(folder, text).unwrap_or_else(|problem| panic!("{}", problem.message));
        files.iter().map(|file| file.strip_prefix(folder).unwrap().display().to_string()).collect()
    }

    #[test]
    fn paths_folders_and_globs_give_files_in_order() {
        let folder = folder();
        let at = |text: &str| names(folder.path(), text);
        assert_eq!(at("a.onnx"), ["a.onnx"]);
        assert_eq!(at("./deep/../a.onnx"), ["a.onnx"]);
        assert_eq!(at("."), ["a.onnx", "b.onnx", "deep/c.onnx"]);
        assert_eq!(at("*.onnx"), ["a.onnx", "b.onnx"]);
        assert_eq!(at("**/*.onnx"), ["a.onnx", "b.onnx", "deep/c.onnx"]);
        assert_eq!(at("deep/?.onnx"), ["deep/c.onnx"]);
        assert_eq!(at("{a,b}.onnx"), ["a.onnx", "b.onnx"]);
        assert_eq!(at(&folder.path().join("*.onnx").display().to_string()), ["a.onnx", "b.onnx"]);
    }

    #[test]
    fn missing_files_name_the_nearest() {
        let folder = folder();
        let error = |text: &str| find(folder.path(), text).unwrap_err();
        assert_eq!(error("aa.onnx").hint.as_deref(), Some("did you mean `a.onnx`?"));
        assert_eq!(error("dep/c.onnx").message, "there is no folder `dep`");
        assert_eq!(error("dep/c.onnx").hint.as_deref(), Some("did you mean `deep`?"));
        assert_eq!(error("dep/*.onnx").message, "there is no folder `dep`");
        assert_eq!(error("*.ort").message, "no file matches `*.ort`");
        assert_eq!(error("notes.txt/x").message, "there is no folder `notes.txt`");
        assert_eq!(error("[.onnx").message, "`[.onnx` is not a valid glob: unclosed character class; missing ']'");
    }

    #[test]
    fn pointers_and_empty_files_are_no_models() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.onnx");
        std::fs::write(&path, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n").unwrap();
        assert!(inspect(&path, "m.onnx").unwrap_err().message.contains("Git LFS pointer"));
        std::fs::write(&path, "").unwrap();
        assert_eq!(inspect(&path, "m.onnx").unwrap_err().message, "`m.onnx` is empty");
    }
}
