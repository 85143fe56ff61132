//! Lists and numbers of things, as sentences have them.

/// `1 cell`, `12 cells`.
pub fn count(number: u64, singular: &str) -> String {
    if number == 1 { format!("1 {singular}") } else { format!("{number} {singular}s") }
}

/// `a`, `a and b`, `a, b and c`.
pub fn list<S: AsRef<str>>(items: &[S]) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

/// The first of these names, then `4 more`: so many, or one above, which takes no more room than the number.
pub fn some(mut names: impl ExactSizeIterator<Item = String>, most: usize) -> Vec<String> {
    if names.len() <= most + 1 {
        return names.collect();
    }
    let mut listed: Vec<String> = names.by_ref().take(most).collect();
    listed.push(format!("{} more", names.len()));
    listed
}

/// Each of these once, in the order in which they come.
pub fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

/// What is said with all that it is said of, in the order in which they come.
pub fn grouped<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// The text with a first letter that begins a sentence.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
