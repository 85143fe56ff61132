//! Which GPU a number means, where CUDA is shown a part of them.

/// CUDA's list of what it may see.
pub(super) const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";

/// The number in PCI order of the device that CUDA counts as `index`. `by_uuid` knows GPUs by what the list may name
/// them.
///
/// # Errors
///
/// Why it cannot be known, a fragment.
pub(super) fn number(index: u32, visible: Option<&str>, by_uuid: &dyn Fn(&str) -> Option<u32>) -> Result<u32, String> {
    let Some(list) = visible else { return Ok(index) };
    let entry = list.split(',').nth(index as usize).map(str::trim).unwrap_or_default();
    let found = match entry {
        number if number.starts_with(|c: char| c.is_ascii_digit()) => number.parse().ok(),
        uuid if uuid.starts_with("GPU-") => by_uuid(uuid),
        mig if mig.starts_with("MIG-") => return Err(format!("{VARIABLE} names a MIG instance ({mig})")),
        _ => None,
    };
    found.ok_or_else(|| format!("{VARIABLE} is `{list}`, which has no device {index}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn find(index: u32, visible: Option<&str>) -> Result<u32, String> {
        number(index, visible, &|uuid| (uuid == "GPU-ab").then_some(5))
    }

    #[test]
    fn what_cuda_sees_is_counted_from_zero() {
        assert_eq!(find(1, None), Ok(1));
        assert_eq!(find(1, Some("3, 2")), Ok(2));
        assert_eq!(find(0, Some("GPU-ab")), Ok(5));
    }

    #[test]
    fn what_cannot_be_told_is_said() {
        assert!(find(1, Some("3")).unwrap_err().contains("has no device 1"));
        assert!(find(0, Some("")).is_err() && find(0, Some("-1")).is_err() && find(0, Some("GPU-cd")).is_err());
        assert!(find(0, Some("MIG-1")).unwrap_err().contains("instance"));
    }
}
