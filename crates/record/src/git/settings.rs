//! Settings of a repository that name programs: a stranger's folder with a `.git` in it may have any.
//!
//! Input: what `git config` lists. Output: `key=value` for `git -c`. Sources: git-config(1), git-lfs-config(5).

/// What stands in place of a repository's own settings that name programs, of what `git config --list --show-scope -z`
/// prints. Those of the user and of the system stay.
///
/// # Errors
///
/// The name of one that `git -c` cannot replace.
pub(super) fn harmless(listed: &[u8]) -> Result<Vec<String>, String> {
    let listed = String::from_utf8_lossy(listed);
    let mut words = listed.split('\0');
    let mut settings = Vec::new();
    while let (Some(scope), Some(setting)) = (words.next(), words.next()) {
        if ["local", "worktree"].contains(&scope) {
            let (key, value) = setting.split_once('\n').unwrap_or((setting, ""));
            match in_place_of(key, value) {
                // `git -c` takes what is before the first `=` as the name.
                replacements if !replacements.is_empty() && key.contains('=') => return Err(key.to_owned()),
                replacements => settings.extend(replacements),
            }
        }
    }
    Ok(settings)
}

/// `key=value` in place of a setting that names a program. The name in the middle of a key is as it was written, the rest in
/// small letters.
fn in_place_of(key: &str, value: &str) -> Vec<String> {
    /// What `git lfs install --local` writes.
    const LFS: [&str; 5] = [
        "git-lfs clean -- %f",
        "git-lfs smudge -- %f",
        "git-lfs smudge --skip -- %f",
        "git-lfs filter-process",
        "git-lfs filter-process --skip",
    ];
    let parts = (key.split('.').next().unwrap_or_default(), key.rsplit('.').next().unwrap_or_default());
    match parts {
        ("filter", "clean" | "smudge" | "process") if LFS.contains(&value) => Vec::new(),
        ("filter", program @ ("clean" | "smudge" | "process")) => {
            vec![format!("{key}="), format!("{}required=false", key.trim_end_matches(program))]
        }
        // Of a remote whose objects are fetched when they are read.
        ("core", "sshcommand") => vec![format!("{key}=ssh")],
        ("remote", "uploadpack") => vec![format!("{key}=git-upload-pack")],
        ("protocol", "allow") => vec!["protocol.ext.allow=never".to_owned()],
        ("remote", "vcs")
        | ("core", "askpass" | "gitproxy" | "alternaterefscommand")
        | ("credential", "helper")
        | ("lfs", "path" | "standalonetransferagent" | "clean" | "smudge") => vec![format!("{key}=")],
        _ => Vec::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_user_and_of_git_lfs_stay() {
        let listed = b"system\0filter.lfs.process\ngit-lfs filter-process\0global\0core.sshcommand\nssh -4\0\
            local\0filter.lfs.clean\ngit-lfs clean -- %f\0local\0filter.A.b.smudge\nrun\0local\0core.bare\nfalse\0\
            worktree\0remote.o.vcs\nx\0local\0lfs.customtransfer.x.path\n/x\0local\0core.valueless\0";
        let wanted = ["filter.A.b.smudge=", "filter.A.b.required=false", "remote.o.vcs=", "lfs.customtransfer.x.path="];
        assert_eq!(harmless(listed).unwrap(), wanted);
        assert_eq!(harmless(b"local\0filter.a=b.clean\nrun\0").unwrap_err(), "filter.a=b.clean");
    }
}
