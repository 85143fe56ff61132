//! A curve with fewer points that looks the same: Ramer 1972, Douglas and Peucker 1973.

type Point = (f64, f64);

/// Smallest distance in points that an eye could see.
const FINEST: f64 = 0.12;

/// At most `most` of the curve's own points, the ends among them (at least two are kept).
pub(super) fn simplified(curve: &[Point], most: usize) -> Vec<Point> {
    let mut tolerance = FINEST;
    loop {
        let fewer = within(curve, tolerance);
        if fewer.len() <= most.max(2) {
            return fewer;
        }
        tolerance *= 1.5;
    }
}

/// The points without which the curve would move by more than `tolerance`.
fn within(curve: &[Point], tolerance: f64) -> Vec<Point> {
    let Some(last) = curve.len().checked_sub(1) else { return Vec::new() };
    let mut kept = vec![false; curve.len()];
    (kept[0], kept[last]) = (true, true);
    let mut open = vec![(0, last)];
    while let Some((first, last)) = open.pop() {
        let distances = (first + 1..last).map(|index| (index, distance(curve[index], curve[first], curve[last])));
        let farthest = distances.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        if let Some((index, _)) = farthest.filter(|(_, distance)| *distance > tolerance) {
            kept[index] = true;
            open.extend([(first, index), (index, last)]);
        }
    }
    curve.iter().zip(kept).filter(|(_, kept)| *kept).map(|(point, _)| *point).collect()
}

/// Distance of a point from the line through two other points, or from these if they coincide.
fn distance(point: Point, from: Point, to: Point) -> f64 {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy);
    if length == 0.0 {
        return (point.0 - from.0).hypot(point.1 - from.1);
    }
    (dx * (point.1 - from.1) - dy * (point.0 - from.0)).abs() / length
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn straight_parts_need_no_points_between() {
        let curve: Vec<Point> =
            (0..100).map(|x| (f64::from(x), if x < 50 { 0.0 } else { f64::from(x - 50) })).collect();
        let fewer = simplified(&curve, 50);
        assert!(fewer.len() <= 4, "{fewer:?}");
        assert_eq!((fewer.first(), fewer.last()), (curve.first(), curve.last()));
    }

    #[test]
    fn short_curves_stay() {
        assert!(simplified(&[], 10).is_empty());
        assert_eq!(simplified(&[(1.0, 2.0)], 10), [(1.0, 2.0)]);
    }

    proptest! {
        #[test]
        fn the_number_of_points_is_bounded(heights in proptest::collection::vec(0.0_f64..50.0, 2..300)) {
            let curve: Vec<Point> = heights.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect();
            let fewer = simplified(&curve, 40);
            prop_assert!(fewer.len() <= 40 && fewer.len() >= 2);
        }
    }
}
