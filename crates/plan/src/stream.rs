//! What is drawn at random, each from a stream of its own, so that none depends on another (method 4.5).

use std::fmt;

use super::{CellId, Coordinates};
use statistics::random::key_seed;

/// A stream of random numbers by its purpose. Its text names it in every version, so that records can be repeated.
#[derive(Clone, Copy, Debug)]
pub enum RandomStream<'a> {
    GroupOrder,
    /// Of the group that has this cell first.
    MemberOrder(CellId),
    Control,
    /// A set of a tensor of this model at this input point.
    Input(Coordinates<'a>, &'a str, u32),
    /// The tokens that the cache of a decoder holds, of one sequence of a model.
    Context(&'a str, u64),
    /// A set of a tensor of a model that is observed outside a plan.
    ObservedInput(&'a str, u32),
    /// What shifts the stack of a run's process. An A/A copy, named by the kind of its runs, must not share the layout
    /// of its cell, or it would be less than another process.
    Layout(CellId, Option<&'a str>, u32),
    /// All that a script draws in a run of a cell, by what the run is for.
    Script(CellId, &'a str, u32),
    Roofline,
    /// When queries come in the runs of this number.
    Arrivals(u32),
    /// A cell against its baseline in one round.
    Calibration(CellId, u32),
}

impl RandomStream<'_> {
    pub fn seed(self, master: u64) -> u64 {
        key_seed(master, &self.to_string())
    }
}

impl fmt::Display for RandomStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RandomStream::GroupOrder => write!(f, "order"),
            RandomStream::MemberOrder(first) => write!(f, "order/{first}"),
            RandomStream::Control => write!(f, "control"),
            RandomStream::Input(at, tensor, set) => write!(f, "input/{}/{}/{tensor}/{set}", at.model(), at.input()),
            RandomStream::Context(model, row) => write!(f, "context/{model}/{row}"),
            RandomStream::ObservedInput(tensor, set) => write!(f, "input/{tensor}/{set}"),
            RandomStream::Layout(cell, None, run) => write!(f, "env/{cell}/{run}"),
            RandomStream::Layout(cell, Some(aa_copy), run) => write!(f, "env/{cell}/{aa_copy}/{run}"),
            RandomStream::Script(cell, kind, run) => write!(f, "mock/{cell}/{kind}/{run}"),
            RandomStream::Arrivals(run) => write!(f, "arrivals/{run}"),
            RandomStream::Roofline => write!(f, "peak/a"),
            RandomStream::Calibration(cell, round) => write!(f, "calibrate/{cell}/{round}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_stay_what_they_are() {
        let spec = spec::parse("x.yaml", "backend: mock\nmodels: [m]", std::path::Path::new("."), &[]);
        let plan = crate::expand(&spec.expect("a valid spec").experiment).expect("a plan");
        let (cell, at) = ("0123456789abcdef".parse().expect("an id"), plan.coordinates(&plan.cells[0]));
        let seeds = [
            RandomStream::GroupOrder,
            RandomStream::MemberOrder(cell),
            RandomStream::Control,
            RandomStream::Input(at, "x", 1),
            RandomStream::ObservedInput("x", 1),
            RandomStream::Layout(cell, None, 2),
            RandomStream::Layout(cell, Some("aa"), 2),
            RandomStream::Script(cell, "main", 2),
            RandomStream::Roofline,
            RandomStream::Calibration(cell, 3),
        ];
        let pinned: [u64; 10] = [
            0x5eeb_a843_508e_ac0c,
            0x8a97_de59_5c17_4c1c,
            0xcaaf_e041_d4f3_a4df,
            0x5073_10c0_4d3e_31e8,
            0xadc3_2e4b_324f_fd53,
            0x831f_cb69_6103_3305,
            0xceb6_fc00_81c6_9e40,
            0x5556_1009_0b25_412d,
            0xf5f1_2ef2_a8b0_4af0,
            0x626b_3d82_5c9f_d99e,
        ];
        assert_eq!(seeds.map(|stream| stream.seed(42)), pinned);
    }
}
