//! What texts refer to exists: sections of docs/method, files, headings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use walkdir::WalkDir;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Files below these folders with one of these endings.
fn files(folders: &[&str], endings: &[&str]) -> Vec<PathBuf> {
    let below = |folder: &&str| WalkDir::new(root().join(folder)).sort_by_file_name().into_iter();
    let paths = folders.iter().flat_map(below).map(|entry| entry.unwrap().into_path());
    let has_ending = |path: &PathBuf| {
        path.extension().is_some_and(|extension| endings.iter().any(|ending| extension == *ending)) && path.is_file()
    };
    paths.filter(has_ending).collect()
}

/// Markdown at the top of the repository and in docs.
fn documents() -> Vec<PathBuf> {
    let top = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = top.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    found.sort();
    found.extend(files(&["docs"], &["md"]));
    found
}

/// Every text in which somebody may cite something.
fn texts() -> Vec<(PathBuf, String)> {
    let code = files(
        &["src", "crates", "tests", "benches", "docs", "experiments"],
        &["rs", "py", "yaml", "j2", "html", "json"],
    );
    code.into_iter().chain(documents()).map(|path| (path.clone(), read(&path))).collect()
}

/// The lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

fn headings(text: &str) -> impl Iterator<Item = &str> {
    let is_heading = |line: &&str| line.starts_with('#') && line.trim_start_matches('#').starts_with(' ');
    prose(text).filter(is_heading).map(|line| line.trim_start_matches('#').trim())
}

/// `4.3` at the beginning of a text, and what follows.
fn section_number(text: &str) -> Option<(&str, &str)> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let whole = digits(text);
    let part = text[whole..].strip_prefix('.').map_or(0, digits);
    let length = if part > 0 { whole + 1 + part } else { whole };
    (whole > 0).then(|| text.split_at(length))
}

/// The sections of docs/method; each has its number once.
fn sections() -> BTreeSet<String> {
    let mut sections = BTreeSet::new();
    for path in files(&["docs/method"], &["md"]) {
        for heading in headings(&read(&path)) {
            if let Some((number, _)) = section_number(heading) {
                assert!(sections.insert(number.to_owned()), "{} has {number} again", path.display());
            }
        }
    }
    sections
}

/// The words of a text in a row: a citation may stand at the end of a line of comment.
fn unwrapped(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches(['/', '!']).trim());
    lines.collect::<Vec<_>>().join(" ")
}

/// The sections that follow the word `method`: `method 4.3`, `method 6.1, 6.3`, `method 5, 8.1 and 14`.
fn cited(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in text.match_indices("ethod ") {
        let is_word = text[..at].ends_with(['m', 'M']) && !text[..at - 1].ends_with(|c: char| c.is_alphanumeric());
        let mut rest = &text[at + word.len()..];
        while let Some((number, after)) = section_number(rest).filter(|_| is_word) {
            found.push(number.to_owned());
            let next = [", ", " and ", " to "].iter().find_map(|separator| after.strip_prefix(separator));
            // `method 6.1, 3 % of` has one section.
            let is_section = |text: &&str| {
                section_number(text)
                    .is_some_and(|(number, after)| number.contains('.') || after.starts_with([')', ',', ';', ':', '.']))
            };
            rest = next.filter(is_section).unwrap_or_default();
        }
    }
    found
}

#[test]
fn every_section_of_the_method_that_is_cited_exists() {
    let sections = sections();
    assert!(sections.len() > 50);
    let mut citations = 0;
    for (path, text) in texts() {
        for number in cited(&unwrapped(&text)) {
            assert!(sections.contains(&number), "{} cites method {number}, which docs/method lacks", path.display());
            citations += 1;
        }
    }
    assert!(citations > 100, "{citations}");
}

#[test]
fn citations_are_found_in_their_forms() {
    assert_eq!(
        cited("the rule (method 5, 8.1 and 14). Method 6.3 to 6.6; method 2"),
        ["5", "8.1", "14", "6.3", "6.6", "2"]
    );
    assert_eq!(cited("of method 6.1, 3 % of it; a method of 4.2; methods 3; mymethod 7"), ["6.1"]);
    assert_eq!(cited(&unwrapped("//! as in (method\n//! 4.4), and\n")), ["4.4"]);
}

#[test]
fn nothing_outside_of_the_repository_is_cited() {
    // In two parts, so that this file does not cite them.
    let names =
        [("MEASUREMENT", ""), ("DESIGN", ".md"), ("DESIGN", " "), ("UX", ".md"), ("STYLE", ".md"), ("PEERS", "")];
    for (path, text) in texts().into_iter().filter(|(path, _)| !path.ends_with("tidy/references.rs")) {
        let text = unwrapped(&text);
        for (name, ending) in names {
            let whole = format!("{name}{ending}");
            for (at, _) in text.match_indices(&whole) {
                let is_word = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                // A citation by a space has a number.
                let is_cited = ending != " " || text[at + whole.len()..].starts_with(|c: char| c.is_ascii_digit());
                assert!(!(is_word && is_cited), "{} cites {name}", path.display());
            }
        }
    }
}

/// The addresses of links in brackets, outside of code.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        // Every second part stands between backquotes.
        let outside: String = line.split('`').step_by(2).collect();
        let targets = outside.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()));
        found.extend(targets);
    }
    found
}

/// The anchors of a page, as GitHub makes them from headings, and those that are written out.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for heading in headings(text) {
        let kept = heading.to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let before = times.entry(slug.clone()).or_insert(0);
        anchors.insert(if *before == 0 { slug } else { format!("{slug}-{before}") });
        *before += 1;
    }
    let written = text.split("id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    anchors.extend(written.map(|(name, _)| name.to_owned()));
    anchors
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[test]
fn every_link_leads_somewhere() {
    let mut checked = 0;
    for path in documents() {
        let text = read(&path);
        for link in links(&text).into_iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            let (file, anchor) = link.split_once('#').map_or((link.as_str(), None), |(file, at)| (file, Some(at)));
            let target = if file.is_empty() { path.clone() } else { plain(&path.parent().unwrap().join(file)) };
            assert!(target.exists(), "{}: {link} is not there", path.display());
            if let Some(anchor) = anchor.filter(|_| target.extension().is_some_and(|ending| ending == "md")) {
                assert!(anchors(&read(&target)).contains(anchor), "{}: {link} has no such heading", path.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn every_page_of_the_method_is_in_its_index() {
    let index = read(&root().join("docs/method/README.md"));
    for path in files(&["docs/method"], &["md"]) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name == "README.md" || index.contains(&format!("]({name})")), "{name}");
    }
}
