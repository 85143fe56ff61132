//! Arrivals of queries as they were recorded somewhere (`measure.load.arrivals: FILE`).
//!
//! The gaps are part of the experiment, so that a record can be resumed, merged and measured elsewhere without the file.

use serde::{Deserialize, Serialize};

use super::InputFile;

/// The gaps between the queries of a file of times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Where they come from.
    pub file: InputFile,
    /// The mean rate of its queries.
    pub per_s: f64,
    /// The gaps over their mean.
    gaps: Vec<f32>,
}

/// A record's manifest has every gap.
const MOST: usize = 100_000;

impl Trace {
    /// Reads times in seconds, ascending, one on each line; of several columns that are parted by commas or semicolons the
    /// first. A first line without a number is a heading.
    ///
    /// # Errors
    ///
    /// What is wrong, and in which line.
    pub(crate) fn read(file: InputFile, text: &str) -> Result<Self, String> {
        let mut times: Vec<f64> = Vec::new();
        let text = text.trim_start_matches('\u{feff}');
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            // A comma may be that of a number where columns are parted by semicolons.
            let parted_by = if line.contains(';') { ';' } else { ',' };
            let first = line.split(parted_by).next().unwrap_or_default().trim().trim_matches('"');
            match first.parse::<f64>().ok().filter(|time| time.is_finite()) {
                Some(time) if times.last().is_some_and(|last| time < *last) => {
                    return Err(format!("line {} is earlier than the one before", index + 1));
                }
                Some(time) => times.push(time),
                None if index == 0 => {}
                None => return Err(format!("line {} begins with no time in seconds", index + 1)),
            }
        }
        let span = times.last().zip(times.first()).map_or(0.0, |(last, first)| last - first);
        let mean = span / (times.len().saturating_sub(1)) as f64;
        match times.len() {
            0 | 1 => Err(format!("a trace has at least two times, and this one has {}", times.len())),
            count if count > MOST => Err(format!("it has {count} times, and at most {MOST} are read")),
            _ if !(1e-6..=100.0).contains(&mean) => Err(format!("its times are {mean} s apart in the mean")),
            _ => {
                let gaps = times.windows(2).map(|pair| ((pair[1] - pair[0]) / mean) as f32).collect();
                Ok(Trace { file, per_s: 1.0 / mean, gaps })
            }
        }
    }

    /// The longest that so many arrivals take at a mean rate of 1, from wherever on.
    pub(crate) fn longest(&self, queries: usize) -> f64 {
        let (count, wanted) = (self.gaps.len().max(1), queries.saturating_sub(1));
        let gap = |at: usize| self.gaps.get(at % count).map_or(0.0, |gap| f64::from(*gap));
        let whole: f64 = (wanted / count) as f64 * self.gaps.iter().map(|gap| f64::from(*gap)).sum::<f64>();
        let rest = wanted % count;
        let mut window: f64 = (0..rest).map(gap).sum();
        let mut most = window;
        for from in 0..count {
            window += gap(from + rest) - gap(from);
            most = most.max(window);
        }
        whole + most
    }

    /// So many arrivals at a mean rate of 1, the first at 0, from a place of the trace on, which begins again at its end.
    pub(crate) fn arrivals(&self, queries: usize, from: u64) -> Vec<f64> {
        let from = (from % self.gaps.len().max(1) as u64) as usize;
        let gaps = self.gaps.iter().cycle().skip(from).take(queries.saturating_sub(1));
        let mut at = 0.0;
        let later = gaps.map(|gap| {
            at += f64::from(*gap);
            at
        });
        std::iter::once(0.0).chain(later).take(queries).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Trace, String> {
        Trace::read(InputFile { path: "t.csv".into(), sha256: String::new() }, text)
    }

    #[test]
    fn times_are_read_from_the_first_column() {
        let trace = read("time;user\n10.0;a\n10.1;b\n\n10.4;c\r\n").expect("a trace");
        assert!((trace.per_s - 5.0).abs() < 1e-9);
        let rounded = |queries, from| {
            trace.arrivals(queries, from).iter().map(|at| (at * 10.0).round() / 10.0).collect::<Vec<_>>()
        };
        assert_eq!(rounded(4, 0), [0.0, 0.5, 2.0, 2.5]);
        assert_eq!(rounded(3, 3), [0.0, 1.5, 2.0]);
        assert!(rounded(0, 7).is_empty());
        assert!((trace.longest(2) - 1.5).abs() < 1e-6 && (trace.longest(3) - 2.0).abs() < 1e-6);
        assert!((trace.longest(4) - 3.5).abs() < 1e-6 && trace.longest(1) == 0.0);
        assert_eq!(read("\u{feff}0\n1\n2").map(|trace| trace.gaps.len()), Ok(2), "no heading");
        let same = read("0\n0\n1").expect("equal times are two queries at once");
        assert_eq!(same.arrivals(3, 0), [0.0, 0.0, 2.0]);
    }

    #[test]
    fn what_is_no_trace_is_told_with_its_line() {
        let problem = |text: &str| read(text).expect_err(text);
        assert_eq!(problem("0\n2\n1\n"), "line 3 is earlier than the one before");
        assert_eq!(problem("time\n1\nx\n"), "line 3 begins with no time in seconds");
        assert_eq!(problem("1\nNaN"), "line 2 begins with no time in seconds");
        assert_eq!(problem("time\n1\n"), "a trace has at least two times, and this one has 1");
        assert_eq!(problem(""), "a trace has at least two times, and this one has 0");
        assert_eq!(problem("0,5;a\n0,9;b"), "line 2 begins with no time in seconds");
        assert!(problem("1\n1\n1").contains("0 s apart"));
        assert!(problem("-1e308\n1e308").contains("inf s apart"));
        assert!(problem(&"1\n".repeat(MOST + 1)).contains("at most"));
    }
}
