//! Groups of rows, and what polars says of each.
//!
//! These are the aggregations of polars' eager frames. Its lazy engine would be the other way to write them; it is left
//! out because it is as large as the rest of polars (CONTRIBUTING.md, "Build times").

use polars::prelude::*;

use super::{Table, TableError};

/// What is made of the values of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// How many rows.
    Count,
    Sum,
    /// Their arithmetic mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The type-7 quantile at this probability.
    Quantile(f64),
}

/// Rows with equal keys, in the order in which the keys first appear.
#[derive(Debug)]
pub struct Groups<'a> {
    frame: &'a DataFrame,
    grouped: GroupBy<'a>,
}

impl Table {
    /// The rows by their values in these columns.
    ///
    /// # Errors
    ///
    /// A column that is not there.
    pub fn group_by(&self, keys: &[&str]) -> Result<Groups<'_>, TableError> {
        Ok(Groups { frame: &self.frame, grouped: self.frame.group_by_stable(keys.iter().copied())? })
    }
}

impl Groups<'_> {
    /// One row a group: its keys, then each wanted aggregate of a column under a new name, as numbers.
    ///
    /// # Errors
    ///
    /// A column that is not there, or has no such aggregate.
    pub fn aggregate(&self, wanted: &[(&str, Aggregate, &str)]) -> Result<Table, TableError> {
        let mut columns = self.grouped.keys();
        for (column, aggregate, name) in wanted {
            columns.push(self.one(column, *aggregate)?.with_name(PlSmallStr::from_str(name)));
        }
        Ok(Table { frame: DataFrame::new_infer_height(columns)? })
    }

    #[expect(deprecated, reason = "polars means its lazy engine to be used instead, which is left out")]
    fn one(&self, column: &str, aggregate: Aggregate) -> Result<Column, TableError> {
        let one = self.grouped.clone().select([column]);
        let frame = match aggregate {
            Aggregate::Count => one.count(),
            Aggregate::Sum => one.sum(),
            Aggregate::Mean => one.mean(),
            Aggregate::Min => one.min(),
            Aggregate::Max => one.max(),
            Aggregate::Quantile(probability) => one.quantile(probability, QuantileMethod::Linear),
        }?;
        let found = frame.columns().last().ok_or_else(|| TableError(format!("{column} has no {aggregate:?}")))?;
        Ok(found.cast(&DataType::Float64)?)
    }

    /// The numbers of a column by group; a row without one is left out.
    ///
    /// # Errors
    ///
    /// A column that is not there or holds something else.
    pub fn lists(&self, column: &str) -> Result<Vec<Vec<f64>>, TableError> {
        let values = self.frame.column(column)?.cast(&DataType::Float64)?;
        let values = values.f64()?.rechunk();
        let list = |rows: &mut dyn Iterator<Item = IdxSize>| rows.filter_map(|row| values.get(row as usize)).collect();
        let lists = self.grouped.get_groups().iter().map(|group| match group {
            GroupsIndicator::Idx((_, rows)) => list(&mut rows.iter().copied()),
            GroupsIndicator::Slice([first, length]) => list(&mut (first..first + length)),
        });
        Ok(lists.collect())
    }
}

/// Numbers that are a group of their own, and what polars says of them: the digits that a group of rows would give.
#[derive(Debug)]
pub struct Numbers(Float64Chunked);

impl From<Vec<f64>> for Numbers {
    fn from(numbers: Vec<f64>) -> Self {
        Numbers(Float64Chunked::from_vec(PlSmallStr::EMPTY, numbers))
    }
}

impl Numbers {
    /// The numbers themselves.
    pub fn as_slice(&self) -> &[f64] {
        self.0.cont_slice().expect("one vector without gaps")
    }

    /// Their arithmetic mean.
    pub fn mean(&self) -> Option<f64> {
        self.0.mean()
    }

    /// Their standard deviation (n - 1); none below two values.
    pub fn standard_deviation(&self) -> Option<f64> {
        self.0.std(1)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use statistics::moments::{mean, standard_deviation};
    use statistics::quantile::{quantile_sorted, sorted};

    fn table(groups: &[Vec<f64>]) -> Table {
        let keys = groups.iter().enumerate().flat_map(|(key, values)| vec![key as u32; values.len()]);
        let values: Vec<f64> = groups.concat();
        Table::of([("key", keys.collect::<Vec<u32>>().into()), ("value", values.into())]).unwrap()
    }

    #[test]
    fn groups_stand_in_the_order_of_their_first_rows() {
        let keys = vec!["b".to_owned(), "a".to_owned(), "b".to_owned()];
        let table = Table::of([("key", keys.into()), ("value", vec![1.0, 2.0, 5.0].into())]).unwrap();
        let groups = table.group_by(&["key"]).unwrap();
        let found = groups.aggregate(&[("value", Aggregate::Mean, "mean"), ("value", Aggregate::Count, "n")]).unwrap();
        assert_eq!(found.texts("key").unwrap(), [Some("b"), Some("a")]);
        assert_eq!(found.f64s("mean").unwrap(), [Some(3.0), Some(2.0)]);
        assert_eq!(found.f64s("n").unwrap(), [Some(2.0), Some(1.0)]);
        assert_eq!(groups.lists("value").unwrap(), [vec![1.0, 5.0], vec![2.0]]);
        assert!(table.group_by(&["colour"]).is_err() && groups.lists("colour").is_err());
    }

    proptest! {
        /// polars and perfrun's own functions mean the same by the same words.
        #[test]
        fn aggregates_are_those_of_the_statistics(
            groups in proptest::collection::vec(proptest::collection::vec(1.0_f64..1e9, 1..40), 1..6),
            probability in 0.0_f64..1.0,
        ) {
            let table = table(&groups);
            let wanted = [
                ("value", Aggregate::Mean, "mean"),
                ("value", Aggregate::Quantile(probability), "quantile"),
            ];
            let found = table.group_by(&["key"]).unwrap().aggregate(&wanted).unwrap();
            let column = |name: &str| found.f64s(name).unwrap();
            let near = |found: Option<f64>, expected: Option<f64>| match (found, expected) {
                (Some(found), Some(expected)) => (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
                (found, expected) => found == expected,
            };
            for (index, values) in groups.iter().enumerate() {
                prop_assert!(near(column("mean")[index], mean(values)));
                let numbers = Numbers::from(values.clone());
                prop_assert!(near(numbers.standard_deviation(), standard_deviation(values)));
                prop_assert!(near(numbers.mean(), mean(values)));
                prop_assert!(near(column("quantile")[index], quantile_sorted(&sorted(values), probability)));
            }
        }
    }
}
