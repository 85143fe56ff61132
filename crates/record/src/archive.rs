//! One file for a record, for depositing and for colleagues: a tar archive in Zstandard. The same content gives the same
//! bytes. Deliberately absent: what goes in, apart from which files belong to a record.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Component, Path, PathBuf};

use walkdir::WalkDir;

use super::profiled::TRACES;
use super::{StoreError, write_with};
use base::printable::printable;
use reading::plain_file;

/// What stands for a file in an archive.
pub enum Content {
    File(PathBuf),
    Bytes(Vec<u8>),
}

/// The tables of a complete record.
const TABLES: [&str; 6] = ["cells", "runs", "metrics", "samples", "series", "profile"];

/// An archive may come from anywhere, and a small one can unpack to any size.
const MOST_BYTES: u64 = 16 << 30;
const MOST_FILES: usize = 1_000_000;

/// As the operating system has it for paths.
const MOST_BYTES_OF_NAME: u64 = 4096;

/// Whether a file of this path below a record's folder is part of the record. What names folders of this machine, logs,
/// and reports that were written into the folder are not.
pub fn is_of_record(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match folder {
        "" => {
            let facts = ["manifest", "sessions", "budget", "complete"];
            TABLES.iter().any(|known| name == format!("{known}.parquet"))
                || facts.iter().any(|known| name == format!("{known}.json"))
        }
        // macOS adds `._x.json` next to `x.json` on some file systems.
        "passes" | "journal" => extension == "json" && !name.starts_with('.'),
        TRACES => name.ends_with(".json.zst") && !name.starts_with('.'),
        _ => false,
    }
}

/// The paths of a record's own files below its folder, sorted.
pub fn files_of_record(folder: &Path) -> Vec<String> {
    let entries = WalkDir::new(folder).max_depth(2).sort_by_file_name().into_iter().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_file());
    let below = files.filter_map(|entry| Some(entry.path().strip_prefix(folder).ok()?.to_str()?.to_owned()));
    below.filter(|path| is_of_record(path)).collect()
}

/// Writes an archive of these files, by their paths in it.
///
/// # Errors
///
/// A file that cannot be read, and an archive that cannot be written.
pub fn write(path: &Path, content: &[(String, Content)]) -> Result<(), StoreError> {
    write_with(path, |file| {
        let mut compressed = zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?;
        compressed.include_checksum(true)?;
        let mut archive = tar::Builder::new(compressed);
        for (name, content) in content {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            header.set_entry_type(tar::EntryType::Regular);
            match content {
                Content::File(path) => {
                    let named = |error: io::Error| io::Error::other(format!("{}: {error}", path.display()));
                    let file = plain_file::open(path).map_err(named)?;
                    header.set_size(file.metadata().map_err(named)?.len());
                    archive.append_data(&mut header, name, file).map_err(|error| match error.kind() {
                        // Of the archive, not of what is read.
                        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => error,
                        _ => named(error),
                    })?;
                }
                Content::Bytes(bytes) => {
                    header.set_size(bytes.len() as u64);
                    archive.append_data(&mut header, name, bytes.as_slice())?;
                }
            }
        }
        archive.into_inner()?.finish()?;
        Ok(())
    })
}

/// Unpacks an archive into an empty folder: plain files below it, and nothing else.
///
/// # Errors
///
/// What is no archive, or holds anything else.
pub fn unpack(path: &Path, folder: &Path) -> Result<(), StoreError> {
    let damaged = |reason: String| StoreError::Damaged { path: path.to_owned(), reason };
    let file = plain_file::open(path).map_err(|source| StoreError::Read { path: path.to_owned(), source })?;
    let unreadable = |error: io::Error| damaged(format!("it is not an archive made by `perfrun export` ({error})"));
    let plain = zstd::Decoder::new(file).map_err(unreadable)?;
    // One byte more than there may be, so that what is cut is seen.
    let mut archive = tar::Archive::new(plain.take(MOST_BYTES + 1));
    let (mut files, mut bytes) = (0, 0_u64);
    let mut long_name = None;
    // As they stand, since whatever names the next entry would be read whole.
    for entry in archive.entries().map_err(unreadable)?.raw(true) {
        let mut entry = entry.map_err(unreadable)?;
        if entry.header().entry_type().is_gnu_longname() {
            let mut name = Vec::new();
            (&mut entry).take(MOST_BYTES_OF_NAME + 1).read_to_end(&mut name).map_err(unreadable)?;
            if name.len() as u64 > MOST_BYTES_OF_NAME {
                return Err(damaged(format!("it has a name of more than {MOST_BYTES_OF_NAME} bytes")));
            }
            long_name = Some(PathBuf::from(String::from_utf8_lossy(&name).trim_end_matches('\0')));
            continue;
        }
        let name = match long_name.take() {
            Some(name) => name,
            None => entry.path().map_err(unreadable)?.into_owned(),
        };
        let is_shown_as_it_is = name.to_str().is_some_and(|name| !name.contains(char::is_control));
        let is_plain = is_shown_as_it_is && name.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || !entry.header().entry_type().is_file() {
            let name = printable(&name.to_string_lossy()).into_owned();
            return Err(damaged(format!("its entry `{name}` is not a regular file inside the archive")));
        }
        files += 1;
        bytes = bytes.saturating_add(entry.header().size().map_err(unreadable)?);
        if files > MOST_FILES || bytes > MOST_BYTES {
            return Err(damaged(format!("it holds more than {MOST_FILES} files or {} GiB", MOST_BYTES >> 30)));
        }
        let target = folder.join(&name);
        let failed = |source: io::Error| match source.kind() {
            // The folder was empty.
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
                damaged(format!("it has `{}` twice", name.display()))
            }
            _ => StoreError::Write { path: target.clone(), source },
        };
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut created = File::create_new(&target).map_err(failed)?;
        let mut part = vec![0; 1 << 16];
        loop {
            // What cannot be read is the archive's fault, and what cannot be written the disk's.
            match entry.read(&mut part).map_err(unreadable)? {
                0 => break,
                read => created.write_all(&part[..read]).map_err(failed)?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn content(files: &[(&str, &str)]) -> Vec<(String, Content)> {
        files.iter().map(|(name, text)| ((*name).to_owned(), Content::Bytes(text.as_bytes().to_vec()))).collect()
    }

    #[test]
    fn what_is_packed_is_unpacked_and_packs_to_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["a", "b"].map(|name| folder.path().join(name));
        let long = "x/".repeat(80) + "z.json";
        let files = [("r/record/manifest.json", "{}"), (long.as_str(), "deep")];
        write(&first, &content(&files)).unwrap();
        let out = folder.path().join("out");
        unpack(&first, &out).unwrap();
        assert_eq!(std::fs::read_to_string(out.join(&long)).unwrap(), "deep");
        let again = files.map(|(name, _)| (name.to_owned(), Content::File(out.join(name))));
        write(&second, &again).unwrap();
        assert_eq!(std::fs::read(first).unwrap(), std::fs::read(second).unwrap());
    }

    /// Archives as somebody would make them who means harm.
    #[test]
    fn only_plain_files_below_the_folder_are_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad");
        for (name, kind) in [
            ("../out", tar::EntryType::Regular),
            ("/etc/x", tar::EntryType::Regular),
            ("link", tar::EntryType::Symlink),
            ("link", tar::EntryType::Link),
            ("a\u{1b}[2Jb", tar::EntryType::Regular),
            ("pipe", tar::EntryType::Fifo),
            ("folder", tar::EntryType::Directory),
        ] {
            let mut archive = tar::Builder::new(zstd::Encoder::new(File::create(&path).unwrap(), 1).unwrap());
            let mut header = tar::Header::new_gnu();
            // The library's own setter would refuse such names.
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.as_gnu_mut().unwrap().linkname[..4].copy_from_slice(b"/etc");
            header.set_entry_type(kind);
            header.set_size(0);
            header.set_cksum();
            archive.append(&header, io::empty()).unwrap();
            archive.into_inner().unwrap().finish().unwrap();
            let out = tempfile::tempdir().unwrap();
            let error = unpack(&path, out.path()).unwrap_err().to_string();
            assert!(error.contains("is not a regular file"), "{name}: {error}");
        }
        let long = "x/".repeat(3000) + "z.json";
        write(&path, &content(&[(long.as_str(), "deep")])).unwrap();
        let out = tempfile::tempdir().unwrap();
        let error = unpack(&path, out.path()).unwrap_err().to_string();
        assert!(error.contains("a name of more than 4096 bytes"), "{error}");
        for twice in [["r/a.json", "r/a.json"], ["r/a", "r/a/b"], ["r/a/b", "r/a"]] {
            write(&path, &content(&twice.map(|name| (name, "")))).unwrap();
            let out = tempfile::tempdir().unwrap();
            let error = unpack(&path, out.path()).unwrap_err().to_string();
            assert!(error.contains("twice") && error.contains("bad is damaged"), "{error}");
        }
        // A part of one is the archive's fault, not the disk's.
        write(&path, &content(&[("r/a.json", "x".repeat(1 << 20).as_str())])).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
        let error = unpack(&path, out.path()).unwrap_err().to_string();
        assert!(error.contains("not an archive made by `perfrun export`"), "{error}");
        std::fs::write(&path, "no archive").unwrap();
        let error = unpack(&path, folder.path()).unwrap_err().to_string();
        assert!(error.contains("not an archive made by `perfrun export`"), "{error}");
    }

    #[test]
    fn a_record_is_its_own_files_alone() {
        for path in [
            "manifest.json",
            "runs.parquet",
            "passes/convert.json",
            "journal/a-main-0.json",
            "complete.json",
            "series.parquet",
        ] {
            assert!(is_of_record(path), "{path}");
        }
        for other in [
            "local.json",
            "results.parquet",
            "logs/a.txt",
            "report.md",
            "results.json",
            "journal/x/y.json",
            "../manifest.json",
            "passes/._convert.json",
        ] {
            assert!(!is_of_record(other), "{other}");
        }
    }
}
