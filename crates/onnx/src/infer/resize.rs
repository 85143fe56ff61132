//! `Resize` and `Upsample`.
//!
//! Input: a node. Output: the shape, from scales or sizes. Deliberately absent: how the elements are interpolated.

use super::Value;
use super::layout::shape_from;
use super::shape::{Shape, Size, axis_at};
use super::site::{Outputs, Site, single_output};

/// Before this version the second input was the scales.
const RESIZE_WITH_REGION: i64 = 11;

/// `Resize`: inputs are X, a region, scales and sizes, of which one is there.
pub(super) fn resize(site: &Site<'_>) -> Outputs {
    let shape = site.shape(0)?;
    if site.opset < RESIZE_WITH_REGION {
        return scaled(shape, None, site.floats(1));
    }
    let axes: Option<Vec<usize>> = match site.node.ints("axes") {
        Some(axes) => Some(axes.iter().map(|axis| axis_at(*axis, shape.len())).collect::<Option<_>>()?),
        None => None,
    };
    // Scales may be there and empty, which says that they are not.
    let has_scales = site.has(2) && site.value(2).and_then(Value::elements) != Some(0);
    if has_scales || !site.has(3) {
        return scaled(shape, axes, site.floats(2));
    }
    let Some(sizes) = shape_from(site, 3) else { return single_output(vec![None; shape.len()]) };
    let axes = axes.unwrap_or_else(|| (0..shape.len()).collect());
    if axes.len() != sizes.len() {
        return None;
    }
    let policy = site.node.text("keep_aspect_ratio_policy").unwrap_or("stretch");
    let mut resized: Shape = shape.to_vec();
    for (axis, size) in axes.iter().zip(fitted(shape, &axes, sizes, policy)) {
        resized[*axis] = size;
    }
    single_output(resized)
}

/// The sizes that are asked for, or one scale for all of them that does not pass, or does not fall short of, any.
fn fitted(shape: &[Size], axes: &[usize], sizes: Shape, policy: &str) -> Shape {
    if policy == "stretch" {
        return sizes;
    }
    let scale = |(axis, size): (&usize, &Size)| Some((*size)? as f32 / shape[*axis]? as f32);
    let scales: Option<Vec<f32>> = axes.iter().zip(&sizes).map(scale).collect();
    let pick = if policy == "not_larger" { f32::min } else { f32::max };
    match scales.and_then(|scales| scales.into_iter().reduce(pick)) {
        Some(scale) => axes.iter().map(|axis| Some((scale * shape[*axis]? as f32).round() as u64)).collect(),
        None => vec![None; sizes.len()],
    }
}

/// `Upsample`: scales are an attribute or the second input.
pub(super) fn upsample(site: &Site<'_>) -> Outputs {
    let shape = site.shape(0)?;
    let attribute = site.node.named_attribute("scales");
    let scales = match (attribute, site.node.float("height_scale"), site.node.float("width_scale")) {
        (Some(scales), _, _) => Some(scales.floats.iter().copied().map(f64::from).collect()),
        (None, Some(height), Some(width)) => Some(vec![1.0, 1.0, f64::from(height), f64::from(width)]),
        _ => site.floats(1),
    };
    scaled(shape, None, scales)
}

fn scaled(shape: &[Size], axes: Option<Vec<usize>>, scales: Option<Vec<f64>>) -> Outputs {
    let axes = axes.unwrap_or_else(|| (0..shape.len()).collect());
    let mut resized = shape.to_vec();
    match scales.filter(|scales| scales.len() == axes.len()) {
        Some(scales) => {
            for (axis, scale) in axes.iter().zip(scales) {
                resized[*axis] = shape[*axis].map(|size| times(size, scale));
            }
        }
        None => axes.iter().for_each(|axis| resized[*axis] = None),
    }
    single_output(resized)
}

/// In single precision, as runtimes do it: 10 times 2.1 is 21 there, and 20.99 in double precision.
fn times(size: u64, scale: f64) -> u64 {
    (size as f32 * scale as f32).floor() as u64
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;

    #[test]
    fn images_are_scaled_or_given_a_size() {
        case("Resize", "x[1,3,10,7]").none().floats(&[1.0, 1.0, 2.1, 0.5]).gives("float32 [1, 3, 21, 3]");
        case("Resize", "x[1,3,10,7]").floats(&[1.0, 1.0, 2.0, 2.0]).opset(10).gives("float32 [1, 3, 20, 14]");
        case("Resize", "x[1,3,10,7]").none().none().list(&[1, 3, 5, 6]).gives("float32 [1, 3, 5, 6]");
        let sizes = || case("Resize", "x[1,3,10,20]").none().none().list(&[30, 30]).ints("axes", &[2, 3]).opset(18);
        sizes().gives("float32 [1, 3, 30, 30]");
        sizes().text("keep_aspect_ratio_policy", "not_larger").gives("float32 [1, 3, 15, 30]");
        sizes().text("keep_aspect_ratio_policy", "not_smaller").gives("float32 [1, 3, 30, 60]");
        case("Resize", "x[1,3,10,7] r[0] s[4]").gives("float32 [?, ?, ?, ?]");
        case("Upsample", "x[1,3,10,7]").floats(&[1.0, 1.0, 3.0, 3.0]).opset(9).gives("float32 [1, 3, 30, 21]");
    }
}
