//! The time of one operator as a metric, `operator.Conv.self`: there are as many as a specification or a file names.

use super::{Direction, Metric, Unit, interned, metric};

const LONGEST_NAME: usize = 64;

const PREFIX: &str = "operator.";
const SUFFIX: &str = ".self";

impl Metric {
    /// The metric of a text such as `operator.Conv.self`, or of its stored name with the unit behind it; always the same one.
    pub fn of_operator(text: &str) -> Option<&'static Metric> {
        let operator = operator_in(text.strip_suffix("_ns").unwrap_or(text))?;
        interned(&format!("{PREFIX}{operator}{SUFFIX}_ns"), |name| {
            let title = String::leak(format!("{operator} time"));
            let meaning = "own time of the nodes of this operator in an inference, its fused and quantised forms included, by the profile";
            Some(metric(name, title, Unit::Nanoseconds, Direction::LowerIsBetter, meaning))
        })
    }

    /// The operator whose time it is.
    pub fn operator(&self) -> Option<&'static str> {
        operator_in(self.stem())
    }
}

/// `Conv` in `operator.Conv.self`.
fn operator_in(text: &str) -> Option<&str> {
    let operator = text.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    ((1..=LONGEST_NAME).contains(&operator.len()) && operator.chars().all(is_name)).then_some(operator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::MetricReference;

    #[test]
    fn the_time_of_an_operator_is_a_metric() {
        let reference: MetricReference = "operator.Conv.self".parse().expect("a metric");
        assert_eq!(
            (reference.to_string().as_str(), reference.column().as_str()),
            ("operator.Conv.self", "operator.Conv.self_ns")
        );
        assert_eq!(MetricReference::of_column("operator.Conv.self_ns"), Some(reference));
        assert_eq!(reference.metric.operator(), Some("Conv"));
        assert!(std::ptr::eq(reference.metric, Metric::of_operator("operator.Conv.self").expect("the same")));
        for wrong in
            ["operator", "operator.", "operator..self", "operator.Conv", "operator.Conv.p95", "operator.a b.self"]
        {
            assert!(wrong.parse::<MetricReference>().is_err(), "{wrong}");
        }
        assert_eq!(crate::metric::LATENCY.operator(), None);
    }
}
