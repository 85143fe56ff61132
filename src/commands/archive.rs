//! `perfrun export` and `import`: a record as one file.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::run;
use crate::ui::Ui;
use crate::ui::cli::{ExportArgs, ImportArgs};
use crate::ui::error::{Error, ExitCode};
use base::name::is_name;
use experiment::Experiment;
use files::digest;
use files::scratch::Scratch;
use judge::compare::judge;
use judge::results;
use judge::summary::summarize;
use reading::plain_file;
use record::archive::{self, Content};
use record::hold::Hold;
use record::{LocalPaths, Manifest, ProjectRoot, Record};
use report::{self, Format};

/// The folder of a record in an archive, and that of the files that it was made from.
const RECORD: &str = "record";
const FILES: &str = "files";

/// Packs a record with its report, and with what it was made from where that is asked for.
pub(super) fn export(arguments: &ExportArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let project = ProjectRoot::here()?;
    let record = super::records::open(&project, &arguments.record)?;
    Hold::check_free(&record.folder)?;
    let manifest = &record.manifest;
    let top = &manifest.record;
    let mut content: Vec<(String, Content)> = archive::files_of_record(&record.folder)
        .into_iter()
        .map(|name| (format!("{top}/{RECORD}/{name}"), Content::File(record.folder.join(&name))))
        .collect();
    content
        .extend(report_of(&record)?.into_iter().map(|(name, bytes)| (format!("{top}/{name}"), Content::Bytes(bytes))));
    let spec = format!("{top}/{FILES}/{}", manifest.spec.path);
    content.push((spec, Content::Bytes(manifest.spec.text.clone().into_bytes())));
    if arguments.models {
        let files = models(&record, &project, ui)?;
        content.extend(files.into_iter().map(|(name, path)| (format!("{top}/{FILES}/{name}"), Content::File(path))));
    }
    let name = || PathBuf::from(format!("{}-{top}.tar.zst", manifest.experiment.name));
    let target = arguments.output.clone().unwrap_or_else(name);
    archive::write(&target, &content)?;
    super::print(ui, &ui.labelled_text("wrote", &target.display().to_string()))
}

/// What people read, so that nobody needs perfrun to look at a deposit.
fn report_of(record: &Record) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let manifest = &record.manifest;
    let summary = summarize(manifest, &record.runs)?;
    let judged = judge(manifest, &summary);
    let results = results::results(manifest, &summary, &judged);
    let formats: Vec<Format> = ["html", "json"].into_iter().filter_map(Format::named).collect();
    let rendered = report::compose(&results, Some(&record.runs)).render(&formats)?;
    Ok(rendered.files.into_iter().map(|(format, bytes)| (format.file, bytes)).collect())
}

/// The files below the root that a record was made from, by their paths, all of them as they were then.
fn models(record: &Record, project: &ProjectRoot, ui: &Ui) -> Result<Vec<(String, PathBuf)>, Error> {
    let mut experiment = record.manifest.experiment.clone();
    match LocalPaths::read(&record.folder) {
        Ok(local) => local.restore(&mut experiment),
        // A record that was imported or merged names its files from the root.
        Err(_) => from_root(&mut experiment, &project.root),
    }
    if let Some(changed) = run::changed_file(&record.manifest, &experiment)? {
        let help = "check out the commit that was measured, or leave out --models";
        return Err(Error::refused(format!("{changed} has changed since it was measured"), help));
    }
    let mut found = Vec::new();
    for path in run::files_of(&experiment) {
        match path.strip_prefix(&project.root) {
            Ok(below) => found.push((below.to_string_lossy().into_owned(), path)),
            Err(_) => ui.note(&format!("{} is outside {} and was left out", path.display(), project.root.display())),
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Puts relative paths below a root.
fn from_root(experiment: &mut Experiment, root: &Path) {
    for model in &mut experiment.models {
        model.path.iter_mut().chain(model.files.values_mut()).for_each(|path| *path = root.join(&*path));
    }
    experiment.input_files_mut().for_each(|file| file.path = root.join(&file.path));
    for dataset in experiment.datasets_mut() {
        dataset.file = root.join(&dataset.file);
        dataset.labels_file.iter_mut().for_each(|path| *path = root.join(&*path));
    }
}

/// Takes a record from an archive into the local store, and where that is asked for its files to where they were.
pub(super) fn import(arguments: &ImportArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let project = ProjectRoot::here()?;
    project.create_store()?;
    let store = project.records("");
    std::fs::create_dir_all(&store).map_err(|source| Error::write(&store, source))?;
    let unpacked = Scratch::within(&store).map_err(|source| Error::write(&store, source))?;
    archive::unpack(&arguments.archive, unpacked.path()).map_err(|error| error.below(unpacked.path(), &store))?;
    let no_record = |why: &str| {
        Error::refused(
            format!("{} is not an exported record: {why}", arguments.archive.display()),
            "use an archive made by `perfrun export`",
        )
    };
    let tops: Vec<PathBuf> =
        std::fs::read_dir(unpacked.path()).into_iter().flatten().flatten().map(|it| it.path()).collect();
    let [top] = &tops[..] else { return Err(no_record("it must have exactly one top-level folder")) };
    let folder = top.join(RECORD);
    let record = Record::open(&folder).map_err(|error| error.below(unpacked.path(), &arguments.archive))?;
    let (experiment, name) = (&record.manifest.experiment.name, &record.manifest.record);
    if !is_name(experiment) || !is_name(name) {
        return Err(no_record("its experiment or record name is invalid"));
    }
    let target = project.records(experiment).join(name);
    let is_here = target.exists();
    let is_same =
        || digest::of_file(&target.join(Manifest::FILE)).ok() == digest::of_file(&folder.join(Manifest::FILE)).ok();
    if is_here && !(arguments.files && is_same()) {
        return Err(Error::refused(format!("{} already exists", project.relative(&target)), "remove it first"));
    }
    let files = if arguments.files { new_files(&top.join(FILES), &project, &record.manifest)? } else { Vec::new() };
    if !is_here {
        remove_foreign_files(&folder, record.manifest.findings.complete)?;
        let parent = project.records(experiment);
        let moved = std::fs::create_dir_all(&parent).and_then(|()| std::fs::rename(&folder, &target));
        moved.map_err(|source| Error::write(&target, source))?;
    }
    for (from, to) in &files {
        let parent = to.parent().unwrap_or(&project.root);
        let copied = std::fs::create_dir_all(parent).and_then(|()| std::fs::copy(from, to));
        copied.map_err(|source| Error::write(to, source))?;
    }
    let record = (!is_here).then_some(&target);
    let written = record.into_iter().chain(files.iter().map(|(_, to)| to));
    super::print(ui, &ui.labelled_lines("wrote", written.map(|path| project.relative(path))))
}

/// The files of an archive that are not here yet, and where they go.
///
/// # Errors
///
/// One that is here and another: nothing is replaced.
fn new_files(folder: &Path, project: &ProjectRoot, manifest: &Manifest) -> Result<Vec<(PathBuf, PathBuf)>, Error> {
    check_files(folder, manifest)?;
    let mut files = Vec::new();
    let named = named_files(manifest);
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_map(Result::ok) {
        let Some(below) = entry.path().strip_prefix(folder).ok().filter(|_| entry.file_type().is_file()) else {
            continue;
        };
        if !named.contains(below) {
            let message = format!("{} does not belong to the record", below.display());
            return Err(Error::refused(message, "import without --files, and inspect the archive manually"));
        }
        let target = project.root.join(below);
        // A link that leads nowhere is there too.
        if target.symlink_metadata().is_err() {
            files.push((entry.path().to_owned(), target));
        } else if digest::of_file(&target).ok() != digest::of_file(entry.path()).ok() {
            let message = format!("{} already exists with different content", below.display());
            return Err(Error::refused(message, "move it away, import in another folder, or leave out --files"));
        }
    }
    Ok(files)
}

/// Every file that an archive has is the one that its record was made from.
fn check_files(folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    let refused = |path: &str| {
        let message = format!("{path} in the archive is not the file that its record was made from");
        Error::refused(message, "import without --files, and ask whoever made the archive")
    };
    let spec = folder.join(&manifest.spec.path);
    if spec.exists() && plain_file::text(&spec).ok().as_deref() != Some(&manifest.spec.text) {
        return Err(refused(&manifest.spec.path));
    }
    let mut experiment = manifest.experiment.clone();
    from_root(&mut experiment, folder);
    run::replaced_file(manifest, &experiment)?.map_or(Ok(()), |path| Err(refused(&path)))
}

/// The specification, models, the user's own files for variants, and data, as the record names them: an archive may come from
/// anywhere, and puts nothing else into the root.
fn named_files(manifest: &Manifest) -> BTreeSet<PathBuf> {
    let models = manifest.models.iter().flatten();
    let mut named: BTreeSet<PathBuf> =
        models.flat_map(|file| file.parts.keys().chain([&file.path])).map(PathBuf::from).collect();
    let spec = Path::new(&manifest.spec.path);
    let is_yaml = spec.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    named.extend(is_yaml.then(|| spec.to_owned()));
    named.extend(run::files_of(&manifest.experiment));
    named.retain(|path| {
        let is_plain =
            |part: Component<'_>| matches!(part, Component::Normal(name) if !name.to_string_lossy().starts_with('.'));
        path.components().all(is_plain)
    });
    named
}

/// Removes files of an archive that do not belong to the record; a complete one has no journal.
fn remove_foreign_files(folder: &Path, is_complete: bool) -> Result<(), Error> {
    for entry in walkdir::WalkDir::new(folder).into_iter().filter_map(Result::ok).filter(|it| it.file_type().is_file())
    {
        let below = entry.path().strip_prefix(folder).ok().and_then(Path::to_str);
        let is_of_record =
            |below: &str| archive::is_of_record(below) && !(is_complete && below.starts_with("journal/"));
        if !below.is_some_and(is_of_record) {
            std::fs::remove_file(entry.path()).map_err(|source| Error::remove(entry.path(), source))?;
        }
    }
    Ok(())
}
