//! Selectors against a plan.

use super::Plan;
use experiment::{CompiledSelector, Selector};

/// Whether a selector matches no cell of a plan, which is said and no error.
pub fn is_idle(selector: &Selector, plan: &Plan) -> bool {
    let compiled = CompiledSelector::new(selector, &plan.axes);
    !plan.cells.iter().any(|cell| compiled.matches(&cell.at))
}
