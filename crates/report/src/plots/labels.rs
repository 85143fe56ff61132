//! Where names are drawn next to their points so that nothing covers anything else.
//!
//! Pure geometry: rectangles in points, y downwards. A name without room is left to the table.

use super::canvas::{Anchor, TEXT, text_width};

/// An upright rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Area {
    /// A square around a point.
    pub(super) fn around((x, y): (f64, f64), half: f64) -> Self {
        Area { left: x - half, top: y - half, right: x + half, bottom: y + half }
    }

    /// What a line between two points covers, if it is level or upright.
    pub(super) fn along(from: (f64, f64), to: (f64, f64)) -> Self {
        Area {
            left: from.0.min(to.0) - 1.0,
            top: from.1.min(to.1) - 1.0,
            right: from.0.max(to.0) + 1.0,
            bottom: from.1.max(to.1) + 1.0,
        }
    }

    pub(super) fn overlaps(&self, other: &Area) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    fn holds(&self, inner: &Area) -> bool {
        self.left <= inner.left && inner.right <= self.right && self.top <= inner.top && inner.bottom <= self.bottom
    }
}

/// Where a name may be drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Label {
    /// Where the text is anchored, its middle height.
    pub(super) at: (f64, f64),
    pub(super) anchor: Anchor,
    /// It is so far from its point that a line should lead to it.
    pub(super) is_far: bool,
}

/// How far names may be from their points.
const DISTANCES: [f64; 7] = [9.0, 14.0, 22.0, 32.0, 46.0, 64.0, 88.0];

/// Beyond this distance a line leads to the point.
const FAR: f64 = 20.0;

/// Eighths and sixteenths of a turn: right, left, above and below first.
const DIRECTIONS: [f64; 16] = [0.0, 8.0, 12.0, 4.0, 14.0, 2.0, 10.0, 6.0, 15.0, 1.0, 9.0, 7.0, 13.0, 11.0, 3.0, 5.0];

/// A label for each name next to its point, in order, as near as possible: inside `bounds`, off every obstacle and off the
/// names before it; `None` for names without room.
pub(super) fn place_labels(points: &[((f64, f64), &str)], obstacles: &[Area], bounds: Area) -> Vec<Option<Label>> {
    let mut taken = obstacles.to_vec();
    let mut labels = Vec::with_capacity(points.len());
    for (point, text) in points {
        let free = |(_, area): &(Label, Area)| bounds.holds(area) && !taken.iter().any(|other| other.overlaps(area));
        let found = candidates(*point, text).find(free);
        if let Some((_, area)) = found {
            taken.push(area);
        }
        labels.push(found.map(|(label, _)| label));
    }
    labels
}

fn candidates((x, y): (f64, f64), text: &str) -> impl Iterator<Item = (Label, Area)> {
    let (width, half) = (text_width(text), TEXT * 0.6);
    DISTANCES.into_iter().flat_map(move |distance| {
        DIRECTIONS.into_iter().map(move |direction| {
            let angle = direction / 16.0 * std::f64::consts::TAU;
            let (across, down) = (angle.cos(), angle.sin());
            // A text left or right of a point begins or ends there; above and below a point it is centred.
            let (anchor, left) = match across {
                across if across > 0.3 => (Anchor::Start, x + across * distance),
                across if across < -0.3 => (Anchor::End, x + across * distance - width),
                _ => (Anchor::Middle, x - width / 2.0),
            };
            let middle = y + down * (distance + half * 0.5);
            let anchored = match anchor {
                Anchor::Start => left,
                Anchor::Middle => left + width / 2.0,
                Anchor::End => left + width,
            };
            let label = Label { at: (anchored, middle), anchor, is_far: distance > FAR };
            (label, Area { left, top: middle - half, right: left + width, bottom: middle + half })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: Area = Area { left: 0.0, top: 0.0, right: 600.0, bottom: 300.0 };

    #[test]
    fn a_lone_name_stands_to_the_right() {
        let labels = place_labels(&[((100.0, 100.0), "int8")], &[], BOUNDS);
        assert_eq!(labels, [Some(Label { at: (109.0, 100.0), anchor: Anchor::Start, is_far: false })]);
    }

    #[test]
    fn at_the_right_edge_it_stands_to_the_left() {
        let labels = place_labels(&[((595.0, 100.0), "int8")], &[], BOUNDS);
        assert_eq!(labels[0].map(|label| label.anchor), Some(Anchor::End));
    }

    #[test]
    fn a_name_wider_than_the_sheet_has_no_place() {
        assert_eq!(place_labels(&[((100.0, 100.0), &"m".repeat(200))], &[], BOUNDS), [None]);
    }

    proptest! {
        #[test]
        fn names_cover_neither_points_nor_each_other(points in prop::collection::vec((20.0_f64..580.0, 20.0_f64..280.0), 1..16)) {
            let named: Vec<((f64, f64), &str)> = points.iter().map(|point| (*point, "variant-x")).collect();
            let marks: Vec<Area> = points.iter().map(|point| Area::around(*point, 5.0)).collect();
            let areas: Vec<Area> = place_labels(&named, &marks, BOUNDS).into_iter().flatten().map(|label| {
                let width = text_width("variant-x");
                let left = match label.anchor {
                    Anchor::Start => label.at.0,
                    Anchor::Middle => label.at.0 - width / 2.0,
                    Anchor::End => label.at.0 - width,
                };
                Area { left, top: label.at.1 - TEXT * 0.5, right: left + width, bottom: label.at.1 + TEXT * 0.5 }
            }).collect();
            for (index, area) in areas.iter().enumerate() {
                prop_assert!(BOUNDS.holds(area));
                prop_assert!(!marks.iter().any(|mark| mark.overlaps(area)));
                prop_assert!(!areas[index + 1..].iter().any(|other| other.overlaps(area)));
            }
        }
    }
}
