//! How far a model is that is being fetched, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish};

use super::{LABEL_WIDTH, Ui};

/// A bar that begins with the first bytes and goes when it is dropped.
#[derive(Debug)]
pub struct TransferBar {
    ui: Ui,
    bar: Option<ProgressBar>,
}

impl TransferBar {
    /// None yet.
    pub fn new(ui: Ui) -> Self {
        TransferBar { ui, bar: None }
    }

    /// Shows that so many bytes are here, of so many if anybody knows.
    pub fn show(&mut self, done: u64, total: Option<u64>) {
        // Before the first bytes the server has not said how many there are.
        if !self.ui.is_terminal() || done == 0 {
            return;
        }
        // Another file begins.
        self.bar.take_if(|bar| done < bar.position());
        let bar = self.bar.get_or_insert_with(|| {
            let total_and_bar = if total.is_some() { "/{total_bytes}   {bar:20}" } else { "" };
            let template = format!("{:LABEL_WIDTH$}{{bytes}}{total_and_bar}   {{bytes_per_sec}}   {{elapsed}}", "");
            let target = ProgressDrawTarget::stderr_with_hz(4);
            super::bar(total, target, &template).with_finish(ProgressFinish::AndClear)
        });
        bar.set_position(done);
    }
}
