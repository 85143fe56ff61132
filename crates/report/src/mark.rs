//! Marks around words that say what a claim or a verdict says, so that a test finds comparisons that rest on neither.

use std::cell::Cell;

/// What opens and closes a marked span.
pub const MARKS: [char; 2] = ['⟦', '⟧'];

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
}

/// Words that follow from a claim, a verdict, or a judgement that `results.json` stores.
pub(crate) fn claimed(words: impl Into<String>) -> String {
    let words = words.into();
    if IS_ON.get() && !words.is_empty() { format!("{}{words}{}", MARKS[0], MARKS[1]) } else { words }
}

/// Renders with marks. They are on for this thread and this call alone.
pub fn with_marks<T>(render: impl FnOnce() -> T) -> T {
    IS_ON.set(true);
    let rendered = render();
    IS_ON.set(false);
    rendered
}
