//! What of a cell ran on the CPU instead of its device.

use std::collections::BTreeMap;

use base::code::{CPU_SHARE_JUDGED, CPU_SHARE_REPORTED};
use base::metric::{self, Metric};
use record::StoredRun;

/// Nodes that the device's provider did not take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fallback {
    /// Nodes by operator.
    pub operators: BTreeMap<String, u64>,
    /// Their part of the time, 0 to 1; `None` where it was not profiled.
    pub share: Option<f64>,
    /// The part of the copies that they call for.
    pub copies: Option<f64>,
}

impl Fallback {
    /// What the completed runs say: all have the same nodes, one was profiled.
    pub(super) fn of(completed: &[&StoredRun]) -> Self {
        let operators = completed.iter().find_map(|run| Some(run.data.placement.as_ref()?.fallback.clone()));
        let value = |metric: &Metric| completed.iter().find_map(|run| run.data.metrics.get(metric.name)).copied();
        let (share, copies) = (value(&metric::FALLBACK), value(&metric::COPIES));
        Fallback { operators: operators.unwrap_or_default(), share, copies }
    }

    /// Whether it is worth reporting; what was not profiled may be.
    pub(crate) fn is_worth_reporting(&self) -> bool {
        let cost = self.share.map(|share| share + self.copies.unwrap_or(0.0));
        !self.operators.is_empty() && cost.is_none_or(|cost| cost >= CPU_SHARE_REPORTED)
    }

    /// Whether the cell is as much one of the CPU as of its device, so that nothing is judged.
    pub(crate) fn is_too_much(&self) -> bool {
        self.share.is_some_and(|share| share > CPU_SHARE_JUDGED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_nodes_that_take_no_time_are_not_told() {
        let outcome = |nodes: u64, share: Option<f64>| {
            let operators = (nodes > 0).then(|| ("Mod".to_owned(), nodes)).into_iter().collect();
            let fallback = Fallback { operators, share, copies: share.map(|_| 0.0) };
            (fallback.is_worth_reporting(), fallback.is_too_much())
        };
        assert_eq!(outcome(0, None), (false, false));
        assert_eq!(outcome(3, Some(0.009)), (false, false));
        assert_eq!(outcome(3, Some(0.01)), (true, false));
        assert_eq!(outcome(3, None), (true, false));
        assert_eq!(outcome(3, Some(0.05)), (true, false));
        assert_eq!(outcome(3, Some(0.051)), (true, true));
        let operators = [("Mod".to_owned(), 1)].into();
        assert!(Fallback { operators, share: Some(0.002), copies: Some(0.6) }.is_worth_reporting());
    }
}
