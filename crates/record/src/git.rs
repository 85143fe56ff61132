//! The only module that runs `git`: what a repository holds at any revision, read from its objects. Nothing is checked
//! out and nothing is written, but for worktrees of their own, in which commands of a revision are built.

mod settings;
mod trees;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tracing::debug;

use base::printable::last_lines;
use files::digest;

/// What a pointer of Git LFS begins with.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/v1";

#[derive(Clone, Debug)]
pub struct Repository {
    top: PathBuf,
    /// `key=value` in place of its own settings that name programs.
    settings: Vec<String>,
}

/// Why a repository does not say what it is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    #[error("git is not installed, or not on the path")]
    NoGit,
    /// git refuses a repository that another user owns (CVE-2022-24765).
    #[error("git refuses this repository, which another user owns")]
    OtherOwner { remedy: Option<String> },
    #[error("git cannot use this repository: {why}")]
    Refused { why: String },
    /// What `submit` writes next to a copy of the repository is something else.
    #[error("{file} is damaged: {why}")]
    Damaged { file: &'static str, why: String },
    #[error("`{revision}` is not a revision of this repository")]
    Unknown { revision: String, is_shallow: bool },
    #[error("`{first}` and `{second}` have no common ancestor here")]
    Unrelated { first: String, second: String, is_shallow: bool },
}

impl GitError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            GitError::NoGit => Some("install git, or add its folder to PATH".to_owned()),
            GitError::OtherOwner { remedy } => remedy.as_ref().map(|command| format!("allow it: `{command}`")),
            GitError::Refused { .. } if std::env::var_os(GIT_DIR).is_some() => {
                Some(format!("{GIT_DIR} is set: unset it, or set it to the repository"))
            }
            GitError::Refused { .. } => None,
            GitError::Damaged { .. } => {
                Some("submit the job again; the file stands in the copy that it makes".to_owned())
            }
            GitError::Unknown { is_shallow, .. } | GitError::Unrelated { is_shallow, .. } => {
                is_shallow.then(|| format!("this clone is shallow: fetch the whole history ({UNSHALLOW})"))
            }
        }
    }

    /// What git says where it finds no usable repository; nothing where there is none.
    fn of_complaint(complaint: &str) -> Option<Self> {
        let lines = || complaint.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines().find_map(|line| line.strip_prefix("fatal: ")).or_else(|| lines().next());
        let first = first.unwrap_or("it failed without a message");
        // "not a git repository (or any of the parent directories): .git", or "(or any parent up to mount point /)".
        if first.starts_with("not a git repository (or any") {
            return None;
        }
        if first.contains("dubious ownership") {
            let remedy = lines().find(|line| line.starts_with("git config ")).map(str::to_owned);
            return Some(GitError::OtherOwner { remedy });
        }
        Some(GitError::Refused { why: first.to_owned() })
    }
}

/// The variable that names the repository to git.
const GIT_DIR: &str = "GIT_DIR";

/// How to get what a shallow clone lacks.
pub const UNSHALLOW: &str = "`git fetch --unshallow`; in GitHub Actions `fetch-depth: 0`";

/// A worktree separate from the user's own; when this is dropped, git forgets it and its files are removed.
#[derive(Debug)]
pub struct Worktree {
    repository: Repository,
    pub folder: PathBuf,
}

impl Drop for Worktree {
    fn drop(&mut self) {
        let words = ["worktree", "remove", "--force"].map(OsStr::new);
        // What cannot be removed is pruned by git once its folder is gone.
        let _gone = self.repository.text(words.into_iter().chain([self.folder.as_os_str()]));
    }
}

/// A file at a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blob {
    Bytes(Vec<u8>),
    /// It is kept elsewhere by Git LFS; the SHA-256 of its bytes.
    Elsewhere(String),
}

impl Blob {
    /// A file's bytes, or what a pointer of Git LFS stands for.
    pub fn of(bytes: Vec<u8>) -> Self {
        match lfs_sha256(&bytes) {
            Some(sha256) => Blob::Elsewhere(sha256),
            None => Blob::Bytes(bytes),
        }
    }

    /// SHA-256 of the file's bytes, as hex.
    pub fn sha256(&self) -> String {
        match self {
            Blob::Bytes(bytes) => digest::of_bytes(bytes),
            Blob::Elsewhere(sha256) => sha256.clone(),
        }
    }
}

/// As [`Repository::commit_url`], of a remote's address: `git@github.com:o/r.git`, `https://gitlab.com/o/r`. Names of users and
/// tokens in it go nowhere.
fn commit_url(remote: &str) -> Option<String> {
    let rest = remote.split_once("://").map_or(remote, |(_, rest)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let (host, path) = rest.split_once([':', '/'])?;
    let path = path.trim_end_matches('/').trim_end_matches(".git");
    let folder = match host {
        "github.com" | "codeberg.org" => "commit",
        "gitlab.com" => "-/commit",
        _ => return None,
    };
    Some(format!("https://{host}/{path}/{folder}/{{commit}}"))
}

/// The SHA-256 of the file for which a pointer of Git LFS stands, if it is one.
fn lfs_sha256(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes.starts_with(LFS).then_some(bytes)?).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oid sha256:")).map(str::to_owned)
}

impl Repository {
    /// The repository that holds a folder, if there is one.
    ///
    /// # Errors
    ///
    /// A repository that git refuses, or that cannot be read without it.
    pub fn around(folder: &Path) -> Result<Option<Self>, GitError> {
        let Ok(output) = asked(command(folder).args(["rev-parse", "--show-toplevel"])).output() else {
            let is_there = std::env::var_os(GIT_DIR).is_some() || folder.ancestors().any(|it| it.join(".git").exists());
            return if is_there { Err(GitError::NoGit) } else { Ok(None) };
        };
        if !output.status.success() {
            return GitError::of_complaint(&String::from_utf8_lossy(&output.stderr)).map_or(Ok(None), Err);
        }
        let top = OsStr::from_bytes(output.stdout.trim_ascii_end());
        let top = Path::new(top).canonicalize().map_err(|error| GitError::Refused { why: error.to_string() })?;
        let listed = printed(command(folder).args(["config", "--list", "--show-scope", "-z"])).unwrap_or_default();
        let settings = settings::harmless(&listed)
            .map_err(|name| GitError::Refused { why: format!("its own setting `{name}` names a program") })?;
        Ok(Some(Repository { top, settings }))
    }

    fn git(&self) -> Command {
        let mut git = command(&self.top);
        git.args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        git
    }

    /// A path as git names it: from the top, with `/`; `None` where it lies outside.
    pub fn path_of(&self, path: &Path) -> Option<String> {
        let path = path.canonicalize().ok()?;
        Some(path.strip_prefix(&self.top).ok()?.to_str()?.replace('\\', "/"))
    }

    /// What git prints of it, without the last line's end; `None` where it fails.
    pub(super) fn text<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Option<String> {
        text(printed(self.git().args(arguments))?)
    }

    /// The full hash of the commit that a revision names.
    ///
    /// # Errors
    ///
    /// A name that means no commit here.
    pub fn commit(&self, revision: &str) -> Result<String, GitError> {
        let unknown = || GitError::Unknown { revision: revision.to_owned(), is_shallow: self.is_shallow() };
        // What looks like an option is none.
        if revision.starts_with('-') || revision.is_empty() {
            return Err(unknown());
        }
        self.text(["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")]).ok_or_else(unknown)
    }

    /// The last commit that two have in common.
    ///
    /// # Errors
    ///
    /// Commits without any.
    pub fn merge_base(&self, first: &str, second: &str) -> Result<String, GitError> {
        self.text(["merge-base", first, second]).ok_or_else(|| GitError::Unrelated {
            first: first.to_owned(),
            second: second.to_owned(),
            is_shallow: self.is_shallow(),
        })
    }

    /// As few digits of a commit's hash as distinguish it.
    pub fn short(&self, commit: &str) -> String {
        self.text(["rev-parse", "--short", commit]).unwrap_or_else(|| commit.chars().take(7).collect())
    }

    /// The files below a folder at a commit, from the top.
    pub fn files(&self, commit: &str, folder: &str) -> Vec<String> {
        let listed = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit, "--", folder];
        let listed = printed(self.git().args(listed)).unwrap_or_default();
        // A name that is no text does not hide the rest.
        let names = listed.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
        names.filter(|path| !path.is_empty()).map(str::to_owned).collect()
    }

    /// The folder of the whole working tree.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// A file at a commit, that behind a link of the repository too; nothing where there is none.
    pub fn read(&self, commit: &str, path: &str) -> Option<Blob> {
        self.reader(path)?.read(commit)
    }

    /// A file at many commits, read by one process: starting one for each takes longer than reading.
    pub fn reader<'a>(&self, path: &'a str) -> Option<FileReader<'a>> {
        // A line is a request.
        if path.contains('\n') {
            return None;
        }
        let mut git = self.git();
        git.args(["cat-file", "--batch", "--follow-symlinks"]);
        let mut process =
            asked(&mut git).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let (requests, answers) = (process.stdin.take()?, BufReader::new(process.stdout.take()?));
        Some(FileReader { path, process, requests: Some(requests), answers })
    }

    /// Checks a commit out into a folder that is not there yet, as a worktree of its own, without its submodules.
    ///
    /// # Errors
    ///
    /// What git says where it cannot.
    pub fn worktree(&self, commit: &str, folder: &Path) -> Result<Worktree, String> {
        let words = ["worktree", "add", "--quiet", "--detach", "--force"].map(OsStr::new);
        let mut git = self.git();
        git.args(words.into_iter().chain([folder.as_os_str(), OsStr::new(commit)]));
        let output = asked(&mut git).output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(Worktree { repository: self.clone(), folder: folder.to_owned() }),
            false => Err(last_lines(&String::from_utf8_lossy(&output.stderr), 3).join("; ")),
        }
    }

    /// The bytes of a file at a commit.
    pub fn size(&self, commit: &str, path: &str) -> Option<u64> {
        self.text(["cat-file", "-s", &format!("{commit}:{path}")])?.parse().ok()
    }

    /// The commits that changed a file, oldest first, along first parents: the full hash, and as few digits as
    /// distinguish it.
    pub fn commits_of(&self, revision: &str, path: &str) -> Vec<(String, String)> {
        let found = self.text(["log", "--first-parent", "--reverse", "--format=%H %h", revision, "--", path]);
        let found = found.unwrap_or_default();
        found
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(hash, short)| (hash.to_owned(), short.to_owned()))
            .collect()
    }

    /// Where the host of the remote `origin` shows a commit: an address with `{commit}` for its hash; `None` of hosts whose
    /// addresses are not known.
    pub fn commit_url(&self) -> Option<String> {
        commit_url(&self.text(["remote", "get-url", "origin"])?)
    }

    /// The bytes that Git LFS keeps here for a file, if it has fetched them.
    pub fn fetched(&self, sha256: &str) -> Option<PathBuf> {
        let folder = self.text(["rev-parse", "--git-common-dir"])?;
        let (first, second) = (sha256.get(..2)?, sha256.get(2..4)?);
        let path = self.top.join(folder).join("lfs/objects").join(first).join(second).join(sha256);
        path.is_file().then_some(path)
    }

    /// The values of a trailer in the messages of the commits that `to` has and `from` has not, the newest first.
    pub fn trailers(&self, from: &str, to: &str, key: &str) -> Vec<String> {
        let format = format!("--format=%(trailers:key={key},valueonly,unfold)");
        let found = self.text(["log", &format, &format!("{from}..{to}")]).unwrap_or_default();
        found.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// Whether it does not have its whole history.
    pub fn is_shallow(&self) -> bool {
        self.text(["rev-parse", "--is-shallow-repository"]).is_some_and(|text| text == "true")
    }
}

/// One file, at any commit.
pub struct FileReader<'a> {
    path: &'a str,
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl FileReader<'_> {
    /// The file at a commit, by its full hash; nothing where there is none.
    pub fn read(&mut self, commit: &str) -> Option<Blob> {
        writeln!(self.requests.as_mut()?, "{commit}:{}", self.path).ok()?;
        let mut head = String::new();
        self.answers.read_line(&mut head).ok()?;
        // `<hash> blob <bytes>`, `<what was asked> missing`, or why a link leads to no file: `dangling <bytes>`.
        let mut words = head.trim_end().rsplit(' ');
        let size: u64 = words.next()?.parse().ok()?;
        let is_file = words.next() == Some("blob");
        // A line break follows.
        let mut bytes = Vec::new();
        self.answers.by_ref().take(size + 1).read_to_end(&mut bytes).ok()?;
        bytes.pop();
        (is_file && bytes.len() as u64 == size).then(|| Blob::of(bytes))
    }
}

impl Drop for FileReader<'_> {
    fn drop(&mut self) {
        // git ends when its standard input is closed.
        self.requests = None;
        let _ended = self.process.wait();
    }
}

/// git in a folder, with messages as they are in its source, that starts no program which a repository's files name: a
/// file system monitor, a hook, a check of signatures. A folder that only looks like a repository without a working tree is
/// none.
fn command(folder: &Path) -> Command {
    const SETTINGS: [&str; 4] =
        ["core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false", "safe.bareRepository=explicit"];
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
    git.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C").stdin(Stdio::null());
    git
}

/// Says what git is asked.
fn asked(git: &mut Command) -> &mut Command {
    let words: Vec<_> = git.get_args().map(OsStr::to_string_lossy).collect();
    debug!("git {}", words.join(" "));
    git
}

fn printed(git: &mut Command) -> Option<Vec<u8>> {
    let output = asked(git).stderr(Stdio::null()).output().ok()?;
    output.status.success().then_some(output.stdout)
}

fn text(bytes: Vec<u8>) -> Option<String> {
    Some(String::from_utf8(bytes).ok()?.trim_end_matches('\n').to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn hosts_show_commits_and_no_secret_is_told() {
        let github = Some("https://github.com/o/r/commit/{commit}".to_owned());
        for remote in ["git@github.com:o/r.git", "https://user:token@github.com/o/r.git", "ssh://git@github.com/o/r"] {
            assert_eq!(commit_url(remote), github, "{remote}");
        }
        assert_eq!(commit_url("https://gitlab.com/o/r/").as_deref(), Some("https://gitlab.com/o/r/-/commit/{commit}"));
        assert_eq!(commit_url("https://example.org/o/r.git"), None);
        assert_eq!(commit_url("/srv/r.git"), None);
    }

    #[test]
    fn what_git_refuses_is_told_from_what_is_no_repository() {
        let none = "fatal: not a git repository (or any of the parent directories): .git\n";
        let none_here =
            "fatal: not a git repository (or any parent up to mount point /)\nStopping at filesystem boundary\n";
        assert_eq!((GitError::of_complaint(none), GitError::of_complaint(none_here)), (None, None));
        let owner = "fatal: detected dubious ownership in repository at '/r'\nTo add an exception for this directory, call:\n\n\tgit config --global --add safe.directory /r\n";
        let found = GitError::of_complaint(owner).unwrap();
        assert_eq!(found.hint().as_deref(), Some("allow it: `git config --global --add safe.directory /r`"));
        for (complaint, why) in [
            ("warning: x\nfatal: not a git repository: '/no/such'\n", "not a git repository: '/no/such'"),
            ("fatal: this operation must be run in a work tree\n", "this operation must be run in a work tree"),
            ("error: x\n", "error: x"),
            ("", "it failed without a message"),
        ] {
            assert_eq!(GitError::of_complaint(complaint), Some(GitError::Refused { why: why.to_owned() }));
        }
    }

    /// A repository with one file, by whoever wants to run code: every setting that names a program names one that says it ran.
    #[test]
    fn a_repository_starts_no_program_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (top, ran) = (folder.path().join("repository"), folder.path().join("RAN"));
        let program = folder.path().join("program");
        std::fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\nexit 1\n", ran.display())).unwrap();
        let chmod = Command::new("chmod").arg("+x").arg(&program).status().unwrap();
        assert!(chmod.success());
        std::fs::create_dir(&top).unwrap();
        let git = |words: &[&str]| {
            let author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
            let status = Command::new("git").arg("-C").arg(&top).args(author).args(words).status().unwrap();
            assert!(status.success(), "{words:?}");
        };
        git(&["init", "-q"]);
        for (name, text) in [("file", "1\n"), ("gone", "2\n"), (".gitattributes", "file filter=own\n")] {
            std::fs::write(top.join(name), text).unwrap();
        }
        git(&["add", "."]);
        git(&["commit", "-qm", "a"]);
        let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        let blob = Command::new("git").arg("-C").arg(&top).args(["rev-parse", "HEAD:gone"]).output().unwrap();
        let blob = String::from_utf8(blob.stdout).unwrap();
        std::fs::remove_file(top.join(".git/objects").join(&blob[..2]).join(blob[2..].trim())).unwrap();
        std::fs::copy(&program, top.join(".git/hooks/post-checkout")).unwrap();
        let program = program.to_str().unwrap();
        for key in ["core.fsmonitor", "core.sshCommand", "core.askPass", "gpg.program", "credential.helper"] {
            git(&["config", key, program]);
        }
        for key in ["clean", "smudge", "process"] {
            git(&["config", &format!("filter.own.{key}"), program]);
        }
        for (key, value) in [
            ("filter.own.required", "true"),
            ("log.showSignature", "true"),
            ("remote.other.url", "ssh://host/path"),
            ("remote.other.promisor", "true"),
            ("remote.other.uploadpack", program),
            ("extensions.partialClone", "other"),
            ("core.repositoryFormatVersion", "1"),
        ] {
            git(&["config", key, value]);
        }
        // As long as the file was, and later, so that git must read it to know.
        std::fs::write(top.join("file"), "3\n").unwrap();

        let revision = crate::revision::current(&top, &[top.join("file")]).unwrap().unwrap();
        assert_eq!(revision.dirty, Some(vec!["file".to_owned()]));
        let repository = Repository::around(&top).unwrap().unwrap();
        let commit = repository.commit("HEAD").unwrap();
        assert_eq!(repository.commits_of("HEAD", "file").len(), 1);
        assert!(repository.read(&commit, "file").is_some() && repository.read(&commit, "gone").is_none());
        assert_eq!(repository.size(&commit, "gone"), None);
        assert!(repository.trailers("HEAD", "HEAD", "x").is_empty() && repository.commit_url().is_none());
        assert_eq!(repository.files(&commit, ".").len(), 3);
        let _incomplete = repository.worktree(&commit, &folder.path().join("worktree"));
        assert_eq!(text(&ran), "");
    }

    #[test]
    fn a_pointer_of_git_lfs_tells_the_hash_of_the_file() {
        let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12\n", "ab".repeat(32));
        assert_eq!(Blob::of(pointer.into_bytes()), Blob::Elsewhere("ab".repeat(32)));
        assert_eq!(Blob::of(b"version 1".to_vec()).sha256(), digest::of_text("version 1"));
    }
}
