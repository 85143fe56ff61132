//! What a name is: it becomes part of file names, addresses and tables.

use std::collections::{BTreeSet, HashMap};

/// The longest name, in bytes; all of them are ASCII.
pub const LONGEST: usize = 64;

fn is_inner(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-')
}

/// True for what the schema's pattern of names accepts.
pub fn is_name(text: &str) -> bool {
    text.len() <= LONGEST && text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.chars().all(is_inner)
}

/// True for the names of what stands on a plan's axes: a device's has its index and, merged, its machine behind it
/// (`cuda:1@server`).
pub fn is_entry_name(text: &str) -> bool {
    text.split([':', '@']).all(is_name)
}

/// A name that looks like `text`, empty where nothing of it can stay: `ma übung (1)` gives `ma-ubung-1`.
pub fn fitting_name(text: &str) -> String {
    if is_name(text) {
        return text.to_owned();
    }
    let text = deunicode::deunicode(text);
    let mut name = String::with_capacity(text.len());
    let mut is_after_gap = false;
    for character in text.chars() {
        let is_gap = !is_inner(character);
        // One dash for a gap of any length, and none next to a dash that is there.
        if (is_gap || character == '-') && (is_after_gap || (is_gap && name.ends_with('-'))) {
            is_after_gap |= is_gap;
            continue;
        }
        if is_after_gap && matches!(character, '.' | '_') {
            name.pop();
        }
        name.push(if is_gap { '-' } else { character });
        is_after_gap = is_gap;
    }
    let end = |character: char| !character.is_ascii_alphanumeric();
    let name = name.trim_matches(end);
    name.get(..LONGEST).unwrap_or(name).trim_end_matches(end).to_owned()
}

/// The same, or `otherwise` where nothing of the text can stay.
pub fn fitting_or(text: &str, otherwise: &str) -> String {
    match fitting_name(text) {
        name if name.is_empty() => otherwise.to_owned(),
        name => name,
    }
}

/// What a file may be named by.
#[derive(Clone, Debug, Default)]
pub struct FileName {
    /// Its name without the ending.
    pub stem: String,
    /// The name of its folder.
    pub folder: Option<String>,
    /// What says more than the stem, if it is of this file alone.
    pub better: Option<String>,
}

/// A name for each file: the better one, unless several have the same; else the stem; where several have the same, with the
/// folder before it; where those are the same too, or `taken`, with a number behind it.
pub fn names_of_files(files: &[FileName], taken: &BTreeSet<String>) -> Vec<String> {
    let better = |file: &FileName| file.better.as_deref().map(fitting_name).filter(|name| !name.is_empty());
    let betters: Vec<Option<String>> = files.iter().map(better).collect();
    let is_only = |name: &String| betters.iter().flatten().filter(|other| *other == name).count() == 1;
    let stem = |(file, better): (&FileName, &Option<String>)| match better.clone().filter(is_only) {
        Some(better) => better,
        None => fitting_or(&file.stem, "model"),
    };
    let stems: Vec<String> = files.iter().zip(&betters).map(stem).collect();
    let mut times: HashMap<&str, usize> = HashMap::new();
    stems.iter().for_each(|stem| *times.entry(stem).or_default() += 1);
    let mut taken = taken.clone();
    let mut names = Vec::with_capacity(files.len());
    for (FileName { folder, .. }, stem) in files.iter().zip(&stems) {
        let name = match folder {
            Some(folder) if times[stem.as_str()] > 1 => fitting_or(&format!("{folder}-{stem}"), "model"),
            _ => stem.clone(),
        };
        let name = first_free(&name, &taken);
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

/// The name, or with the first number behind it that makes it another.
fn first_free(name: &str, taken: &BTreeSet<String>) -> String {
    if !taken.contains(name) {
        return name.to_owned();
    }
    // Room for the number; names are ASCII.
    let short = &name[..name.len().min(LONGEST - 8)];
    let numbered = (2..=taken.len() + 2).map(|number| format!("{short}-{number}"));
    let mut free = numbered.filter(|name| !taken.contains(name));
    free.next().expect("more numbers than names are tried")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_what_the_pattern_says() {
        assert!(is_name("a") && is_name("9.x_y-Z") && is_name(&"a".repeat(64)));
        assert!(!is_name("") && !is_name("-a") && !is_name("a b") && !is_name("é") && !is_name(&"a".repeat(65)));
    }

    #[test]
    fn what_is_no_name_becomes_one() {
        for (text, name) in [
            ("my net (1)", "my-net-1"),
            ("a - b", "a-b"),
            ("a -- b", "a-b"),
            ("a--b c", "a--b-c"),
            ("_.x", "x"),
            ("net_", "net_"),
            ("äöü", "aou"),
            ("Модель 网", "Model-Wang"),
            ("(!)", ""),
            ("resnet50 (fp16).v2", "resnet50-fp16.v2"),
        ] {
            assert_eq!(fitting_name(text), name, "{text}");
        }
        assert_eq!(fitting_name(&format!("{} b", "a".repeat(63))), "a".repeat(63));
    }

    #[test]
    fn a_text_without_a_name_has_another() {
        assert_eq!(
            (fitting_or("my net (1)", "models"), fitting_or("(!)", "models")),
            ("my-net-1".into(), "models".into())
        );
    }

    #[test]
    fn equal_names_are_numbered() {
        let taken = BTreeSet::from(["net".to_owned(), "net-2".to_owned()]);
        assert_eq!(first_free("net", &taken), "net-3");
        assert_eq!(first_free("other", &taken), "other");
    }

    #[test]
    fn files_of_one_name_are_told_apart_by_their_folder() {
        let files = [("net", "a"), ("net", "b c"), ("net", "a"), ("größe", "a"), ("", "a")];
        let files = files.map(|(stem, folder)| named(stem, folder, None));
        let taken = BTreeSet::from(["grosse".to_owned()]);
        assert_eq!(names_of_files(&files, &taken), ["a-net", "b-c-net", "a-net-2", "grosse-2", "model"]);
    }

    fn named(stem: &str, folder: &str, better: Option<&str>) -> FileName {
        FileName { stem: stem.to_owned(), folder: Some(folder.to_owned()), better: better.map(str::to_owned) }
    }

    #[test]
    fn a_better_name_is_of_one_file_alone() {
        let (of_llama, of_t5) = (Some("llama 3"), Some("t5"));
        let files = [
            named("model", "onnx", of_llama),
            named("decoder_model", "t5", of_t5),
            named("decoder_model_merged", "t5", of_t5),
            named("model", "gpt2", Some("gpt2")),
            named("model", "other", None),
        ];
        let names = names_of_files(&files, &BTreeSet::new());
        assert_eq!(names, ["llama-3", "decoder_model", "decoder_model_merged", "gpt2", "model"]);
    }

    proptest! {
        #[test]
        fn every_fitting_name_is_a_name_or_empty(text in "\\PC{0,80}") {
            let name = fitting_name(&text);
            prop_assert!(name.is_empty() || is_name(&name), "{name}");
        }
    }
}
