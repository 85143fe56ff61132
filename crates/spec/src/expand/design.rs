//! Whether the design fits what is compared (method 4.2).

use crate::check::Check;
use crate::document::DocumentPath;
use crate::note::Note;
use experiment::{
    Aa, Axis as AxisName, Boundary, Cache, Compare, Completion, Design, Device, Matrix, Measure, Provider, Runtime,
    SPINNING_REMEDY, Space, Variant, slowed_by_spinning_stop,
};

/// Checks `measure.design`, and takes away the control where nothing is compared by design.
pub(super) fn check(
    measure: &Measure,
    compare: &mut Compare,
    matrix: &Matrix,
    axes: &Space,
    workers: Workers<'_>,
    check: &mut Check<'_>,
) {
    let place = DocumentPath::top("measure").key("design");
    if check.is_damaged(&place) {
        return;
    }
    check_slice_time(measure.design, check);
    check_pipelined(measure, workers.devices, check);
    check_parallel(measure, workers.devices, check);
    if let Some(problem) = workers.slowed(measure.design) {
        check.error(&place, problem, SPINNING_REMEDY.to_owned());
    }
    let compared = match check.is_damaged(&DocumentPath::top("compare").key("baseline")) || !axes.are_complete() {
        true => None,
        false => Some(Compared::new(compare, matrix, axes)),
    };
    match measure.design {
        Design::Blocks | Design::Slices => {}
        Design::Duet => {
            check_duet(compared.as_ref(), workers.devices, &place, check);
            check_wraps(workers.variants, check);
        }
        Design::Sequential => {
            if let Some(compared) = compared.filter(|compared| compared.cells > 1) {
                let message =
                    format!("`design: sequential` compares nothing, but {} are to be compared", compared.words);
                check.error(&place, message, "leave the key out: `blocks` measures them side by side".to_owned());
            }
            take_control(compare, check);
        }
    }
}

/// What the processes that measure have of their own.
pub(super) struct Workers<'a> {
    pub(super) devices: &'a [Device],
    pub(super) variants: &'a [Variant],
    /// Nothing where no model is executed.
    pub(super) runtimes: Option<&'a [Runtime]>,
}

impl Workers<'_> {
    /// Why the numbers of threads that variants set do not fit a design. Those of the machine are not known here.
    fn slowed(&self, design: Design) -> Option<String> {
        slowed_by_spinning_stop(design, self.variants, self.runtimes?, None)
    }
}

/// What a group has, before `exclude` and `include`.
struct Compared {
    /// Cells of a group.
    cells: usize,
    /// The same in words: `3 variants`, `4 cells on variants and devices`.
    words: String,
}

impl Compared {
    fn new(compare: &Compare, matrix: &Matrix, axes: &Space) -> Self {
        let compared = axes.compared(compare.baseline.as_ref());
        // Axes that walk together count once.
        let leads = |axis: &AxisName| {
            let zip = matrix.zip.iter().find(|zip| zip.contains(axis));
            let leader = zip.and_then(|zip| compared.iter().find(|other| zip.contains(other)));
            leader.is_none_or(|leader| leader == axis)
        };
        let lengths = compared.iter().filter(|axis| leads(axis)).map(|axis| axes.most_entries(*axis) as u128);
        let cells = matrix.design.count(lengths) as usize;
        let words = match compared.as_slice() {
            [only] => format!("{cells} {}", only.plural()),
            several => {
                let names: Vec<&str> = several.iter().map(|axis| axis.plural()).collect();
                format!("{cells} cells that differ in {}", names.join(" and "))
            }
        };
        Compared { cells, words }
    }
}

fn check_slice_time(design: Design, check: &mut Check<'_>) {
    let place = DocumentPath::top("measure").key("slice_time");
    let word = match design {
        Design::Slices | Design::Duet => return,
        Design::Blocks => "blocks",
        Design::Sequential => "sequential",
    };
    if check.has(&place) {
        let message = format!("`slice_time` has no effect with `design: {word}`, which has no slices");
        check.warn(&place, message, "write `design: slices` or `design: duet`, or leave it out");
    }
}

/// Where it could not be measured, a key that asks for it would do nothing.
fn check_pipelined(measure: &Measure, devices: &[Device], check: &mut Check<'_>) {
    let place = DocumentPath::top("measure").key("pipelined");
    let has_stream =
        |device: &Device| Provider::of(device).is_some_and(|provider| provider.completion == Completion::Stream);
    let problem = match () {
        () if measure.pipelined.is_none() || check.is_damaged(&DocumentPath::top("devices")) => return,
        () if !devices.iter().any(has_stream) => "`pipelined` is only available for cuda and tensorrt",
        () if measure.boundary == Boundary::Host => "with `boundary: host` every call waits for its copies",
        () if measure.cache == Cache::Cold => "with several inferences in flight the caches are not cold",
        () => return,
    };
    check.error(&place, problem.to_owned(), "leave `pipelined` out".to_owned());
}

/// Lanes are of whole runs, and there are as many as devices.
fn check_parallel(measure: &Measure, devices: &[Device], check: &mut Check<'_>) {
    let place = DocumentPath::top("measure").key("parallel");
    if measure.parallel.is_some() && measure.design != Design::Blocks {
        let message = "`parallel: devices` is only available with `design: blocks`".to_owned();
        check.error(&place, message, "leave one of the two out".to_owned());
    } else if measure.parallel.is_some() && devices.len() < 2 {
        check.warn(&place, "`parallel: devices` has no effect with one device", "name another in `devices`");
    }
}

fn check_duet(compared: Option<&Compared>, devices: &[Device], place: &DocumentPath, check: &mut Check<'_>) {
    if let Some(device) = devices.iter().find(|device| device.provider != "cpu") {
        let message = format!(
            "`design: duet` gives each side half of the processor, so it is for `cpu` alone, and `devices` has `{}`",
            device.label()
        );
        check.error(place, message, "use `design: blocks` or `slices`, or leave the device out".to_owned());
    }
    match compared {
        Some(Compared { cells: 1, .. }) => {
            let message = "`design: duet` measures two things side by side, and nothing is compared here";
            check.error(place, message, "give `variants` two entries, or leave the key out".to_owned());
        }
        Some(Compared { cells, words }) if *cells != 2 => {
            let message = format!("`design: duet` measures two things at a time, but {words} are to be compared");
            check.error(place, message, "compare two, or use `design: slices`, which takes any number".to_owned());
        }
        _ => {}
    }
}

/// A duet puts its workers on the cores of their side, whatever their command was bound to.
fn check_wraps(variants: &[Variant], check: &mut Check<'_>) {
    let binds = |command: &String| ["taskset", "numactl"].iter().any(|program| command.ends_with(program));
    for variant in variants.iter().filter(|variant| variant.wrap.first().is_some_and(binds)) {
        let message = format!("`wrap` of `{}` binds processors, which `design: duet` does by itself", variant.name);
        let hint = "the cores in `wrap` have no effect; leave it out, or start perfrun itself under taskset";
        check.warn(&DocumentPath::top("variants"), message, hint);
    }
}

/// A control is a comparison too, and one that is made sequentially shows nothing but drift.
fn take_control(compare: &mut Compare, check: &mut Check<'_>) {
    let place = DocumentPath::top("compare").key("aa");
    if compare.aa == Aa::Off || check.is_damaged(&place) {
        return;
    }
    if check.has(&place) {
        let message = "a control is a comparison, and `design: sequential` makes none";
        check.error(&place, message, "write `aa: off`, or leave it out".to_owned());
        return;
    }
    compare.aa = Aa::Off;
    check.notes.push(Note::NoControl);
}

#[cfg(test)]
mod tests {
    use crate::expand::tests::{mock, mock_with, notes, problems, warnings};
    use base::quantity::Nanos;
    use experiment::Cache;

    use super::*;

    #[test]
    fn designs_are_read() {
        let measure = mock("measure: { design: slices, slice_time: 1s, cache: cold, cooldown: 0s }").measure;
        assert_eq!((measure.design, measure.slice_time), (Design::Slices, Nanos::from_secs(1)));
        assert_eq!((measure.cache, measure.cooldown), (Cache::Cold, Nanos(0)));
        assert_eq!(mock_with("", &["measure.design=slices"]).measure.design, Design::Slices);
        assert_eq!(mock("").measure, Measure::default());
    }

    #[test]
    fn slices_without_a_design_that_has_them_are_warned_of() {
        assert_eq!(warnings("measure: { slice_time: 1s }").len(), 1);
        assert!(warnings("variants: [a, b]\nmeasure: { slice_time: 1s, design: duet }").is_empty());
    }

    #[test]
    fn a_script_has_as_many_threads_as_it_likes() {
        assert!(problems("variants: [{ threads: 4 }]\nmeasure: { design: slices }").is_empty());
    }

    #[test]
    fn a_duet_is_of_two() {
        let duet = |rest: &str| problems(&format!("measure: {{ design: duet }}\n{rest}")).len();
        assert_eq!(duet("variants: [a, b]"), 0);
        assert_eq!(duet("variants: [a, b]\ninputs: { batch: [1, 8] }"), 0);
        assert_eq!(duet("variants: [a, b, c]"), 1);
        assert_eq!(duet("variants: [a, b]\ninputs: { batch: [1, 8] }\ncompare: { baseline: { batch: 1 } }"), 0);
        assert_eq!(
            duet("variants: [a, b]\ninputs: { batch: [1, 8] }\ncompare: { baseline: { batch: 1, variant: a } }"),
            1
        );
        // Axes that walk together count once.
        let zipped = "matrix: { zip: [[variants, inputs]] }\ncompare: { baseline: { batch: 1, variant: a } }";
        assert_eq!(duet(&format!("variants: [a, b]\ninputs: {{ batch: [1, 8] }}\n{zipped}")), 0);
    }

    #[test]
    fn what_is_measured_in_sequence_has_no_control() {
        let text = "inputs: { batch: [1, 8] }\nmeasure: { design: sequential }";
        assert_eq!(mock(text).compare.aa, Aa::Off);
        assert_eq!(notes(text), [Note::NoControl]);
        let off = format!("{text}\ncompare: {{ aa: off }}");
        assert!(notes(&off).is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_not_judged() {
        // The variant is wrong, so that nobody knows how many there are.
        assert_eq!(problems("measure: { design: duet }\nvariants: [a, { base: none }, c]").len(), 1);
        assert_eq!(problems("measure: { design: sequential }\nvariants: [a, b]\ncompare: { baseline: x }").len(), 1);
    }
}
