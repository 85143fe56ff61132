//! Fourier transforms.
//!
//! Input: a node. Output: its shape, real and imaginary parts along the last dimension. Deliberately absent: the inverse of
//! a one-sided transform, which the standard's versions have differently.

use super::shape::{Size, axis_at, size_of};
use super::site::{Outputs, Site, single_output};

/// `DFT`: as many frequencies as elements along an axis, or as `dft_length` says.
pub(super) fn transform(site: &Site<'_>) -> Outputs {
    let mut shape = site.shape(0)?.to_vec();
    // Since version 20 the axis is an input.
    let axis = match (site.opset < 20, site.has(2)) {
        (true, _) => site.int_or("axis", 1),
        (false, true) => site.scalar(2)?,
        (false, false) => -2,
    };
    let axis = axis_at(axis, shape.len())?;
    let length = if site.has(1) { site.scalar(1).and_then(size_of) } else { shape[axis] };
    if site.is_set("onesided") && site.is_set("inverse") {
        return None;
    }
    shape[axis] = if site.is_set("onesided") { one_side(length) } else { length };
    *shape.last_mut()? = Some(2);
    single_output(shape)
}

/// `STFT`: the transforms of frames, each a step behind the one before.
pub(super) fn transform_frames(site: &Site<'_>) -> Outputs {
    let step = site.scalar(1).and_then(size_of).filter(|step| *step > 0);
    let frame = if site.has(3) { site.scalar(3).and_then(size_of) } else { site.size(2, 0) };
    let frames = || Some((site.size(0, 1)?.checked_sub(frame?)? / step?).saturating_add(1));
    let frequencies = if site.int_or("onesided", 1) != 0 { one_side(frame) } else { frame };
    single_output(vec![site.size(0, 0), frames(), frequencies, Some(2)])
}

/// Of real numbers the other side mirrors this one.
fn one_side(length: Size) -> Size {
    length.map(|length| length / 2 + 1)
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;

    #[test]
    fn transforms_have_frequencies_along_their_axis() {
        case("DFT", "x[1,10,10,1]").gives("float32 [1, 10, 10, 2]");
        case("DFT", "x[1,10,9,1]").int("axis", 2).int("onesided", 1).gives("float32 [1, 10, 5, 2]");
        case("DFT", "x[1,10,9,1]").opset(20).int("onesided", 1).gives("float32 [1, 10, 5, 2]");
        case("DFT", "x[1,10,9,2]").opset(20).scalar(16).scalar(1).gives("float32 [1, 16, 9, 2]");
        case("DFT", "x[1,10,9,2]").int("inverse", 1).int("onesided", 1).gives("float32 [...]");
        case("STFT", "x[1,128,1]").scalar(8).none().scalar(16).gives("float32 [1, 15, 9, 2]");
    }
}
