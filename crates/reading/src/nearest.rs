//! Which known word a writer meant.
//!
//! Input: a word and the words that would do. Output: the nearest where it is near, and lists to choose from.
//! Deliberately absent: meaning; `cpu` is not near `gpu` for its sense but for its letters.

use std::path::{Path, PathBuf};

/// More words than this are not listed; nobody reads them.
const LONGEST_LIST: usize = 32;

/// The word that differs by the fewest slips of the pen, where these are few for its length.
///
/// One slip in every three letters is allowed: more would suggest `seed` for `feed_names`. The distance counts a swap
/// of neighbours as one slip (Damerau 1964, restricted as in optimal string alignment). A word that is the beginning of
/// one known word stands for it: `sha` for `sha256`.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let length = word.chars().count();
    let allowed = (length / 3).min(4);
    let known: Vec<&str> = known.into_iter().collect();
    let slip = known
        .iter()
        .map(|candidate| (strsim::osa_distance(&lower, &candidate.to_lowercase()), *candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate);
    let mut longer = known.iter().filter(|candidate| length >= 2 && candidate.starts_with(&lower));
    slip.or_else(|| longer.next().copied().filter(|_| longer.next().is_none()))
}

/// "did you mean `x`?" where a word is near, else the words themselves where they are few.
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone, what: &str) -> Option<String> {
    if let Some(near) = nearest(word, known.clone()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let known: Vec<&str> = known.into_iter().collect();
    match known.as_slice() {
        [] => None,
        [only] => Some(format!("the only {what} is `{only}`")),
        some if some.len() <= LONGEST_LIST => Some(format!("known {what}s: {}", list(some, "and"))),
        many => {
            Some(format!("known {what}s: {} and {} more", quoted(&many[..LONGEST_LIST]), many.len() - LONGEST_LIST))
        }
    }
}

/// `` `a`, `b` or `c` ``
pub fn list(words: &[&str], conjunction: &str) -> String {
    match words {
        [] => String::new(),
        [only] => format!("`{only}`"),
        [some @ .., last] => format!("{} {conjunction} `{last}`", quoted(some)),
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Entries of a folder that are looked at for a similar name.
const MOST_NEIGHBOURS: usize = 10_000;

/// The name of the file next to `path` whose name is most like that of `path`.
pub fn near_name(path: &Path) -> Option<String> {
    let wanted = path.file_name()?.to_string_lossy().into_owned();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(parent).ok()?.take(MOST_NEIGHBOURS).filter_map(Result::ok);
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    // Its own name is that of a link to nothing.
    let mut names: Vec<String> = names.filter(|name| *name != wanted).collect();
    names.sort();
    nearest(&wanted, names.iter().map(String::as_str)).map(str::to_owned)
}

/// The file next to `path` whose name is most like that of `path`.
pub fn near_path(path: &Path) -> Option<PathBuf> {
    Some(path.with_file_name(near_name(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["warmup", "stop", "inputs", "timeout"];
        assert_eq!(nearest("warmups", known), Some("warmup"));
        assert_eq!(nearest("warm_up", known), Some("warmup"));
        assert_eq!(nearest("tiemout", known), Some("timeout"));
        assert_eq!(nearest("Stop", known), Some("stop"));
        assert_eq!(nearest("boundary", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest("a", ["b"]), None);
        assert_eq!(nearest("b2", ["b1"]), None);
        assert_eq!(nearest("sha", ["path", "sha256"]), Some("sha256"));
        assert_eq!(nearest("min", ["min_time", "min_samples"]), None);
    }

    #[test]
    fn without_a_near_word_the_few_are_listed() {
        assert_eq!(suggestion("x1", ["cpu"], "device").as_deref(), Some("the only device is `cpu`"));
        assert_eq!(
            suggestion("boundary", ["stop", "inputs"], "key").as_deref(),
            Some("known keys: `stop` and `inputs`")
        );
    }
}
