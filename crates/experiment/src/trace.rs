//! Arrivals of queries as they were recorded somewhere (`measure.load.arrivals: FILE`).
//!
//! The gaps are part of the experiment, so that a record is reported and merged without the file. To resume it the file must be
//! the same, as any other that inputs come from.

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
    /// What is wrong, and in which line, with what to do.
    pub fn read(file: InputFile, text: &str) -> Result<Self, (String, String)> {
        let text = text.trim_start_matches('\u{feff}');
        let mut times: Vec<f64> = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let (number, first) = (index + 1, first_column(line));
            match first.parse::<f64>().ok().filter(|time| time.is_finite()) {
                // Below a heading, commas part columns.
                _ if index == 0 && is_decimal_comma(line) => {
                    let hint = format!("write `{}`, or give the file a heading", line.trim().replace(',', "."));
                    return Err((format!("line 1 is `{}`, a number with a decimal comma?", line.trim()), hint));
                }
                Some(time) if times.last().is_some_and(|last| time < *last) => {
                    return Err((
                        format!("line {number} is earlier than the one before"),
                        "sort it: `sort -g`".to_owned(),
                    ));
                }
                Some(time) => times.push(time),
                None if index == 0 => {}
                None => {
                    let short: String = first.chars().take(40).collect();
                    let hint = "write times in seconds, such as `0.0101`, one on each line or before the first comma";
                    return Err((format!("line {number} begins with `{short}`, which is no time"), hint.to_owned()));
                }
            }
        }
        Trace::of(file, &times)
    }

    fn of(file: InputFile, times: &[f64]) -> Result<Self, (String, String)> {
        let span = times.last().zip(times.first()).map_or(0.0, |(last, first)| last - first);
        let mean = span / (times.len().saturating_sub(1)) as f64;
        let in_seconds = || "write them in seconds".to_owned();
        match times.len() {
            0 | 1 => {
                Err((format!("it has {} times", times.len()), "a trace has two at least, one on each line".to_owned()))
            }
            count if count > MOST => {
                Err((format!("it has {count} times, and at most {MOST} are read"), format!("cut it: `head -n {MOST}`")))
            }
            _ if span == 0.0 => Err(("all of its times are equal".to_owned(), in_seconds())),
            _ if !(1e-6..=100.0).contains(&mean) => {
                Err((format!("its times are {mean:.3e} s apart in the mean"), in_seconds()))
            }
            _ => {
                let gaps = times.windows(2).map(|pair| ((pair[1] - pair[0]) / mean) as f32).collect();
                Ok(Trace { file, per_s: 1.0 / mean, gaps })
            }
        }
    }

    /// `2000 queries in 20.1 s`
    pub fn described(&self) -> String {
        format!("{} queries in {:.3} s", self.gaps.len() + 1, self.gaps.len() as f64 / self.per_s)
    }

    /// The longest that so many arrivals take at a mean rate of 1, from wherever on.
    pub fn longest(&self, queries: usize) -> f64 {
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
    pub fn arrivals(&self, queries: usize, from: u64) -> Vec<f64> {
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

/// What a line has before its first semicolon, or comma where it has none of these.
fn first_column(line: &str) -> &str {
    let parted_by = if line.contains(';') { ';' } else { ',' };
    line.split(parted_by).next().unwrap_or_default().trim().trim_matches('"')
}

/// `0,0101`: two numbers, of which the second has leading zeros or many digits, may be one.
fn is_decimal_comma(line: &str) -> bool {
    let Some((whole, part)) = line.trim().split_once(',') else { return false };
    let are_digits =
        [whole, part].iter().all(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    are_digits && (part.len() >= 3 || (part.len() > 1 && part.starts_with('0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Trace, (String, String)> {
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
        let problem = |text: &str| read(text).expect_err(text).0;
        assert_eq!(problem("0\n2\n1\n"), "line 3 is earlier than the one before");
        assert_eq!(problem("time\n1\nx\n"), "line 3 begins with `x`, which is no time");
        assert_eq!(problem("1\nNaN"), "line 2 begins with `NaN`, which is no time");
        assert_eq!(problem("time\n1\n"), "it has 1 times");
        assert_eq!(problem(""), "it has 0 times");
        assert_eq!(problem("0,5;a\n0,9;b"), "line 2 begins with `0,9`, which is no time");
        assert_eq!(problem("0,010143\n0,020143"), "line 1 is `0,010143`, a number with a decimal comma?");
        assert!(read("0,1\n1,2\n2,3").is_ok() && read("time,user\n0,1234\n1,1235").is_ok(), "ids");
        assert_eq!(problem("1\n1\n1"), "all of its times are equal");
        assert_eq!(problem("1700000000000\n1700000900000"), "its times are 9.000e5 s apart in the mean");
        assert!(problem("-1e308\n1e308").contains("inf s apart"));
        assert!(problem(&"1\n".repeat(MOST + 1)).contains("at most"));
    }
}
