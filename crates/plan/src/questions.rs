//! In which order cells answer the questions of a plan: where there is no room for all of them, the first are measured.

use super::Plan;

impl Plan {
    /// The cells that are run: of each group the baseline, then the rest in plan order, group after group.
    pub fn by_question(&self) -> Vec<usize> {
        let is_run = |cell: &usize| self.cells[*cell].skip.is_none();
        let groups = self.groups.iter().flat_map(|group| {
            let compared = group.cells.iter().filter(|cell| Some(**cell) != group.baseline);
            group.baseline.iter().chain(compared).map(|cell| *cell as usize)
        });
        groups.filter(is_run).collect()
    }

    /// So many of the first cells by [`Plan::by_question`], without a last one whose group's remaining cells do not fit:
    /// alone it answers nothing.
    pub fn whole_questions(&self, cells: usize) -> u32 {
        let order = self.by_question();
        let group = |at: usize| order.get(at).map(|cell| self.cells[*cell].group);
        let is_split = cells > 2 && group(cells - 1) == group(cells) && group(cells - 1) != group(cells - 2);
        (cells - usize::from(is_split)) as u32
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
        assert_eq!([2, 3, 4, 5, 6].map(|cells| plan.whole_questions(cells)), [2, 3, 3, 5, 6]);
        plan.mark_skipped(1, Skip { kind: crate::SkipKind::Other, reason: "x".to_owned(), remedy: None });
        assert_eq!(plan.by_question(), [0, 2, 4, 3, 5]);
    }
}
