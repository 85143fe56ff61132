//! Pages as Markdown, short enough for a comment.

use super::{Page, Pages, Uncompared};
use crate::{ReportError, fill_template};

/// What a comment may have: GitHub refuses 65,536 characters, and a few are left for what is written around it.
const MOST_BYTES: usize = 60_000;

impl Page {
    /// Pages as Markdown, the first line a mark by which a comment is found again. What there is no room for is left out
    /// from the folded rows, and counted.
    ///
    /// # Errors
    ///
    /// A fault of the template.
    pub fn markdown(pages: &[Page], uncompared: &Uncompared, marker: &str) -> Result<String, ReportError> {
        let mut pages = pages.to_vec();
        loop {
            let text = fill_template("diff.md.j2", &Pages::new(&pages, uncompared, marker))?;
            if text.len() <= MOST_BYTES {
                return Ok(text);
            }
            // Every page gives something away, not the first one all that it has.
            let shortened = pages.iter_mut().filter_map(|page| page.shorten().then_some(())).count();
            if shortened == 0 {
                return Ok(shorten_to(text, MOST_BYTES));
            }
        }
    }

    /// Leaves out half of the folded rows, then half of those before the fold; whether there was something to leave out.
    fn shorten(&mut self) -> bool {
        let folded = [&mut self.unchanged, &mut self.rest].into_iter().flatten();
        if let Some(folded) = folded.into_iter().find(|folded| !folded.table.rows.is_empty()) {
            let kept = folded.table.rows.len() / 2;
            folded.left_out += folded.table.rows.len() - kept;
            folded.table.rows.truncate(kept);
            return true;
        }
        let before = self.length();
        self.changed.truncate(self.changed.len() / 2);
        self.notices.iter_mut().for_each(|notice| *notice = shorten_to(std::mem::take(notice), 2_000));
        if let Some(claims) = &mut self.claims {
            claims.rows.truncate(claims.rows.len() / 2);
        }
        before != self.length()
    }

    /// What can be shortened in addition to folded rows, in bytes and rows.
    fn length(&self) -> usize {
        let lines = self.changed.iter().chain(&self.notices).map(String::len).sum::<usize>();
        lines + self.claims.as_ref().map_or(0, |claims| claims.rows.len())
    }
}

/// The text, cut between two characters where it is longer.
fn shorten_to(mut text: String, most: usize) -> String {
    if text.len() > most {
        let mut end = most;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}
