//! The session entry that ends the spinning of threads where several workers stay alive (method 1.9).
//!
//! With one thread it changes nothing. With more it slows an inference by a share that depends on the model, so that a
//! comparison would be one of the setting too: such variants have to set the entry themselves, or have one thread.

use super::{Design, Runtime, Variant};

/// The entry and the value that slices and duets impose.
pub const SPINNING_STOP: (&str, &str) = ("session.force_spinning_stop", "1");

/// What to do about [`slowed_by_spinning_stop`].
pub const SPINNING_REMEDY: &str =
    "write `threads: 1`, or set `session: { session.force_spinning_stop: 1 }` in the variant, or use `design: blocks`";

/// Entries of ONNX Runtime by which threads do not spin at all.
const INTRA_SPINNING: &str = "session.intra_op.allow_spinning";
const INTER_SPINNING: &str = "session.inter_op.allow_spinning";

impl Design {
    /// Whether workers of several cells are alive at the same time.
    pub fn keeps_several_alive(self) -> bool {
        matches!(self, Design::Slices | Design::Duet)
    }
}

impl Variant {
    /// How many threads that spin the imposed entry would stop after each inference, inside or between operators. `default` is
    /// the number inside an operator where the variant sets none. `None`: one thread, none that spin, or the variant sets
    /// the entry itself.
    fn stopped_threads(&self, default: u32) -> Option<u32> {
        let spins = |entry: &str| self.session.get(entry).is_none_or(|value| value != "0");
        let pools = [
            (self.threads.intra.unwrap_or(default), INTRA_SPINNING),
            (self.threads.inter.unwrap_or(1), INTER_SPINNING),
        ];
        let stopped = pools.into_iter().filter(|(threads, entry)| *threads > 1 && spins(entry));
        stopped.map(|(threads, _)| threads).max().filter(|_| !self.session.contains_key(SPINNING_STOP.0))
    }

    /// Whether it may run on a runtime that reads session entries: ONNX Runtime, or a program that declares so.
    fn takes_session_entries(&self, runtimes: &[Runtime]) -> bool {
        let takes = |runtime: &Runtime| {
            let program = runtime.program.as_ref();
            program.is_none_or(|program| program.declaration().settings.iter().any(|setting| setting == "session"))
        };
        let own = |runtime: &&Runtime| self.runtime.as_ref().is_none_or(|name| runtime.name == *name);
        runtimes.is_empty() || runtimes.iter().filter(own).any(takes)
    }
}

/// Why a design cannot be measured fairly with these variants of models that ONNX Runtime executes, if it cannot: the first
/// variant with several threads that the imposed entry would slow. `default` threads are those of this machine; `None` asks
/// about explicit numbers alone.
pub fn slowed_by_spinning_stop(
    design: Design,
    variants: &[Variant],
    runtimes: &[Runtime],
    default: Option<u32>,
) -> Option<String> {
    let word = match design {
        Design::Blocks | Design::Sequential => return None,
        Design::Slices => "slices",
        Design::Duet => "duet",
    };
    let slowed = |variant: &&Variant| variant.takes_session_entries(runtimes);
    let (variant, threads) = variants
        .iter()
        .filter(slowed)
        .find_map(|variant| Some((variant, variant.stopped_threads(default.unwrap_or(1))?)))?;
    let whose = if variant.threads.intra.is_none() && default == Some(threads) { " by default here" } else { "" };
    Some(format!(
        "`design: {word}` sets `{}`, which slows some models with several threads by a third and others not at all; variant `{}` has {threads} threads{whose}",
        SPINNING_STOP.0, variant.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Adapter, Program, Threads};

    fn variant(intra: Option<u32>, inter: Option<u32>, session: &[(&str, &str)]) -> Variant {
        let session = session.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Variant { name: "v".to_owned(), threads: Threads { intra, inter }, session, ..Variant::default() }
    }

    #[test]
    fn several_threads_that_spin_are_slowed() {
        let stopped = |intra, inter, session: &[_]| variant(intra, inter, session).stopped_threads(4);
        assert_eq!(stopped(Some(1), None, &[]), None);
        assert_eq!(stopped(Some(2), None, &[]), Some(2));
        assert_eq!(stopped(None, None, &[]), Some(4));
        assert_eq!(stopped(Some(1), Some(2), &[]), Some(2));
        assert_eq!(stopped(Some(2), None, &[(INTRA_SPINNING, "0")]), None);
        assert_eq!(stopped(Some(2), Some(3), &[(INTRA_SPINNING, "0")]), Some(3));
        // A variant that sets the entry itself is left alone.
        assert_eq!(stopped(Some(2), None, &[SPINNING_STOP]), None);
        assert_eq!(stopped(Some(2), None, &[(SPINNING_STOP.0, "0")]), None);
    }

    #[test]
    fn what_reads_no_session_entries_is_not_slowed() {
        let of = |name: &str| Runtime {
            name: name.to_owned(),
            program: Some(Program::Adapter { adapter: Adapter::Shipped(name.to_owned()), python: "python3".into() }),
            ..Runtime::default()
        };
        let slowed = |runtimes: &[Runtime]| {
            slowed_by_spinning_stop(Design::Slices, &[variant(Some(2), None, &[])], runtimes, None).is_some()
        };
        assert!(slowed(&[]) && slowed(&[of("onnxruntime")]) && slowed(&[Runtime::default()]));
        assert!(!slowed(&[of("pytorch")]));
    }

    #[test]
    fn the_default_counts_where_it_is_known() {
        let why = |design, default| slowed_by_spinning_stop(design, &[variant(None, None, &[])], &[], default);
        assert_eq!(why(Design::Slices, None), None);
        assert_eq!(why(Design::Slices, Some(1)), None);
        assert_eq!(why(Design::Blocks, Some(2)), None);
        assert!(why(Design::Duet, Some(2)).is_some_and(|why| why.ends_with("has 2 threads by default here")));
    }
}
