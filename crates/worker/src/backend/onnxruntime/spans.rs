//! When each node ran, thread by thread: which node was running at a moment.

use std::collections::HashMap;

/// An execution of a node, in whole microseconds of the trace, rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: i64,
    pub(super) end: i64,
    /// The node by its index in the trace.
    pub(super) node: usize,
    /// The span of the node that it runs in.
    pub(super) outer: Option<usize>,
}

/// The executions of all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans {
    spans: Vec<Span>,
    /// Those of each thread, in the order in which they began.
    threads: HashMap<i64, Vec<usize>>,
}

impl Spans {
    /// Adds one that began after all others of its thread so far, and returns its index.
    pub(super) fn push(&mut self, thread: i64, span: Span) -> usize {
        self.threads.entry(thread).or_default().push(self.spans.len());
        self.spans.push(span);
        self.spans.len() - 1
    }

    /// The innermost node that ran in a thread at this microsecond.
    pub(super) fn node_at(&self, thread: i64, microsecond: i64) -> Option<usize> {
        let of_thread = self.threads.get(&thread)?;
        let begun = of_thread.partition_point(|span| self.spans[*span].start <= microsecond);
        let mut span = Some(*of_thread.get(begun.checked_sub(1)?)?);
        while let Some(Span { end, node, outer, .. }) = span.map(|span| self.spans[span]) {
            // A span ends up to a microsecond after its computed end.
            if microsecond <= end + 1 {
                return Some(node);
            }
            span = outer;
        }
        None
    }
}
