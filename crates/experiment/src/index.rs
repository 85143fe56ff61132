//! Indices that are of one axis, and lead to its entries.

use serde::{Deserialize, Serialize};

use super::axis::OnAxis;
use super::{Axis, Device, InputPoint, Model, Point, Runtime, Variant};

/// Indices that are of one axis: they lead to its entries, and to nothing else.
macro_rules! indices {
    ($($index:ident: $entry:ident on $axis:expr;)*) => {$(
        #[doc = concat!("Index on the axis [`", stringify!($axis), "`].")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $index(u32);

        impl $index {
            pub fn of(point: &Point) -> Self {
                $index(point[$axis])
            }

            /// The index as one of any vector in the axis' order.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl OnAxis for $index {
            const AXIS: Axis = $axis;
        }

        impl OnAxis for $entry {
            const AXIS: Axis = $axis;
        }

        impl From<$index> for usize {
            fn from(index: $index) -> usize {
                index.index()
            }
        }

        impl From<usize> for $index {
            fn from(index: usize) -> Self {
                $index(index as u32)
            }
        }

        impl std::ops::Index<$index> for Vec<$entry> {
            type Output = $entry;

            fn index(&self, index: $index) -> &$entry {
                &self.as_slice()[index.index()]
            }
        }
    )*};
}

indices! {
    ModelIndex: Model on Axis::Models;
    InputIndex: InputPoint on Axis::Inputs;
    VariantIndex: Variant on Axis::Variants;
    DeviceIndex: Device on Axis::Devices;
    RuntimeIndex: Runtime on Axis::Runtimes;
}
