//! What is drawn at random, each from a stream of its own, so that none depends on another (method 4.5).

use std::fmt;

use statistics::random::key_seed;

use super::{CellId, Coordinates};

/// A stream of random numbers by its purpose. Its text names it in every version, so that records can be repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream<'a> {
    /// The order of groups.
    Groups,
    /// The order of the arms of the group that has this cell first.
    Arms(CellId),
    /// The group that has the control.
    Control,
    /// One set of one input tensor of a model.
    Input { at: Coordinates<'a>, tensor: &'a str, set: u32 },
    /// The same for a model that is observed outside a plan.
    ObservedInput { tensor: &'a str, set: u32 },
    /// What shifts the stack of a run's process; a double, named by its arm, must not share the layout of its cell, or it would be
    /// less than another process.
    Layout { cell: CellId, double: Option<&'a str>, run: u32 },
    /// Everything that a scripted run draws.
    Script { cell: CellId, arm: &'a str, run: u32 },
    /// The matrices of a roofline's trial.
    Roofline,
    /// The resampling of one comparison in a calibration.
    Calibration { cell: CellId, round: u32 },
}

impl Stream<'_> {
    /// The seed of the stream below a master seed.
    pub(crate) fn seed(self, master: u64) -> u64 {
        key_seed(master, &self.to_string())
    }
}

impl fmt::Display for Stream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stream::Groups => write!(f, "order"),
            Stream::Arms(first) => write!(f, "order/{first}"),
            Stream::Control => write!(f, "control"),
            Stream::Input { at, tensor, set } => write!(f, "input/{}/{}/{tensor}/{set}", at.model(), at.input()),
            Stream::ObservedInput { tensor, set } => write!(f, "input/{tensor}/{set}"),
            Stream::Layout { cell, double: None, run } => write!(f, "env/{cell}/{run}"),
            Stream::Layout { cell, double: Some(arm), run } => write!(f, "env/{cell}/{arm}/{run}"),
            Stream::Script { cell, arm, run } => write!(f, "mock/{cell}/{arm}/{run}"),
            Stream::Roofline => write!(f, "peak/a"),
            Stream::Calibration { cell, round } => write!(f, "calibrate/{cell}/{round}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_stay_what_they_are() {
        let spec = crate::spec::parse("x.yaml", "backend: mock\nmodels: [m]", std::path::Path::new("."), &[]);
        let plan = crate::plan::expand(&spec.expect("a valid spec").experiment).expect("a plan");
        let (cell, at) = ("0123456789abcdef".parse().expect("an id"), plan.coordinates(&plan.cells[0]));
        let seeds = [
            Stream::Groups,
            Stream::Arms(cell),
            Stream::Control,
            Stream::Input { at, tensor: "x", set: 1 },
            Stream::ObservedInput { tensor: "x", set: 1 },
            Stream::Layout { cell, double: None, run: 2 },
            Stream::Layout { cell, double: Some("aa"), run: 2 },
            Stream::Script { cell, arm: "main", run: 2 },
            Stream::Roofline,
            Stream::Calibration { cell, round: 3 },
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
