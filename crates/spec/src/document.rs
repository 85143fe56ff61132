//! A YAML document as a tree in which every key and value knows its place in the text.
//!
//! Input: the tree that `yaml` builds. Output: lookups by [`DocumentPath`]. Scalars keep their source text, so that
//! `1.30` is still "1.30" where the schema wants text. Deliberately absent: what the keys mean.

use super::problem::Span;

/// A value with its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Where the value is written; for an alias, where the anchor is.
    pub(super) span: Span,
    /// What is written there.
    pub(super) content: Content,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// One word, number or text.
    Scalar(Scalar),
    /// Values in order.
    List(Vec<Node>),
    /// Keys and values in order.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The key as text.
    pub(super) key: String,
    /// Where the key is written.
    pub(super) key_span: Span,
    pub(super) value: Node,
}

/// A scalar as written and as YAML reads it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scalar {
    /// The source text without quotes: `1.30`, `010`, `cuda:0`.
    pub(super) text: String,
    /// The type that YAML's core schema gives it.
    pub(super) kind: ScalarKind,
}

/// The types of YAML's core schema.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ScalarKind {
    /// Empty, `~` or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// Any other number.
    Float(f64),
    /// Everything else, and whatever is quoted.
    Text,
}

impl Node {
    /// The same without the keys of a map that begin with `x-`: they hold anchors for the rest, and nothing of their own.
    pub(super) fn without_extensions(mut self) -> Self {
        if let Content::Map(entries) = &mut self.content {
            entries.retain(|entry| !entry.key.starts_with("x-"));
        }
        self
    }

    /// A text that nobody wrote at `span` but that stands for what is there.
    pub(super) fn text(span: Span, text: impl Into<String>) -> Self {
        Node { span, content: Content::Scalar(Scalar { text: text.into(), kind: ScalarKind::Text }) }
    }

    /// A map of such entries.
    pub(super) fn map(span: Span, entries: Vec<(&str, Node)>) -> Self {
        let entries = entries.into_iter().map(|(key, value)| Entry { key: key.to_owned(), key_span: span, value });
        Node { span, content: Content::Map(entries.collect()) }
    }

    /// The source text of a scalar that is not null.
    pub(super) fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(scalar) if scalar.kind != ScalarKind::Null => Some(&scalar.text),
            _ => None,
        }
    }

    /// The value of a key of a map.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// A key of a map, with its value.
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.content {
            Content::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// True for an empty value, `~` and `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(scalar) if scalar.kind == ScalarKind::Null)
    }

    /// What to underline when no key names the value: all of it on one line, else where it begins.
    fn visible_span(&self) -> Span {
        match &self.content {
            Content::Map(entries) if self.span.start == self.span.end => {
                entries.first().map_or(self.span, |entry| entry.key_span)
            }
            Content::List(nodes) if self.span.start == self.span.end => {
                nodes.first().map_or(self.span, Node::visible_span)
            }
            _ => self.span,
        }
    }
}

/// A step from a value to one inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Into a map.
    Key(String),
    /// Into a list, from 0.
    Index(usize),
}

/// The way from the top of the document to a value: `variants`, 2, `threads`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DocumentPath(pub(super) Vec<Step>);

impl DocumentPath {
    /// A top-level key.
    pub(super) fn top(key: &str) -> Self {
        DocumentPath::default().key(key)
    }

    /// The value of a key of the map here.
    #[must_use]
    pub(super) fn key(&self, key: &str) -> Self {
        self.then(Step::Key(key.to_owned()))
    }

    /// The entry of the list here, from 0.
    #[must_use]
    pub(super) fn index(&self, index: usize) -> Self {
        self.then(Step::Index(index))
    }

    fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        DocumentPath(steps)
    }

    /// The top-level key that this is below; empty at the top.
    pub(super) fn top_key(&self) -> &str {
        match self.0.first() {
            Some(Step::Key(key)) => key,
            _ => "",
        }
    }

    /// The value that holds this one.
    pub(super) fn parent(&self) -> Option<DocumentPath> {
        let (_, parent) = self.0.split_last()?;
        Some(DocumentPath(parent.to_vec()))
    }

    /// True where `self` is `other` or inside it.
    pub(super) fn is_within(&self, other: &DocumentPath) -> bool {
        self.0.starts_with(&other.0)
    }

    /// What messages call it: `` `threads` `` or ``entry 2 of `devices` ``.
    pub(super) fn name(&self) -> String {
        match self.0.as_slice() {
            [] => "the file".to_owned(),
            [.., Step::Key(key)] => format!("`{key}`"),
            [.., Step::Key(key), Step::Index(index)] => format!("entry {} of `{key}`", index + 1),
            [.., Step::Index(index)] => format!("entry {}", index + 1),
        }
    }
}

/// Looks a value up, with the entry that names it; a place that is not written gives the nearest that is.
fn find<'a>(root: &'a Node, place: &DocumentPath) -> (&'a Node, Option<&'a Entry>) {
    let mut node = root;
    let mut entry = None;
    for step in &place.0 {
        let next = match (step, &node.content) {
            (Step::Key(key), Content::Map(entries)) => {
                entries.iter().find(|entry| entry.key == *key).map(|entry| (&entry.value, Some(entry)))
            }
            (Step::Index(index), Content::List(nodes)) => nodes.get(*index).map(|node| (node, None)),
            _ => None,
        };
        let Some(next) = next else { break };
        (node, entry) = next;
    }
    (node, entry)
}

/// The text of the value at `place`, or of its key where the value is spread over lines or empty.
pub(super) fn value_span(root: &Node, place: &DocumentPath) -> Span {
    let (node, entry) = find(root, place);
    match (entry, node.span.start == node.span.end) {
        (Some(entry), true) => entry.key_span,
        _ => node.visible_span(),
    }
}

/// The text of the key at `place`, or of the value where it has none.
pub(super) fn key_span(root: &Node, place: &DocumentPath) -> Span {
    let (node, entry) = find(root, place);
    entry.map_or_else(|| node.visible_span(), |entry| entry.key_span)
}

/// What the document says at `place`.
pub(super) fn value<'a>(root: &'a Node, place: &DocumentPath) -> Option<&'a Node> {
    let mut node = Some(root);
    for step in &place.0 {
        node = node.and_then(|node| match (step, &node.content) {
            (Step::Key(key), Content::Map(_)) => node.get(key),
            (Step::Index(index), Content::List(nodes)) => nodes.get(*index),
            _ => None,
        });
    }
    node
}
