//! YAML text to a tree with places.
//!
//! Input: one text. Output: a [`Node`], or what is wrong with the syntax in plain words. One document only; anchors and
//! merge keys are allowed and their expansion is bounded, as are depth and size, so that no text exhausts the machine.
//! Deliberately absent: tags other than YAML's own, and any meaning of keys.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Location, Options, Spanned};

use super::document::{Content, Entry, Node, Scalar, ScalarKind};
use super::problem::{Problem, Sources, Span};
use super::syntax;

/// A spec has a depth of seven; what is deeper is a mistake or an attack on the stack.
const DEEPEST: usize = 32;

/// Keys and values together; the largest experiment that can be run needs far fewer.
const MOST_NODES: usize = 100_000;

/// Reads the text `source`, from byte `start` on.
///
/// A key that stands twice is a problem; in the tree the first one counts, so that the rest of the file is
/// still checked.
pub(super) fn parse(sources: &Sources, source: usize, start: usize) -> Result<(Node, Vec<Problem>), Problem> {
    let text = &sources.text(source)[start..];
    let origin = Origin { text, source, start };
    match serde_saphyr::from_str_with_options(text, options(DuplicateKeyPolicy::Error)) {
        Ok(raw) => Ok((origin.node(raw), Vec::new())),
        Err(error) => {
            let problem = origin.problem(sources, &error);
            match error.without_snippet() {
                Error::DuplicateMappingKey { .. } => {
                    let raw = serde_saphyr::from_str_with_options(text, options(DuplicateKeyPolicy::FirstWins));
                    let node = raw.map_err(|error| origin.problem(sources, &error))?;
                    Ok((origin.node(node), vec![problem]))
                }
                _ => Err(problem),
            }
        }
    }
}

fn options(duplicate_keys: DuplicateKeyPolicy) -> Options {
    serde_saphyr::options! {
        duplicate_keys: duplicate_keys,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        budget: serde_saphyr::budget! { max_depth: DEEPEST, flow_nesting_limit: DEEPEST, max_nodes: MOST_NODES },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
    }
}

/// A value as the parser gives it, before its text is cut out.
struct Raw(Spanned<RawContent>);

enum RawContent {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Raw>),
    Map(Vec<(Spanned<String>, Raw)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Raw)
    }
}

impl<'de> Deserialize<'de> for RawContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = RawContent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<RawContent, E> {
        Ok(RawContent::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<RawContent, E> {
        Ok(RawContent::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawContent, E> {
        Ok(RawContent::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<RawContent, E> {
        Ok(RawContent::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<RawContent, E> {
        Ok(RawContent::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<RawContent, E> {
        Ok(RawContent::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<RawContent, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = access.next_element()? {
            nodes.push(node);
        }
        Ok(RawContent::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<RawContent, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(RawContent::Map(entries))
    }
}

/// Where a parsed text lies within its source.
struct Origin<'a> {
    text: &'a str,
    source: usize,
    start: usize,
}

impl Origin<'_> {
    fn node(&self, raw: Raw) -> Node {
        let span = self.span(raw.0.defined);
        let scalar = |kind| {
            let text = self.text.get(span.start - self.start..span.end - self.start).unwrap_or_default();
            Content::Scalar(Scalar { text: text.to_owned(), kind })
        };
        match raw.0.value {
            RawContent::Null => Node { span, content: scalar(ScalarKind::Null) },
            RawContent::Bool(value) => Node { span, content: scalar(ScalarKind::Bool(value)) },
            RawContent::Integer(value) => Node { span, content: scalar(ScalarKind::Integer(value)) },
            RawContent::Float(value) => Node { span, content: scalar(ScalarKind::Float(value)) },
            RawContent::Text(text) => Node { span, content: Content::Scalar(Scalar { text, kind: ScalarKind::Text }) },
            RawContent::List(nodes) => {
                let nodes: Vec<Node> = nodes.into_iter().map(|node| self.node(node)).collect();
                let last = nodes.last().map_or(span.end, |node| node.span.end);
                Node { span: self.closed(span, last), content: Content::List(nodes) }
            }
            RawContent::Map(entries) => {
                let entries: Vec<Entry> = entries.into_iter().map(|entry| self.entry(entry)).collect();
                let last = entries.last().map_or(span.end, |entry| entry.value.span.end);
                Node { span: self.closed(span, last), content: Content::Map(entries) }
            }
        }
    }

    fn entry(&self, (key, value): (Spanned<String>, Raw)) -> Entry {
        let key_span = self.span(key.defined);
        Entry { key: key.value, key_span, value: self.node(value) }
    }

    /// The span of a flow collection up to its bracket; the parser says only where it begins.
    fn closed(&self, opening: Span, last: usize) -> Span {
        if opening.start == opening.end || last < opening.end {
            return opening;
        }
        let rest = self.text.get(last - self.start..).unwrap_or_default();
        let inside = rest.len() - rest.trim_start_matches([' ', ',']).len();
        match rest[inside..].chars().next() {
            Some(']' | '}') => Span { end: last + inside + 1, ..opening },
            _ => opening,
        }
    }

    /// The span of a location, in bytes of the whole source.
    fn span(&self, location: Location) -> Span {
        let known = location.span().byte_offset().zip(location.span().byte_len());
        let (start, length) = match known {
            Some((start, length)) => (start as usize, length as usize),
            None => (self.offset(location), 1),
        };
        let start = start.min(self.text.len());
        let end = start.saturating_add(length).min(self.text.len());
        Span { source: self.source, start: self.start + start, end: self.start + end }
    }

    /// The parser's error at its place.
    fn problem(&self, sources: &Sources, error: &Error) -> Problem {
        let nowhere = Span { source: self.source, start: self.start, end: self.start };
        let span = error.location().map_or(nowhere, |location| self.span(location));
        let (message, hint) = syntax::explain(error);
        let problem = sources.problem(span, message);
        if hint.is_empty() { problem } else { problem.with_hint(hint) }
    }

    /// Line and column to bytes, for the errors that carry nothing else.
    fn offset(&self, location: Location) -> usize {
        let line = usize::try_from(location.line()).unwrap_or(usize::MAX).saturating_sub(1);
        let column = usize::try_from(location.column()).unwrap_or(usize::MAX).saturating_sub(1);
        let line_start = match line {
            0 => 0,
            _ => self.text.match_indices('\n').nth(line - 1).map_or(self.text.len(), |(newline, _)| newline + 1),
        };
        let rest = &self.text[line_start..];
        rest.char_indices().nth(column).map_or(self.text.len(), |(offset, _)| line_start + offset)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use base::printable::printable;

    fn read(text: &str) -> Node {
        parse(&Sources::new("x.yaml", text), 0, 0).unwrap().0
    }

    fn error(text: &str) -> (String, usize, usize) {
        let problem = parse(&Sources::new("x.yaml", text), 0, 0).unwrap_err();
        (problem.message.clone(), problem.line, problem.column)
    }

    fn slice<'a>(text: &'a str, node: &Node) -> &'a str {
        &text[node.span.start..node.span.end]
    }

    #[test]
    fn scalars_keep_their_source_text() {
        let root = read("a: 1.30\nb: 010\nc: '1.30'\nd: yes\ne: !!str 5\nf: ~\n");
        assert_eq!(root.get("a").unwrap().as_text(), Some("1.30"));
        assert_eq!(root.get("b").unwrap().as_text(), Some("010"));
        for key in ["c", "d", "e"] {
            let Content::Scalar(scalar) = &root.get(key).unwrap().content else { panic!("no scalar") };
            assert_eq!(scalar.kind, ScalarKind::Text);
        }
        assert!(root.get("f").unwrap().is_null());
    }

    proptest! {
        #[test]
        fn what_was_written_as_a_scalar_is_read_as_this_text(
            text in prop_oneof![any::<String>(), "[-~.:#*&!|>%@`'\"{}, a-z0-9\t\u{85}\u{2028}\u{feff}]{0,8}"],
        ) {
            let scalar = reading::yaml::scalar(&text);
            prop_assert_eq!(printable(&scalar), scalar.as_str(), "it is shown as it is");
            for yaml in [format!("- {scalar}\n"), format!("[{scalar}, b]"), format!("{{ {scalar}: 1 }}"), format!("{scalar}: 1")] {
                let found = match read(&yaml).content {
                    Content::List(items) => match items.into_iter().next().unwrap().content {
                        Content::Scalar(Scalar { text, kind: ScalarKind::Text }) => text,
                        other => panic!("{other:?}"),
                    },
                    Content::Map(entries) => entries.into_iter().next().unwrap().key,
                    other => panic!("{other:?}"),
                };
                prop_assert_eq!(&found, &text, "{}", yaml);
            }
        }
    }

    #[test]
    fn flow_collections_are_spanned_to_their_bracket() {
        let text = "a: [1, [2, 3], {b: c}, ]\nd: {}\n";
        let root = read(text);
        assert_eq!(slice(text, root.get("a").unwrap()), "[1, [2, 3], {b: c}, ]");
        assert_eq!(slice(text, root.get("d").unwrap()), "{}");
    }

    #[test]
    fn aliases_and_merges_point_at_what_they_repeat() {
        let text = "a: &x { k: 1 }\nb: *x\nc: { <<: *x, l: 2 }\n";
        let root = read(text);
        assert_eq!(slice(text, root.get("b").unwrap().get("k").unwrap()), "1");
        assert_eq!(slice(text, root.get("c").unwrap().get("k").unwrap()), "1");
        assert_eq!(root.get("c").unwrap().get("l").unwrap().as_text(), Some("2"));
    }

    #[test]
    fn syntax_errors_have_a_position_and_plain_words() {
        assert_eq!(error("a: b: c\n"), ("a `: ` that is not expected here".to_owned(), 1, 5));
        assert_eq!(error("a:\n\tb: 1\n").0, "a tab indents this line");
        assert_eq!(error("a: [1, 2\n"), ("this `[` is never closed".to_owned(), 1, 4));
        assert_eq!(error("a: 1\n---\nb: 2\n"), ("a second document begins here".to_owned(), 3, 1));
        assert_eq!(error("a: *x\n"), ("this `*` starts an alias, but no anchor above has its name".to_owned(), 1, 4));
        assert_eq!(error("a: !include b\n").0, "the tag `!include` is not supported");
    }

    #[test]
    fn a_key_that_stands_twice_is_told_and_the_rest_is_read() {
        let (root, problems) = parse(&Sources::new("x.yaml", "a: 1\nb: 2\na: 3\n"), 0, 0).unwrap();
        assert_eq!(root.get("b").unwrap().as_text(), Some("2"));
        assert_eq!((problems[0].message.as_str(), problems[0].line), ("`a` is listed twice in the same map", 3));
    }

    #[test]
    fn bombs_are_refused() {
        let mut aliases = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12u8 {
            let (name, inner) = (char::from(b'a' + level), char::from(b'a' + level - 1));
            aliases.push_str(&format!("{name}: &{name} [{}]\n", vec![format!("*{inner}"); 10].join(", ")));
        }
        assert_eq!(error(&aliases).0, "the spec is too large or too deeply nested from here on");
        for deep in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000), "? ".repeat(100_000)] {
            error(&deep);
        }
    }
}
