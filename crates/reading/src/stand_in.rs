//! What stands for a file that is kept elsewhere: pointers of Git LFS and git-annex, and links that lead nowhere.

use std::path::Path;

/// Bytes of the beginning that are looked at.
pub const HEAD: usize = 64;

/// A pointer by the beginning of a file: what it is, and by which command its content is fetched.
///
/// Git LFS: <https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md>; git-annex:
/// <https://git-annex.branchable.com/internals/pointer_file/>.
pub fn pointer(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if head.starts_with(b"version https://git-lfs.github.com/spec/") {
        return Some(("a Git LFS pointer", "git lfs pull"));
    }
    // A link as text, where the file system has none, says the way from its folder.
    let text = std::str::from_utf8(head).ok()?.trim_start_matches(['.', '/', 'g', 'i', 't']);
    text.starts_with("annex/objects/").then_some(("a git-annex pointer", ANNEX))
}

const ANNEX: &str = "git annex get";

/// Of a link that leads nowhere: where it leads, and what to do.
pub fn dangling(path: &Path) -> Option<(String, String)> {
    let target = std::fs::read_link(path).ok().filter(|_| !path.exists())?.display().to_string();
    let remedy = match target.contains("annex/objects/") {
        true => format!("fetch it with `{ANNEX}`"),
        false => "mend the link, or name the file itself".to_owned(),
    };
    Some((target, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_and_links_tell_how_their_content_is_fetched() {
        let annexed = b"/annex/objects/SHA256E-s123--0a1b.onnx\n";
        for text in [&annexed[..], b"../../.git/annex/objects/Xa/0b/SHA256E-s123--0a1b.onnx"] {
            assert_eq!(pointer(text), Some(("a git-annex pointer", "git annex get")));
        }
        assert_eq!(pointer(b"version https://git-lfs.github.com/spec/v1\noid").map(|it| it.1), Some("git lfs pull"));
        assert_eq!(pointer(b"\x08\x07"), None);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let link = |name: &str, target: &str| {
            let path = folder.path().join(name);
            std::os::unix::fs::symlink(target, &path).expect("a link");
            dangling(&path)
        };
        let annexed = link("a", ".git/annex/objects/aa/bb/SHA256E-s1--0.onnx/SHA256E-s1--0.onnx");
        assert!(annexed.is_some_and(|(_, remedy)| remedy == "fetch it with `git annex get`"));
        assert!(link("b", "nowhere").is_some_and(|(target, remedy)| target == "nowhere" && remedy.contains("mend")));
        assert_eq!(link("c", "."), None);
        assert_eq!(dangling(&folder.path().join("no")), None);
    }
}
