//! One real measurement on a machine at a time.
//!
//! An advisory lock on a file that every user of the machine can open; its text says who holds it. The kernel releases
//! it with the process, so a lock is never stale. Where the file cannot be opened, each user has one of their own.
//!
//! Processes that wait for it queue: each holds a file next to the lock, named after the time at which it came, and
//! only the first of them may take the lock. Such a file is locked too, so that a waiter that died does not hold up the
//! queue.

use std::fs::{DirEntry, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use base::printable::printable;
use reading::plain_file;

/// Held while measuring with a real backend.
#[derive(Debug)]
pub struct MachineLock {
    file: File,
    holder: String,
}

/// The lock is not to be had now.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum LockError {
    #[error("another perfrun is measuring on this machine: {holder}")]
    #[diagnostic(help(
        "leave out --no-wait to wait for it; PERFRUN_LOCK=none measures at the same time, and the record says so"
    ))]
    Held {
        /// What the lock's file says, or the kernel.
        holder: String,
    },
    #[error("cannot open {path}")]
    Io { path: PathBuf, source: io::Error },
}

/// The file by which this process waits for other ones.
#[derive(Debug, PartialEq, Eq)]
pub struct Choice {
    /// The lock's file; `None`: there is none, or none is wanted.
    pub path: Option<PathBuf>,
    /// Why other processes may measure at the same time.
    pub not_shared: Option<String>,
}

/// What `PERFRUN_LOCK` says where nobody is to be waited for.
const NONE: &str = "none";

/// The file that all users share; where that cannot be opened, one of this user's.
pub fn choose() -> Choice {
    match std::env::var_os("PERFRUN_LOCK").filter(|named| !named.is_empty()) {
        Some(named) if named == NONE => Choice { path: None, not_shared: Some(format!("PERFRUN_LOCK={NONE}")) },
        named => usable(&named.map_or_else(usual_path, PathBuf::from)),
    }
}

/// Memory-backed and the same for all users, in `/tmp` where that does not exist.
fn usual_path() -> PathBuf {
    let folder = ["/dev/shm", "/tmp"].into_iter().map(Path::new).find(|folder| folder.is_dir());
    folder.map_or_else(std::env::temp_dir, Path::to_path_buf).join("perfrun.lock")
}

fn usable(shared: &Path) -> Choice {
    let Err(source) = open_shared(shared) else {
        return Choice { path: Some(shared.to_owned()), not_shared: None };
    };
    let name = format!("perfrun-{}.lock", rustix::process::geteuid().as_raw());
    let of_user = [usual_path().with_file_name(&name), std::env::temp_dir().join(&name)];
    let path = of_user.into_iter().find(|path| open_shared(path).is_ok());
    let waits = match path {
        Some(_) => "perfrun waits only for other measurements of this user",
        None => "perfrun does not wait for other measurements",
    };
    let why = format!("cannot use {}: {}; {waits}", shared.display(), plain_file::plain(source));
    Choice { path, not_shared: Some(why) }
}

impl MachineLock {
    /// Takes the lock if it is free and nobody waits for it who came before `turn`, or at all without one.
    ///
    /// # Errors
    ///
    /// [`LockError::Held`] with the holder, or a file that cannot be used.
    pub fn try_take(path: &Path, holder: &str, turn: Option<&Turn>) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.to_owned(), source };
        let file = open_shared(path).map_err(failed)?;
        let before = waiting_before(path, turn);
        let locked = if before > 0 { Err(TryLockError::WouldBlock) } else { file.try_lock() };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text = text_of_holder(&file, &plain_file::text(path).unwrap_or_default());
                let queue = if before > 0 { format!("; {before} more waiting before this one") } else { String::new() };
                return Err(LockError::Held { holder: in_words(&text, SystemTime::now()) + &queue });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let lock = MachineLock { file, holder: holder.to_owned() };
        lock.write("");
        Ok(lock)
    }

    /// Writes into the lock's file when it is likely to be free, for those who wait.
    pub fn expect_end(&self, left: Duration) {
        let end = (SystemTime::now() + left).duration_since(UNIX_EPOCH).unwrap_or_default();
        self.write(&format!("{}\n", end.as_secs()));
    }

    /// Who holds the lock is a courtesy; a file of another user is locked all the same.
    fn write(&self, end: &str) {
        let text = format!("{}\n{end}", self.holder);
        let _unwritable = self.file.set_len(0).and_then(|()| self.file.write_all_at(text.as_bytes(), 0));
    }
}

impl Drop for MachineLock {
    /// Closing the file is not enough: a process that another thread is starting at this moment has a copy of it open.
    fn drop(&mut self) {
        let _released = self.file.unlock();
    }
}

/// A position in the queue for the lock.
#[derive(Debug)]
pub struct Turn {
    path: PathBuf,
    /// Locked as long as this one waits.
    _file: File,
}

impl Turn {
    /// Joins those who wait, as the last; nothing where the folder takes no file: then whoever is quick gets the lock.
    pub fn take(lock: &Path) -> Option<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let path = lock.with_file_name(format!("{}{since:020}-{}", prefix(lock), std::process::id()));
        let file = plain_file::temporary_sibling(&path).ok()?;
        // Other users must see whether it is locked.
        file.as_file().set_permissions(Permissions::from_mode(0o644)).ok()?;
        // Before it has its name, so that nobody finds it unlocked.
        file.as_file().try_lock().ok()?;
        let file = file.persist_noclobber(&path).ok()?;
        Some(Turn { path, _file: file })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.path);
    }
}

/// What the names of the files of those who wait begin with.
fn prefix(lock: &Path) -> String {
    format!("{}.waiting-", lock.file_name().unwrap_or_default().to_string_lossy())
}

/// How many wait for the lock who came before this one. What a waiter left that died is removed, where that is allowed.
fn waiting_before(lock: &Path, turn: Option<&Turn>) -> usize {
    let prefix = prefix(lock);
    let this_turn = turn.and_then(|turn| turn.path.file_name());
    let folder = lock.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_before = |entry: &DirEntry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with(&prefix) && this_turn.is_none_or(|this_turn| name.as_os_str() < this_turn)
    };
    let is_alive = |entry: &DirEntry| {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(entry.path()) else { return false };
        if matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return true;
        }
        let _left = std::fs::remove_file(entry.path());
        false
    };
    entries.filter(is_before).filter(is_alive).count()
}

/// `process 7, experiment x, about 3 min more`: the lock's file is a name and, from when it is known, the second in
/// which its holder expects to end.
pub fn in_words(text: &str, now: SystemTime) -> String {
    let mut lines = text.lines();
    let holder = lines.next().map(str::trim).filter(|holder| !holder.is_empty()).unwrap_or("unknown");
    let end = lines.next().and_then(|end| UNIX_EPOCH.checked_add(Duration::from_secs(end.parse().ok()?)));
    let left = end.and_then(|end| end.duration_since(now).ok()).map(|left| left.as_secs());
    match left {
        Some(seconds @ 60..) => format!("{holder}, about {} min more", seconds.div_ceil(60)),
        Some(_) => format!("{holder}, less than a minute more"),
        None => holder.to_owned(),
    }
}

/// What the lock's file says, unless the kernel names another process, which is no perfrun. A perfrun in another
/// container knows itself by another number.
fn text_of_holder(file: &File, text: &str) -> String {
    let holders = file.metadata().map(|metadata| holders(&metadata)).unwrap_or_default();
    let is_named = holders.iter().any(|pid| text.starts_with(&format!("process {pid},")));
    let Some(pid) = holders.first().filter(|_| !is_named) else { return text.to_owned() };
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match name.trim() {
        "perfrun" if !text.is_empty() => text.to_owned(),
        name => format!("process {pid} ({})", printable(name)),
    }
}

/// The processes that hold an advisory lock on a file; empty where the kernel does not report them, or not in this
/// container.
pub fn holders(file: &Metadata) -> Vec<u32> {
    let device = file.dev();
    let id = format!("{:02x}:{:02x}:{}", rustix::fs::major(device), rustix::fs::minor(device), file.ino());
    // `1: FLOCK  ADVISORY  WRITE 1234 00:1a:5 0 EOF`, with `->` before the type of one that waits.
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let pid = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let is_flock = words.next() == Some("FLOCK");
        let pid = words.nth(2)?.parse().ok().filter(|pid| *pid > 0)?;
        (is_flock && words.next() == Some(&id)).then_some(pid)
    };
    locks.lines().filter_map(pid).collect()
}

/// What the text of a lock begins with.
const BEGINNING: &str = "process ";

/// Opens the file of the lock itself: not what a link there points to, no pipe, and nothing that has a second name. The kernel
/// forbids to create what another user's file already is in a shared folder, and one that can only be read locks as well.
fn open_shared(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let open = |options: &mut OpenOptions| options.read(true).custom_flags(flags).open(path);
    let file = open(OpenOptions::new().write(true)).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => match open(OpenOptions::new().write(true).create_new(true)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open(OpenOptions::new().write(true)),
            created => created,
        },
        _ => open(&mut OpenOptions::new()).map_err(|_| error),
    });
    let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    let file = if is_link { Err(io::Error::other("it is a link")) } else { file }?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.nlink() != 1 {
        return Err(io::Error::other("it is not a regular file with one name"));
    }
    // What a user named by mistake is not written over.
    let mut start = [0; BEGINNING.len()];
    let read = file.read_at(&mut start, 0)?;
    if start[..read] != BEGINNING.as_bytes()[..read] {
        return Err(io::Error::other("it holds something else than a lock"));
    }
    // The umask of whoever made it keeps nobody out.
    if metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o666 != 0o666 {
        let _as_it_is = file.set_permissions(Permissions::from_mode(0o666));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_estimate_that_has_passed_or_is_none_is_not_told() {
        let now = UNIX_EPOCH + Duration::from_secs(1000);
        assert_eq!(in_words("x\n1059\n", now), "x, less than a minute more");
        for text in ["x", "x\n999\n", "x\nsoon", "x\n-1", "x\n99999999999999999999"] {
            assert_eq!(in_words(text, now), "x");
        }
        assert_eq!(in_words("", now), "unknown");
    }

    #[test]
    fn nothing_but_a_file_of_its_own_is_written_to() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (precious, path) = (folder.path().join("precious"), folder.path().join("lock"));
        let refused = |expected: &str| {
            let error = MachineLock::try_take(&path, "process 1", None).expect_err("no lock");
            let LockError::Io { source, .. } = error else { panic!("{error}") };
            assert!(source.to_string().contains(expected), "{source}");
            assert_eq!(fs::read_to_string(&precious).expect("it is there"), "precious");
            fs::remove_file(&path).expect("it can be removed");
        };
        fs::write(&precious, "precious").expect("a file");
        std::os::unix::fs::symlink(&precious, &path).expect("a link");
        refused("it is a link");
        fs::hard_link(&precious, &path).expect("a second name");
        refused("not a regular file with one name");
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success());
        refused("not a regular file with one name");
    }

    #[test]
    fn no_umask_keeps_others_out_and_what_cannot_be_opened_has_a_name_of_its_own() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("lock");
        fs::write(&path, "").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("its own");
        assert_eq!(usable(&path), Choice { path: Some(path.clone()), not_shared: None });
        assert_eq!(path.metadata().expect("a file").mode() & 0o777, 0o666);
        fs::remove_file(&path).expect("it can be removed");
        fs::create_dir(&path).expect("a folder");
        let choice = usable(&path);
        let of_user = choice.path.expect("one of this user's");
        assert!(of_user.is_file() && of_user.parent() != Some(folder.path()), "{of_user:?}");
        let why = choice.not_shared.expect("a reason");
        assert!(
            why.starts_with("cannot use ") && why.ends_with("perfrun waits only for other measurements of this user"),
            "{why}"
        );
        fs::remove_dir(&path).expect("it is empty");
        fs::write(&path, "models: [precious.onnx]").expect("a file");
        let why = usable(&path).not_shared.expect("a reason");
        assert!(why.contains("something else than a lock"), "{why}");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "models: [precious.onnx]");
        let nowhere = usable(Path::new("/proc/perfrun/lock"));
        assert!(nowhere.not_shared.is_some_and(|why| why.contains("No such file or directory")), "the first reason");
    }

    #[test]
    fn who_holds_the_file_without_a_word_is_named_by_the_kernel() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("lock");
        fs::write(&path, "process 1, experiment of yesterday").expect("a file");
        let file = File::open(&path).expect("a file");
        file.lock().expect("a free lock");
        let Err(LockError::Held { holder }) = MachineLock::try_take(&path, "process 2", None) else { panic!("held") };
        let this_process = format!("process {} (", std::process::id());
        // A sandbox may have no /proc/locks.
        assert!(holder.starts_with(&this_process) || holders(&file.metadata().expect("a file")).is_empty(), "{holder}");
    }

    #[test]
    fn the_second_one_is_told_about_the_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("lock");
        let this_process = format!("process {}, experiment x", std::process::id());
        let first = MachineLock::try_take(&path, &this_process, None).expect("a free lock");
        let second = MachineLock::try_take(&path, "process 2", None);
        assert!(matches!(second, Err(LockError::Held { holder }) if holder == this_process));
        first.expect_end(Duration::from_secs(150));
        let third = MachineLock::try_take(&path, "process 3", None);
        let left = format!("{this_process}, about 3 min more");
        assert!(matches!(third, Err(LockError::Held { holder }) if holder == left));
        drop(first);
        MachineLock::try_take(&path, "process 2", None).expect("free again");
    }

    #[test]
    fn it_is_free_although_a_process_that_is_being_started_has_the_file_open() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("lock");
        let first = MachineLock::try_take(&path, "process 1", None).expect("a free lock");
        let _forked = first.file.try_clone().expect("a copy");
        drop(first);
        MachineLock::try_take(&path, "process 2", None).expect("free again");
    }

    #[test]
    fn those_who_wait_take_turns_and_nobody_passes_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("lock");
        let take = |turn: Option<&Turn>| MachineLock::try_take(&path, "process 1", turn);
        let held = take(None).expect("a free lock");
        let (first, second) = (Turn::take(&path).expect("a turn"), Turn::take(&path).expect("a turn"));
        assert!(take(Some(&first)).is_err(), "it is held");
        drop(held);
        let Err(LockError::Held { holder }) = take(Some(&second)) else { panic!("it is the first one's turn") };
        assert!(holder.ends_with("; 1 more waiting before this one"), "{holder}");
        assert!(matches!(take(None), Err(LockError::Held { .. })), "who just came");
        let held = take(Some(&first)).expect("its turn");
        drop((held, first));
        let held = take(Some(&second)).expect("its turn");
        drop((held, second));
        take(None).expect("nobody waits");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "the lock alone");
    }

    #[test]
    fn who_died_while_waiting_holds_up_nobody() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("lock");
        let left = folder.path().join(format!("{}{:020}-1", prefix(&path), 5));
        fs::write(&left, "").expect("a file");
        std::os::unix::fs::symlink("/nowhere", folder.path().join(format!("{}{:020}-2", prefix(&path), 6)))
            .expect("a link");
        MachineLock::try_take(&path, "process 1", None).expect("a free lock");
        assert!(!left.exists());
    }
}
