//! In which order cells answer the questions of a plan: where there is no room for all of them, the first are measured.

use super::Plan;

impl Plan {
    /// The cells that are run: of each group the baseline, then the others in plan order, group after group.
    pub fn by_question(&self) -> Vec<usize> {
        let is_run = |cell: &usize| self.cells[*cell].skip.is_none();
        let groups = self.groups.iter().flat_map(|group| {
            let others = group.cells.iter().filter(|cell| Some(**cell) != group.baseline);
            group.baseline.iter().chain(others).map(|cell| *cell as usize)
        });
        groups.filter(is_run).collect()
    }

    /// Whether a cell is the first of its group by [`Plan::by_question`], and others of it are run too: alone it answers nothing.
    pub fn opens_a_question(&self, cell: usize) -> bool {
        let group = self.cells[cell].group;
        let others = self.runnable().filter(|(other, of)| *other != cell && of.group == group).count();
        let first = self.by_question().into_iter().find(|first| self.cells[*first].group == group);
        others > 0 && first == Some(cell)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Skip, expand};

    #[test]
    fn the_baseline_of_each_group_comes_first() {
        let text = "backend: mock\nmodels: [m, n]\nvariants: [a, b, c]\ncompare: { baseline: { variant: b } }\n";
        let spec = spec::parse("test.yaml", text, std::path::Path::new("."), &[]).expect("a valid spec");
        let mut plan = expand(&spec.experiment).expect("a plan");
        assert_eq!(plan.by_question(), [1, 0, 2, 4, 3, 5]);
        assert!(plan.opens_a_question(1) && !plan.opens_a_question(0) && plan.opens_a_question(4));
        plan.mark_skipped(1, Skip { kind: crate::SkipKind::Other, reason: "x".to_owned(), remedy: None });
        assert_eq!(plan.by_question(), [0, 2, 4, 3, 5]);
    }
}
