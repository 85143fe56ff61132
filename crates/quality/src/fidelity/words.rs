//! How outputs differ from the reference's, in words: terminal, answer, reports and `perfrun convert` have them
//! from here.

use super::equality::falls_short;
use super::{Agreement, Equal, Fidelity, ItemsKept, Language};
use experiment::{FidelityLimits, Precision};

/// Where nothing says how right the outputs are.
pub const ACCURACY_NOT_MEASURED: &str = "accuracy not measured";

/// Where a variant is marked as one whose outputs are not the reference's.
pub const OUTPUTS_DIFFER: &str = "outputs differ";

impl Fidelity {
    /// Judges scores of a model that also gives labels: a limit that they miss counts where more items miss it than
    /// labels may change.
    pub fn judge_scores(&mut self, limits: &FidelityLimits, precision: Precision) {
        let Some(ItemsKept { items, kept }) = self.items_kept.filter(|_| !self.reference_varies) else { return };
        let usual = FidelityLimits::least_equal(precision, self.items_of_data.is_some());
        if limits.equal.or(usual).is_none_or(|least| falls_short(kept, items, least)) {
            self.judge_numbers(limits);
        }
    }

    /// Judges classes by perfrun's own limits: those of outputs that are classes, and, for items of data alone, those that
    /// scores put first: of random inputs they mean nothing.
    ///
    /// A limit of the specification's own was judged when the outputs were compared.
    pub fn judge_classes(&mut self, limits: &FidelityLimits, precision: Precision) {
        if self.reference_varies {
            return;
        }
        if let (Some(least), None) =
            (FidelityLimits::least_equal(precision, self.items_of_data.is_some()), limits.equal)
        {
            self.judge_equal(least);
        }
        let Some(agreement) = self.agreement.filter(|_| self.items_of_data.is_some()) else { return };
        self.is_judged = true;
        if limits.top1.is_none() && falls_short(agreement.same_first, agreement.items, FidelityLimits::LEAST_TOP1) {
            self.miss(changed(&agreement));
        }
    }

    /// `agree`, `differs: 1 in 4 top classes changed`, `close on random data, accuracy not measured`.
    ///
    /// Outputs agree where items of data say so, at least 95 % of them by their top class where they have classes.
    pub fn words(&self) -> String {
        let changed = self.agreement.as_ref().filter(|agreement| has_changed(agreement)).map(changed);
        match (self.passes(), self.is_judged, self.items_of_data) {
            (false, ..) => format!("differs: {}", self.misses.join("; ")),
            _ if self.elements == Some(0) => "nothing to compare".to_owned(),
            _ if self.reference_varies => "not judged, different in a second inference".to_owned(),
            (true, true, None) if self.is_given => format!("close on the given inputs, {ACCURACY_NOT_MEASURED}"),
            (true, true, None) => format!("close on random data, {ACCURACY_NOT_MEASURED}"),
            (true, false, None) => format!("not judged, {ACCURACY_NOT_MEASURED}"),
            (true, false, Some(_)) => "not judged".to_owned(),
            // The specification's own limit allows it, or the labels say that it does no harm.
            (true, true, Some(_)) => changed.unwrap_or_else(|| "agree".to_owned()),
        }
    }

    /// The same in a word, for a table: `agree`, `differ`, `close` where the inputs were random.
    pub fn in_a_word(&self) -> &'static str {
        match (self.passes(), self.is_judged, self.items_of_data) {
            (false, ..) => "differ",
            _ if self.elements == Some(0) => "not compared",
            (true, false, _) => "not judged",
            (true, true, None) => "close",
            (true, true, Some(_)) => "agree",
        }
    }

    /// `cosine 0.9994, top-1 99.2 %`, `label: 98.4 % of elements equal, probabilities: cosine 0.9999`: of each kind the
    /// output that is least like the reference's; without classes of scores where the inputs were random.
    pub fn evidence(&self) -> String {
        let classes = self.agreement.filter(|_| self.items_of_data.is_some());
        let top1 = classes.map(|agreement| format!("top-1 {:.1} %", 100.0 * agreement.top1()));
        let output = self.cosine_of.as_ref().map(|output| format!("{output}: ")).unwrap_or_default();
        // Of scores of tokens the divergence says more.
        let has_divergence = self.language.as_ref().is_some_and(|language| language.divergence.is_some());
        let cosine = self.cosine.filter(|_| !has_divergence).map(|cosine| format!("{output}cosine {cosine:.4}"));
        let language = self.language.iter().flat_map(Language::words);
        let parts = self.least_equal().map(Equal::words).into_iter().chain(cosine).chain(top1).chain(language);
        parts.collect::<Vec<_>>().join(", ")
    }
}

impl Equal {
    /// `label: 98.4 % of elements equal`, `label: 7 of 8 elements equal, 1 of them tied`.
    pub fn words(&self) -> String {
        let tied = if self.tied > 0 { format!(", {} of them tied", self.tied) } else { String::new() };
        format!("{}: {} equal{tied}", self.output, self.count())
    }

    /// `label: 98.4 % of elements equal, required 99 %`.
    pub(super) fn miss(&self, least: f64) -> String {
        format!("{}, required {} %", self.words(), 100.0 * least)
    }

    /// `98.4 % of elements`, of few `7 of 8 elements`.
    fn count(&self) -> String {
        /// One is less than a percent.
        const MANY: u64 = 100;
        if self.elements < MANY {
            return format!("{} of {} elements", self.equal, self.elements);
        }
        // What is not whole does not read like it.
        let percent = 100.0 * self.share();
        let shown = |decimals: usize| format!("{percent:.decimals$}");
        let decimals = (1..=6).find(|decimals| self.equal == self.elements || !shown(*decimals).starts_with("100"));
        format!("{} % of elements", shown(decimals.unwrap_or(6)))
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
        if let Some(nearest) = all.min_by(|left, right| error(left).total_cmp(&error(right))) {
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
            language: None,
            input_sets: 1,
            items_of_data,
            is_given: false,
            reference_varies: false,
            elements: Some(10),
            cosine: Some(0.9992),
            cosine_of: None,
            max_abs: 0.1,
            mean_abs: Some(0.1),
            max_scaled: None,
            mean_scaled: None,
            max_scaled_ulp: None,
            close: None,
            agreement: Some(Agreement { items, same_first, shared_of_five: 0, items_of_five: 0 }),
            items_kept: None,
            equal: Vec::new(),
            misses: Vec::new(),
            is_judged: true,
        }
    }

    fn judged(items_of_data: Option<u64>, same_first: u64, items: u64) -> Fidelity {
        let mut judged = fidelity(items_of_data, same_first, items);
        judged.judge_classes(&FidelityLimits::default(), Precision::Int8);
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
        twice.judge_classes(&FidelityLimits::default(), Precision::Int8);
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
    fn a_handful_of_items_shows_no_change_of_classes() {
        let few = judged(Some(20), 18, 20);
        assert_eq!((few.passes(), few.words().as_str()), (true, "1 in 10 top classes changed"));
        assert!(!judged(Some(200), 178, 200).passes());
    }

    #[test]
    fn of_several_outputs_the_worst_is_named() {
        let equal = |output: &str, equal, elements| Equal { output: output.to_owned(), elements, equal, tied: 0 };
        let mut both = Fidelity {
            cosine: Some(0.99991),
            cosine_of: Some("probabilities".to_owned()),
            equal: vec![equal("mask", 500, 500), equal("label", 984, 1000)],
            ..fidelity(None, 0, 0)
        };
        assert_eq!(both.evidence(), "label: 98.4 % of elements equal, probabilities: cosine 0.9999");
        let strict = FidelityLimits { equal: Some(0.995), ..FidelityLimits::default() };
        both.judge_classes(&strict, Precision::Fp32);
        assert!(both.passes(), "the specification's limit was judged before");
        both.judge_classes(&FidelityLimits::default(), Precision::Fp32);
        assert_eq!(both.words(), "differs: label: 98.4 % of elements equal, required 99.9 %");
    }

    #[test]
    fn a_limit_of_the_specification_stands_in_place_of_the_usual_one() {
        let mut with_limit = fidelity(Some(100), 90, 100);
        with_limit.judge_classes(&FidelityLimits { top1: Some(0.8), ..FidelityLimits::default() }, Precision::Int8);
        assert_eq!((with_limit.passes(), with_limit.words().as_str()), (true, "1 in 10 top classes changed"));
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
