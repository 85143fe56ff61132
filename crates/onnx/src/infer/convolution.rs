//! Operators that slide a window over images: convolutions, pools, and what samples images otherwise.
//!
//! Input: a node; images are `[batch, channels, height, width ...]`, or have the channels last where ONNX Runtime's own
//! operators say so. Output: shapes. Deliberately absent: the blocked layouts that exist inside ONNX Runtime alone.

use super::Value;
use super::layout::shape_from;
use super::shape::{Shape, Size, divide, multiply, product, size_of};
use super::site::{Outputs, Site, single_output};

/// The sizes of a batch of images.
struct Image<'a> {
    batch: Size,
    channels: Size,
    sizes: &'a [Size],
    has_channels_last: bool,
}

impl<'a> Image<'a> {
    /// The first input. ONNX Runtime's own operators may have the channels last, and say so.
    fn of(site: &Site<'a>) -> Option<Self> {
        let has_channels_last = site.is_set("channels_last") || site.node.op_type().starts_with("Nhwc");
        let (batch, channels, sizes) = match site.shape(0)? {
            [batch, sizes @ .., channels] if has_channels_last => (batch, channels, sizes),
            [batch, channels, sizes @ ..] => (batch, channels, sizes),
            _ => return None,
        };
        Some(Image { batch: *batch, channels: *channels, sizes, has_channels_last })
    }

    /// The same batch with other channels and sizes.
    fn with(&self, channels: Size, sizes: Shape) -> Shape {
        let mut shape = vec![self.batch];
        if self.has_channels_last {
            shape.extend(sizes);
            shape.push(channels);
        } else {
            shape.push(channels);
            shape.extend(sizes);
        }
        shape
    }

    /// The kernel by its attribute, else by the weights `[channels, channels / group, kernel ...]`.
    fn kernel(&self, site: &Site<'_>, weights: Option<&[Size]>) -> Shape {
        let asked = site.node.ints("kernel_shape").map(|kernel| kernel.iter().map(|size| size_of(*size)).collect());
        let stored = || Some(weights?.get(2..)?.to_vec());
        asked.or_else(stored).unwrap_or_else(|| vec![None; self.sizes.len()])
    }
}

/// `Conv` and its quantised and fused forms.
pub(super) fn convolve(site: &Site<'_>) -> Outputs {
    let weights = site.shape(if site.node.op_type() == "QLinearConv" { 3 } else { 1 });
    let image = Image::of(site)?;
    let windows = Windows::of(site, image.kernel(site, weights), image.sizes.len())?;
    let channels = weights.and_then(|weights| weights.first().copied().flatten());
    single_output(image.with(channels, windows.counts(image.sizes)))
}

/// The smallest images that a convolution with the weights at `index` has a window for.
pub(super) fn least_sizes(site: &Site<'_>, index: usize) -> Option<Shape> {
    let image = Image::of(site)?;
    let windows = Windows::of(site, image.kernel(site, site.shape(index)), image.sizes.len())?;
    let rank = image.sizes.len();
    let least = |index: usize| {
        let pads = match windows.auto_pad {
            "VALID" => 0,
            "NOTSET" => windows.pads[index].checked_add(windows.pads[index + rank])?,
            _ => return None,
        };
        size_of(windows.extent(index)?.checked_sub(pads)?.max(0))
    };
    Some((0..rank).map(least).collect())
}

/// `MaxPool` and its like; a second output, the indices, has the same shape.
pub(super) fn pool(site: &Site<'_>) -> Outputs {
    let image = Image::of(site)?;
    let windows = Windows::of(site, image.kernel(site, None), image.sizes.len())?;
    let shape = image.with(image.channels, windows.counts(image.sizes));
    Some(vec![Value::of_shape(shape.clone()), Value::of_shape(shape)])
}

/// The windows of a convolution or a pool, one entry for each dimension of the image.
struct Windows<'a> {
    kernel: Shape,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    pads: Vec<i64>,
    auto_pad: &'a str,
    rounds_up: bool,
}

impl<'a> Windows<'a> {
    /// `None` where the attributes are not for images of so many dimensions.
    fn of(site: &Site<'a>, kernel: Shape, rank: usize) -> Option<Self> {
        let list = |name: &str, default: i64, length: usize| match site.node.ints(name) {
            Some(list) if !list.is_empty() => (list.len() == length).then(|| list.to_vec()),
            _ => Some(vec![default; length]),
        };
        if kernel.len() != rank || rank == 0 {
            return None;
        }
        Some(Windows {
            kernel,
            strides: list("strides", 1, rank)?,
            dilations: list("dilations", 1, rank)?,
            pads: list("pads", 0, 2 * rank)?,
            auto_pad: site.node.text("auto_pad").unwrap_or("NOTSET"),
            rounds_up: site.is_set("ceil_mode"),
        })
    }

    /// How many windows there are in each dimension of an image.
    fn counts(&self, image: &[Size]) -> Shape {
        image.iter().enumerate().map(|(index, size)| self.count(index, i64::try_from((*size)?).ok()?)).collect()
    }

    fn count(&self, index: usize, size: i64) -> Size {
        let (stride, rank) = (self.strides[index], self.kernel.len());
        if stride <= 0 {
            return None;
        }
        if self.auto_pad.starts_with("SAME") {
            return size_of(size.checked_add(stride - 1)?.checked_div(stride)?);
        }
        let extent = self.extent(index)?;
        let (before, after) =
            if self.auto_pad == "VALID" { (0, 0) } else { (self.pads[index], self.pads[index + rank]) };
        let room = size.checked_add(before)?.checked_add(after)?.checked_sub(extent)?;
        if room < 0 {
            return None;
        }
        let mut count = (room / stride).checked_add(1)?;
        if self.rounds_up && room % stride != 0 {
            // A window that would begin in the padding behind the image is left out.
            let begins_inside = count.checked_mul(stride)? < size.checked_add(before)?;
            count += i64::from(begins_inside);
        }
        size_of(count)
    }

    /// What a window covers, with its gaps.
    fn extent(&self, index: usize) -> Option<i64> {
        let kernel = i64::try_from(self.kernel[index]?).ok()?;
        kernel.checked_sub(1)?.checked_mul(self.dilations[index])?.checked_add(1)
    }

    /// The sizes of the images whose windows these images are, with so much more at the end.
    fn transposed(&self, image: &[Size], more: &[i64]) -> Shape {
        let more = |index: usize| more.get(index).copied().unwrap_or(0);
        let sizes = image.iter().enumerate();
        sizes.map(|(index, size)| self.covered(index, i64::try_from((*size)?).ok()?, more(index))).collect()
    }

    fn covered(&self, index: usize, size: i64, more: i64) -> Size {
        let (stride, rank) = (self.strides[index], self.kernel.len());
        if self.auto_pad.starts_with("SAME") {
            return size_of(size.checked_mul(stride)?);
        }
        let pads = if self.auto_pad == "VALID" { 0 } else { self.pads[index].checked_add(self.pads[index + rank])? };
        let sum = stride.checked_mul(size.checked_sub(1)?)?.checked_add(more)?.checked_add(self.extent(index)?)?;
        size_of(sum.checked_sub(pads)?)
    }
}

/// `ConvTranspose`; weights are `[channels, channels out / group, kernel ...]`.
pub(super) fn transpose(site: &Site<'_>) -> Outputs {
    let (image, weights) = (Image::of(site)?, site.shape(1));
    let rank = image.sizes.len();
    let channels = weights.and_then(|weights| weights.get(1).copied().flatten());
    let channels = multiply(channels, size_of(site.int_or("group", 1)));
    if let Some(asked) = site.node.ints("output_shape").filter(|asked| asked.len() >= rank && !asked.is_empty()) {
        return single_output(
            image.with(channels, asked[asked.len() - rank..].iter().map(|size| size_of(*size)).collect()),
        );
    }
    let windows = Windows::of(site, image.kernel(site, weights), rank)?;
    let more = site.node.ints("output_padding").unwrap_or_default();
    single_output(image.with(channels, windows.transposed(image.sizes, more)))
}

/// Images of one element.
pub(super) fn global_pool(site: &Site<'_>) -> Outputs {
    let image = Image::of(site)?;
    single_output(image.with(image.channels, vec![Some(1); image.sizes.len()]))
}

/// `MaxUnpool`: the shape in the third input, else what the pool's windows covered.
pub(super) fn unpool(site: &Site<'_>) -> Outputs {
    if site.has(2) {
        return single_output(shape_from(site, 2)?);
    }
    let image = Image::of(site)?;
    let windows = Windows::of(site, image.kernel(site, None), image.sizes.len())?;
    single_output(image.with(image.channels, windows.transposed(image.sizes, &[])))
}

/// `RoiAlign` and `MaxRoiPool`: an image for each region.
pub(super) fn pool_regions(site: &Site<'_>) -> Outputs {
    let (height, width) = match site.node.ints("pooled_shape") {
        Some(sizes) => (sizes.first().copied(), sizes.get(1).copied()),
        None => (Some(site.int_or("output_height", 1)), Some(site.int_or("output_width", 1))),
    };
    single_output(vec![site.size(1, 0), site.size(0, 1), height.and_then(size_of), width.and_then(size_of)])
}

/// `Col2Im`: image sizes are the second input, block sizes the third.
pub(super) fn column_to_image(site: &Site<'_>) -> Outputs {
    let image = shape_from(site, 1)?;
    let block = shape_from(site, 2).and_then(|block| product(&block));
    let head = [site.size(0, 0), divide(site.size(0, 1), block)];
    single_output(head.into_iter().chain(image).collect())
}

/// `GridSample`: an image's batch and channels, a grid's positions.
pub(super) fn sample_grid(site: &Site<'_>) -> Outputs {
    let grid = site.shape(1)?;
    let positions = grid.get(1..grid.len().saturating_sub(1))?;
    single_output([site.size(0, 0), site.size(0, 1)].into_iter().chain(positions.iter().copied()).collect())
}

/// `AffineGrid`: a position with one coordinate for each dimension, for every point of an image.
pub(super) fn affine_grid(site: &Site<'_>) -> Outputs {
    let size = shape_from(site, 1)?;
    let spatial = size.get(2..)?;
    let batch = size.first().copied().flatten();
    let coordinates = Some(spatial.len() as u64);
    single_output([batch].into_iter().chain(spatial.iter().copied()).chain([coordinates]).collect())
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;

    #[test]
    fn windows_are_counted_with_pads_strides_and_gaps() {
        let conv = || case("Conv", "x[N,3,224,224] w[64,3,7,7]");
        conv().ints("pads", &[3, 3, 3, 3]).ints("strides", &[2, 2]).gives("float32 [?, 64, 112, 112]");
        conv().ints("dilations", &[2, 2]).gives("float32 [?, 64, 212, 212]");
        conv().text("auto_pad", "SAME_UPPER").ints("strides", &[3, 3]).gives("float32 [?, 64, 75, 75]");
        conv().text("auto_pad", "VALID").ints("pads", &[3, 3, 3, 3]).gives("float32 [?, 64, 218, 218]");
        conv().ints("strides", &[0, 1]).gives("float32 [?, 64, ?, 218]");
        conv().ints("strides", &[2]).gives("float32 [...]");
        case("Conv", "x[1,3,?,5] w[8,3,9,9]").gives("float32 [1, 8, ?, ?]");
    }

    #[test]
    fn pools_round_up_where_they_are_told_to() {
        let pool = |size: &str| case("MaxPool", &format!("x[1,8,{size}]")).ints("kernel_shape", &[3]);
        pool("8").ints("strides", &[2]).gives("float32 [1, 8, 3]");
        pool("8").ints("strides", &[2]).int("ceil_mode", 1).gives("float32 [1, 8, 4]");
        // The fourth window would begin in the padding.
        pool("5").ints("strides", &[3]).ints("pads", &[0, 2]).int("ceil_mode", 1).gives("float32 [1, 8, 2]");
        pool("5").ints("pads", &[1, 1]).outputs(2).gives("float32 [1, 8, 5]; int64 [1, 8, 5]");
        case("GlobalAveragePool", "x[N,8,7,7]").gives("float32 [?, 8, 1, 1]");
    }

    #[test]
    fn transposed_convolutions_enlarge() {
        let transpose = || case("ConvTranspose", "x[1,8,10,10] w[8,4,3,3]").ints("strides", &[2, 2]);
        transpose().gives("float32 [1, 4, 21, 21]");
        transpose()
            .int("group", 2)
            .ints("pads", &[1, 1, 1, 1])
            .ints("output_padding", &[1, 1])
            .gives("float32 [1, 8, 20, 20]");
        transpose().ints("output_shape", &[20, 19]).gives("float32 [1, 4, 20, 19]");
        transpose().text("auto_pad", "SAME_LOWER").gives("float32 [1, 4, 20, 20]");
    }

    #[test]
    fn samples_of_images_have_the_shape_of_their_places() {
        case("GridSample", "x[2,3,8,8] grid[2,5,6,2]").gives("float32 [2, 3, 5, 6]");
        case("RoiAlign", "x[2,3,8,8] r[7,4] b:int64[7]").int("output_height", 4).gives("float32 [7, 3, 4, 1]");
        case("Col2Im", "x[1,9,16]").list(&[6, 6]).list(&[3, 3]).opset(18).gives("float32 [1, 1, 6, 6]");
    }
}
