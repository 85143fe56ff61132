//! What is said of outputs beside the reference's, in words: terminal, answer, reports and `perfrun convert` have them
//! from here.

use super::{Agreement, Fidelity};
use crate::experiment::FidelityLimits;

/// Where nothing says how right the outputs are.
pub const ACCURACY_NOT_MEASURED: &str = "accuracy not measured";

/// Where a variant is marked as one whose outputs are not the reference's.
pub(crate) const OUTPUTS_DIFFER: &str = "outputs differ";

impl Fidelity {
    /// Judges the classes that are put first, for items of data alone: of random inputs they tell nothing.
    ///
    /// A limit of the specification's own was judged when the outputs were compared.
    pub fn judge_classes(&mut self, limits: &FidelityLimits) {
        let Some(agreement) = self.agreement.filter(|_| self.items_of_data.is_some()) else { return };
        self.is_judged = true;
        let miss = changed(&agreement);
        if limits.top1.is_none() && has_changed(&agreement) && !self.misses.contains(&miss) {
            self.misses.push(miss);
        }
    }

    /// `agree`, `differs: 1 in 4 top classes changed`, `close on random data, accuracy not measured`.
    ///
    /// Outputs agree where items of data say so, at least 95 % of them by their top class where they have classes.
    pub fn words(&self) -> String {
        let changed = self.agreement.as_ref().filter(|agreement| has_changed(agreement)).map(changed);
        match (self.passes(), self.is_judged, self.items_of_data) {
            (false, ..) => format!("differs: {}", self.misses.join("; ")),
            _ if self.elements == 0 => "no number to compare".to_owned(),
            (true, true, None) if self.is_given => format!("close on the given inputs, {ACCURACY_NOT_MEASURED}"),
            (true, true, None) => format!("close on random data, {ACCURACY_NOT_MEASURED}"),
            (true, false, None) => format!("not judged, {ACCURACY_NOT_MEASURED}"),
            (true, false, Some(_)) => "not judged".to_owned(),
            // The specification's own limit allows it, or the labels say that it does no harm.
            (true, true, Some(_)) => changed.unwrap_or_else(|| "agree".to_owned()),
        }
    }

    /// The same in a word, for a table: `agree`, `differ`, `close` where the inputs were random.
    pub(crate) fn in_a_word(&self) -> &'static str {
        match (self.passes(), self.is_judged, self.items_of_data) {
            (false, ..) => "differ",
            _ if self.elements == 0 => "not compared",
            (true, false, _) => "not judged",
            (true, true, None) => "close",
            (true, true, Some(_)) => "agree",
        }
    }

    /// `cosine 0.9994, top-1 99.2 %`, without classes where the inputs were random.
    pub fn evidence(&self) -> String {
        let classes = self.agreement.filter(|_| self.items_of_data.is_some());
        let top1 = classes.map(|agreement| format!(", top-1 {:.1} %", 100.0 * agreement.top1()));
        format!("cosine {:.4}{}", self.cosine, top1.unwrap_or_default())
    }
}

/// Whether fewer items keep their top class than outputs that agree.
fn has_changed(agreement: &Agreement) -> bool {
    agreement.top1() < FidelityLimits::LEAST_TOP1
}

/// `1 in 4 top classes changed`: the nearest share with a denominator of ten at most, below a tenth one of so many.
fn changed(agreement: &Agreement) -> String {
    const MOST_PARTS: u32 = 10;
    let share = 1.0 - agreement.top1();
    if agreement.same_first == 0 {
        return "every top class changed".to_owned();
    }
    let (mut part, mut parts) = (1, (1.0 / share).round());
    if share > 1.0 / f64::from(MOST_PARTS) {
        let all = (2..=MOST_PARTS).flat_map(|parts| (1..parts).map(move |part| (part, parts)));
        let error = |(part, parts): &(u32, u32)| (f64::from(*part) / f64::from(*parts) - share).abs();
        // Of equal ones the first, which has the smallest denominator.
        if let Some(nearest) = all.min_by(|one, other| error(one).total_cmp(&error(other))) {
            (part, parts) = (nearest.0, f64::from(nearest.1));
        }
    }
    format!("{part} in {parts:.0} top classes changed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fidelity(items_of_data: Option<u64>, same_first: u64, items: u64) -> Fidelity {
        Fidelity {
            input_sets: 1,
            items_of_data,
            is_given: false,
            elements: 10,
            cosine: 0.9992,
            max_abs: 0.1,
            mean_abs: 0.1,
            max_scaled: None,
            mean_scaled: None,
            max_scaled_ulp: None,
            close: None,
            agreement: Some(Agreement { items, same_first, shared_of_five: 0, items_of_five: 0 }),
            misses: Vec::new(),
            is_judged: true,
        }
    }

    fn judged(items_of_data: Option<u64>, same_first: u64, items: u64) -> Fidelity {
        let mut judged = fidelity(items_of_data, same_first, items);
        judged.judge_classes(&FidelityLimits::default());
        judged
    }

    #[test]
    fn on_data_outputs_agree_where_the_classes_do() {
        let agree = judged(Some(540), 513, 540);
        assert_eq!((agree.passes(), agree.words().as_str()), (true, "agree"));
        assert_eq!(agree.evidence(), "cosine 0.9992, top-1 95.0 %");
        let differs = judged(Some(540), 405, 540);
        assert_eq!((differs.passes(), differs.words().as_str()), (false, "differs: 1 in 4 top classes changed"));
        let mut twice = differs.clone();
        twice.judge_classes(&FidelityLimits::default());
        assert_eq!(twice, differs);
    }

    #[test]
    fn of_random_data_nothing_is_said_about_classes() {
        for same in [0, 6, 8] {
            let close = judged(None, same, 8);
            assert_eq!(close.words(), "close on random data, accuracy not measured");
            assert_eq!((close.passes(), close.evidence().as_str()), (true, "cosine 0.9992"));
        }
        let unjudged = Fidelity { is_judged: false, ..fidelity(None, 8, 8) };
        assert_eq!(unjudged.words(), "not judged, accuracy not measured");
        let values = Fidelity { agreement: None, ..fidelity(Some(50), 0, 0) };
        assert_eq!(values.words(), "agree");
    }

    #[test]
    fn a_limit_of_the_specification_stands_in_place_of_the_usual_one() {
        let mut own = fidelity(Some(100), 90, 100);
        own.judge_classes(&FidelityLimits { top1: Some(0.8), ..FidelityLimits::default() });
        assert_eq!((own.passes(), own.words().as_str()), (true, "1 in 10 top classes changed"));
    }

    #[test]
    fn shares_are_said_in_small_numbers() {
        let said = |same, items| changed(&Agreement { items, same_first: same, ..Agreement::default() });
        let all = [(460, 540), (2, 3), (1, 3), (1, 100), (94, 100), (6, 10), (0, 4)].map(|(same, of)| said(same, of));
        let words = ["1 in 7", "1 in 3", "2 in 3", "9 in 10", "1 in 17", "2 in 5", "every"];
        for (all, words) in all.iter().zip(words) {
            assert!(all.starts_with(words), "{all}, not {words}");
        }
    }
}
