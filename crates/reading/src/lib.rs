//! Reading what a user names: files that are files, words and names that were perhaps meant, and names as YAML and shells
//! have them.

pub mod nearest;
pub mod plain_file;
pub mod shell;
pub mod stand_in;
pub mod yaml;

/// Memory of this machine, of which nothing that is read may need more; `None` where the system does not say.
pub fn memory_bytes() -> Option<u64> {
    let system = rustix::system::sysinfo();
    // The type of both depends on the machine.
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
    let bytes = (system.totalram as u64).checked_mul(system.mem_unit as u64);
    bytes.filter(|bytes| *bytes > 0)
}
