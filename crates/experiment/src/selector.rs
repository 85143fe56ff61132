//! Selecting cells by name: what `exclude`, `include` and `--only` share.
//!
//! Input: a map from an axis or a dimension to names and globs, or its form on the command line. Output: a matcher, and
//! errors for what an experiment does not know. Deliberately absent: what is done with the cells.

use std::collections::{BTreeMap, BTreeSet};

use globset::{Glob, GlobMatcher};

use super::{Axis, AxisMap, Entry, OnAxis, Selector};
use reading::nearest::suggestion;

/// Why a selector selects nothing sensible. All are the user's to mend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum SelectorError {
    #[error("`{part}` in a selector is not `key=name`")]
    #[diagnostic(help("write for example `model=mlp|cnn,variant=fp32,batch=1`"))]
    Malformed { part: String },
    #[error("`{key}` is listed twice in a selector")]
    #[diagnostic(help("give several names to one key: `{key}=a|b`"))]
    Twice { key: String },
    #[error("unknown key `{key}` in a selector")]
    UnknownKey {
        key: String,
        #[help]
        hint: Option<String>,
    },
    #[error("no {key} is named `{name}`")]
    UnknownName {
        key: String,
        name: String,
        #[help]
        hint: Option<String>,
    },
    #[error("`{pattern}` is not a valid glob: {reason}")]
    BadGlob { key: String, pattern: String, reason: String },
}

impl SelectorError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            SelectorError::UnknownKey { hint, .. } | SelectorError::UnknownName { hint, .. } => hint.as_deref(),
            _ => None,
        }
    }

    /// The key and the pattern that it is about.
    pub fn subject(&self) -> (&str, Option<&str>) {
        match self {
            SelectorError::Malformed { part } => (part, None),
            SelectorError::Twice { key } | SelectorError::UnknownKey { key, .. } => (key, None),
            SelectorError::UnknownName { key, name, .. } => (key, Some(name)),
            SelectorError::BadGlob { key, pattern, .. } => (key, Some(pattern)),
        }
    }
}

/// Reads the form of the command line: `model=a|b,variant=fp32,batch=1`.
///
/// A comma inside braces belongs to a glob. The names are not checked; see [`Selector::check`].
///
/// # Errors
///
/// [`SelectorError::Malformed`] and [`SelectorError::Twice`].
pub fn parse_selector(text: &str) -> Result<Selector, SelectorError> {
    let mut selector = BTreeMap::new();
    for part in split_outside_braces(text, ',') {
        let malformed = || SelectorError::Malformed { part: part.trim().to_owned() };
        let (key, names) = part.split_once('=').ok_or_else(malformed)?;
        let patterns: Vec<String> =
            split_outside_braces(names, '|').iter().map(|name| name.trim().to_owned()).collect();
        if key.trim().is_empty() || patterns.iter().any(String::is_empty) {
            return Err(malformed());
        }
        if selector.insert(key.trim().to_owned(), patterns).is_some() {
            return Err(SelectorError::Twice { key: key.trim().to_owned() });
        }
    }
    Ok(Selector(selector))
}

fn split_outside_braces(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0usize, 0, Vec::new());
    for (index, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if character == separator && depth == 0 => {
                parts.push(&text[start..index]);
                start = index + separator.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The names that selectors can use. `None`: not known, because that part of the spec has problems of its own.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    pub names: AxisMap<Option<Vec<String>>>,
    pub dimensions: Option<BTreeSet<String>>,
}

impl Selector {
    /// Selects one entry.
    pub fn of<T: Entry>(entry: &T) -> Self {
        Selector([(T::AXIS.singular().to_owned(), vec![entry.label()])].into())
    }

    /// Whether it says something about such entries.
    pub fn is_about<T: OnAxis>(&self) -> bool {
        self.axes().contains(&T::AXIS)
    }

    /// What it says about other entries.
    pub fn without<T: OnAxis>(mut self) -> Self {
        self.0.remove(T::AXIS.singular());
        self
    }

    /// What an experiment with these names does not know: keys, names, and globs that cannot be read.
    ///
    /// A glob that matches nothing and a size that no input has are no errors: `plan` warns of selectors that select
    /// no cell.
    pub fn check(&self, vocabulary: &Vocabulary) -> Vec<SelectorError> {
        self.0.iter().flat_map(|(key, patterns)| check_key(key, patterns, vocabulary)).collect()
    }

    /// The selector ready for many cells.
    pub fn matcher(&self) -> Matcher {
        let keys = self.0.iter().map(|(key, patterns)| {
            let patterns = patterns.iter().map(|pattern| OnePattern::new(pattern)).collect();
            (key.clone(), patterns)
        });
        Matcher { keys: keys.collect() }
    }

    /// True where every key matches the cell's coordinate; `coordinate` gives it by axis or dimension.
    ///
    /// For many cells, [`Selector::matcher`] once is faster.
    pub fn matches(&self, coordinate: &dyn Fn(&str) -> Option<String>) -> bool {
        self.matcher().matches(coordinate)
    }
}

fn check_key(key: &str, patterns: &[String], vocabulary: &Vocabulary) -> Vec<SelectorError> {
    let axis = Axis::of_singular(key);
    if axis.is_none()
        && let Some(dimensions) = &vocabulary.dimensions
        && !dimensions.contains(key)
    {
        let known: Vec<&str> = Axis::SINGULARS.into_iter().chain(dimensions.iter().map(String::as_str)).collect();
        let hint = suggestion(key, known, "key");
        return vec![SelectorError::UnknownKey { key: key.to_owned(), hint }];
    }
    let check = |pattern: &String| {
        if is_glob(pattern) {
            let error = Glob::new(pattern).err()?;
            let reason = error.kind().to_string();
            return Some(SelectorError::BadGlob { key: key.to_owned(), pattern: pattern.clone(), reason });
        }
        let axis = axis?;
        let names = vocabulary.names[axis].as_deref()?;
        if names.iter().any(|name| OnePattern::new(pattern).matches(key, name)) {
            return None;
        }
        let hint = match names {
            // An axis that cannot be left out has an entry.
            [] => Some(format!(
                "the specification has no `{}`, or its variants name them: select by `variant`",
                axis.plural()
            )),
            names => suggestion(pattern, names.iter().map(String::as_str), key),
        };
        Some(SelectorError::UnknownName { key: key.to_owned(), name: pattern.clone(), hint })
    };
    patterns.iter().filter_map(check).collect()
}

/// A selector whose globs are compiled.
#[derive(Clone, Debug)]
pub struct Matcher {
    keys: Vec<(String, Vec<OnePattern>)>,
}

impl Matcher {
    /// True where every key matches the cell's coordinate; `coordinate` gives it by axis or dimension.
    pub fn matches(&self, coordinate: &dyn Fn(&str) -> Option<String>) -> bool {
        self.keys.iter().all(|(key, patterns)| {
            coordinate(key).is_some_and(|value| patterns.iter().any(|pattern| pattern.matches(key, &value)))
        })
    }

    /// True where the selector says nothing about `key`, or one of its patterns for it matches `value`.
    pub fn allows(&self, key: &str, value: &str) -> bool {
        let mut said = self.keys.iter().filter(|(name, _)| name == key);
        said.all(|(_, patterns)| patterns.iter().any(|pattern| pattern.matches(key, value)))
    }

    /// The same of an entry of an axis.
    pub fn allows_entry<T: Entry>(&self, entry: &T) -> bool {
        self.allows(T::AXIS.singular(), &entry.label())
    }

    /// The dimensions that the selector asks about.
    pub fn dimensions(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(key, _)| key.as_str()).filter(|key| Axis::of_singular(key).is_none())
    }
}

#[derive(Clone, Debug)]
enum OnePattern {
    Name(String),
    Glob(Box<GlobMatcher>),
}

impl OnePattern {
    /// A glob that cannot be read is taken literally; `check` has reported it.
    fn new(pattern: &str) -> Self {
        match Glob::new(pattern) {
            Ok(glob) if is_glob(pattern) => OnePattern::Glob(Box::new(glob.compile_matcher())),
            _ => OnePattern::Name(pattern.to_owned()),
        }
    }

    fn matches(&self, key: &str, value: &str) -> bool {
        // `cuda` is `cuda:0` and `cuda:1`, on whichever machine; `cuda:0` is that of every machine.
        let is_device = key == Axis::Devices.singular();
        let device = || value.split_once('@').map_or(value, |(device, _)| device);
        let provider = || device().split_once(':').map_or(device(), |(provider, _)| provider);
        match self {
            OnePattern::Name(name) => name == value || (is_device && (name == device() || name == provider())),
            OnePattern::Glob(glob) => glob.is_match(value),
        }
    }
}

/// True where a text has a glob's characters.
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        Vocabulary {
            names: AxisMap::of(|axis| match axis {
                Axis::Models => names(&["mlp", "cnn"]),
                Axis::Inputs => names(&["b1", "b16"]),
                Axis::Variants => names(&["fp32", "fp32-t1"]),
                Axis::Devices => names(&["cpu", "cuda:0", "cuda:1"]),
                _ => names(&[]),
            }),
            dimensions: Some(BTreeSet::from(["batch".to_owned()])),
        }
    }

    fn matches(selector: &str, cell: &[(&str, &str)]) -> bool {
        let coordinate = |key: &str| cell.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned());
        parse_selector(selector).unwrap().matches(&coordinate)
    }

    #[test]
    fn every_key_must_match_and_one_of_its_names() {
        let cell = [("model", "mlp"), ("device", "cuda:1"), ("batch", "16")];
        assert!(matches("model=mlp", &cell));
        assert!(matches("model=cnn|mlp,batch=16", &cell));
        assert!(matches("model=m*,batch=1?", &cell));
        assert!(matches("model={cnn,mlp}", &cell));
        assert!(!matches("model=mlp,batch=1", &cell));
        assert!(!matches("sequence=128", &cell));
    }

    #[test]
    fn a_provider_matches_all_its_devices() {
        assert!(matches("device=cuda", &[("device", "cuda:1")]));
        assert!(matches("device=cuda:1", &[("device", "cuda:1")]));
        assert!(!matches("device=cuda:0", &[("device", "cuda:1")]));
        assert!(!matches("model=a", &[("model", "a:1")]));
    }

    #[test]
    fn texts_that_are_no_selectors_are_refused() {
        for text in ["", "mlp", "model=", "=mlp", "model=a|", "model=a,,batch=1"] {
            assert!(matches!(parse_selector(text), Err(SelectorError::Malformed { .. })), "{text}");
        }
        assert_eq!(parse_selector("model=a,model=b"), Err(SelectorError::Twice { key: "model".to_owned() }));
    }

    #[test]
    fn unknown_keys_and_names_are_errors_with_the_nearest() {
        let check = |text: &str| parse_selector(text).unwrap().check(&vocabulary());
        assert_eq!(check("model=mlp,variant=fp32*,device=cuda,batch=7"), []);
        assert_eq!(check("models=mlp")[0].hint(), Some("did you mean `model`?"));
        assert_eq!(check("variant=fp23")[0].to_string(), "no variant is named `fp23`");
        assert_eq!(check("variant=fp23")[0].hint(), Some("did you mean `fp32`?"));
        assert_eq!(check("device=tpu|cpu")[0].hint(), Some("did you mean `cpu`?"));
        let hint = "the specification has no `runtimes`, or its variants name them: select by `variant`";
        assert_eq!(check("runtime=1.30.0")[0].hint(), Some(hint));
        assert!(matches!(check("model=[a")[0], SelectorError::BadGlob { .. }));
    }

    #[test]
    fn what_is_not_known_is_not_judged() {
        let selector = parse_selector("model=any,sequence=1").unwrap();
        assert_eq!(selector.check(&Vocabulary::default()), []);
    }
}
