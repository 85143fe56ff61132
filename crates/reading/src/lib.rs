//! Reading what a user names: files that are files, words and names that were perhaps meant, and names and numbers as YAML,
//! shells and people have them.

pub mod nearest;
pub mod plain_file;
pub mod shell;
pub mod stand_in;
pub mod yaml;

/// A count with its thousands apart: `10,000,000`.
pub fn grouped(count: u128) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// Memory of this machine, of which nothing that is read may need more; `None` where the system does not say.
pub fn memory_bytes() -> Option<u64> {
    let system = rustix::system::sysinfo();
    // The type of both depends on the machine.
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
    let bytes = (system.totalram as u64).checked_mul(system.mem_unit as u64);
    bytes.filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(10_000_000), "10,000,000");
    }
}
