//! What a merge of git leaves in a text that it could not merge.

/// Line of the first conflict marker, from 1; nothing where a text has none.
pub fn conflict_line(text: &str) -> Option<usize> {
    let first = text.lines().position(|line| line.starts_with("<<<<<<< "))?;
    text.lines().skip(first).any(|line| line.starts_with(">>>>>>> ")).then_some(first + 1)
}

/// Whether a text has conflict markers.
pub fn has_conflict(text: &str) -> bool {
    conflict_line(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_markers_make_a_conflict() {
        assert_eq!(conflict_line("{\n<<<<<<< HEAD\n1\n=======\n2\n>>>>>>> topic\n}\n"), Some(2));
        for text in ["", "<<<<<<< HEAD\n", ">>>>>>> topic\n<<<<<<< HEAD\n", "a <<<<<<< b\n>>>>>>> c\n"] {
            assert_eq!(conflict_line(text), None, "{text}");
        }
    }
}
