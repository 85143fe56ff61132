//! Text of benchmark tools: what `go test -bench` prints, and the head of hyperfine's CSV, which has no single times.
//!
//! `BenchmarkX-8  N  123 ns/op  45 B/op  2 allocs/op`, a line for each of `-count`; the number behind the name is
//! GOMAXPROCS, which `-cpu` varies, so it stays. Several outputs may stand one after the other.
//! Deliberately absent: every other metric of a line, and `go test -json`.

use super::Contents;
use super::contents::Times;
use super::problem::{Fault, Refusal};
use super::tool::Tool;

/// How the CSV of hyperfine begins.
const HYPERFINE: &[u8] = b"command,mean,stddev,";

/// What benchmark tools print; `None` where it is something else.
pub(super) fn parse(bytes: &[u8]) -> Option<Result<Contents, Refusal>> {
    if bytes.starts_with(HYPERFINE) {
        return Some(Err(Refusal::of_file(Fault::NoSamples(Tool::Hyperfine))));
    }
    let lines = || bytes.split(|byte| *byte == b'\n');
    lines().any(|line| benchmark(line).is_some()).then(|| benchmarks_of_go(lines()))
}

fn benchmarks_of_go<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone) -> Result<Contents, Refusal> {
    let mut packages: Vec<&[u8]> = lines.clone().filter_map(|line| line.strip_prefix(b"pkg: ")).collect();
    packages.sort_unstable();
    packages.dedup();
    let mut contents = Contents::default();
    let mut times = Times::default();
    let (mut package, mut processor) = (String::new(), None);
    for line in lines {
        if let Some(name) = line.strip_prefix(b"pkg: ").filter(|_| packages.len() > 1) {
            // The same name may stand in several packages.
            package = format!("{}.", String::from_utf8_lossy(name.trim_ascii()));
        } else if let Some(name) = line.strip_prefix(b"cpu: ") {
            processor = Some(String::from_utf8_lossy(name.trim_ascii()).into_owned());
        } else if let Some(name) = line.trim_ascii().strip_prefix(b"--- FAIL: Benchmark") {
            let name = String::from_utf8_lossy(name);
            contents.leave_out(format!("{package}Benchmark{name}"), "it failed".to_owned());
        } else if let Some((name, time)) = benchmark(line) {
            times.add(format!("{package}{name}"), time);
        }
    }
    contents.add_all(Tool::Go, times)?;
    contents.set_machine(processor.as_deref());
    Ok(contents)
}

/// Name and ns/op of a line with a result.
fn benchmark(line: &[u8]) -> Option<(&str, f64)> {
    if !line.starts_with(b"Benchmark") {
        return None;
    }
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let name = words.next()?;
    let _iterations: u64 = words.next()?.parse().ok()?;
    let metrics: Vec<&str> = words.collect();
    let (time, _) =
        metrics.as_chunks::<2>().0.iter().map(|[value, unit]| (value, unit)).find(|(_, unit)| **unit == "ns/op")?;
    Some((name, time.parse().ok()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, Vec<f64>)> {
        let contents = parse(text.as_bytes()).unwrap().unwrap();
        contents
            .series
            .iter()
            .map(|series| (series.benchmark().unwrap().to_owned(), series.values().to_vec()))
            .collect()
    }

    #[test]
    fn lines_of_a_name_are_one_benchmark() {
        let text = "goos: linux\npkg: p\ncpu: c\nBenchmarkX-8  10  2.5 ns/op  4 B/op\nBenchmarkY/a=1-8 \t 10\t 7 ns/op\r\n\
                    noise\nBenchmarkX-8  10  2 MB/s  3 ns/op\nBenchmarkX-8  10  3\nBenchmarkX\nPASS\nok  p 1s\n";
        let wanted = [("BenchmarkX-8".to_owned(), vec![2.5, 3.0]), ("BenchmarkY/a=1-8".to_owned(), vec![7.0])];
        assert_eq!(read(text), wanted);
        assert_eq!(parse(text.as_bytes()).unwrap().unwrap().series[0].machine.as_deref(), Some("c"));
    }

    #[test]
    fn several_packages_are_told_apart() {
        let text = "pkg: a/b\nBenchmarkX 1 2 ns/op\npkg: a/c\nBenchmarkX 1 3 ns/op\n--- FAIL: BenchmarkZ\n";
        assert_eq!(read(text), [("a/b.BenchmarkX".to_owned(), vec![2.0]), ("a/c.BenchmarkX".to_owned(), vec![3.0])]);
        assert_eq!(parse(text.as_bytes()).unwrap().unwrap().left_out[0].benchmark, "a/c.BenchmarkZ");
    }

    #[test]
    fn numbers_and_other_text_are_left_to_others() {
        for text in ["1\n2\n", "Benchmark\n1\n", "BenchmarkX 12 3\n", ""] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        let fault = Fault::NoSamples(Tool::Hyperfine);
        assert_eq!(parse(b"command,mean,stddev,median\n"), Some(Err(Refusal::of_file(fault))));
        assert!(parse(b"BenchmarkX 1 NaN ns/op\n").unwrap().is_err());
    }
}
