//! Entries of axes, and indices that are of one axis.

use serde::{Deserialize, Serialize};

use super::{Axis, Device, InputPoint, Model, Point, Runtime, Variant};

/// What an axis is made of.
pub(crate) trait Entry {
    /// Its name among the others, or its label.
    fn label(&self) -> String;
}

/// An index that is of one axis.
pub trait OnAxis: Into<usize> {
    const AXIS: Axis;
}

/// Indices that are of one axis: they lead to its entries, and to nothing else.
macro_rules! indices {
    ($($index:ident: $entry:ident on $axis:ident;)*) => {$(
        #[doc = concat!("Index on the axis [`Axis::", stringify!($axis), "`].")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $index(u32);

        impl $index {
            pub fn of(point: &Point) -> Self {
                $index(point[Axis::$axis])
            }

            /// The index as one of any vector in the axis' order.
            pub fn place(self) -> usize {
                self.0 as usize
            }
        }

        impl OnAxis for $index {
            const AXIS: Axis = Axis::$axis;
        }

        impl From<$index> for usize {
            fn from(index: $index) -> usize {
                index.place()
            }
        }

        impl From<usize> for $index {
            fn from(place: usize) -> Self {
                $index(place as u32)
            }
        }

        impl std::ops::Index<$index> for Vec<$entry> {
            type Output = $entry;

            fn index(&self, index: $index) -> &$entry {
                &self.as_slice()[index.place()]
            }
        }
    )*};
}

indices! {
    ModelIndex: Model on Models;
    InputIndex: InputPoint on Inputs;
    VariantIndex: Variant on Variants;
    DeviceIndex: Device on Devices;
    RuntimeIndex: Runtime on Runtimes;
}
