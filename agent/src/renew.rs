//! `renew FROM TO`: makes a folder the same as another again, whatever a program did to it. Only what differs is copied.
//!
//! A file differs in its kind, owner, mode, size or time of modification, or where it was changed since the last renewal:
//! the kernel's time of change, which no program can set, is compared with that of `FROM.stamp`. No link is followed.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, FileTimes, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// The kernel's clock for files ticks every 1 to 10 ms.
const TICK: Duration = Duration::from_millis(1);

/// The file to renew, and its source.
#[derive(Debug, PartialEq)]
pub struct Renewal {
    from: PathBuf,
    to: PathBuf,
}

/// The reason why a folder is not as it was.
#[derive(Debug)]
pub enum RenewError {
    /// The root lacks this folder, so it is not the image's root.
    NoOriginal(PathBuf),
    Failed(PathBuf, io::Error),
}

impl RenewError {
    /// The agent's exit code: by EX_UNAVAILABLE of sysexits.h the host knows that the platform cannot do it.
    pub fn code(&self) -> u8 {
        match self {
            Self::NoOriginal(_) => 69,
            Self::Failed(..) => 1,
        }
    }
}

impl fmt::Display for RenewError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOriginal(path) => {
                write!(out, "this root has no {}: it does not run the image, which has the folder", path.display())
            }
            Self::Failed(path, error) => write!(out, "{}: {error}", path.display()),
        }
    }
}

/// An instant of the kernel's clock for files, in s and ns.
type Changed = (i64, i64);

impl Renewal {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        match (words.next(), words.next(), words.next()) {
            (Some(from), Some(to), None) => Ok(Self { from: from.into(), to: to.into() }),
            _ => Err("renew takes two folders".to_owned()),
        }
    }

    pub fn run(&self) -> Result<(), RenewError> {
        if !lstat(&self.from).is_some_and(|meta| meta.is_dir()) {
            return Err(RenewError::NoOriginal(self.from.clone()));
        }
        let mut name = self.from.clone().into_os_string();
        name.push(".stamp");
        let stamp = PathBuf::from(name);
        let since = lstat(&stamp).map(|meta| changed(&meta));
        folder(&self.from, &self.to, since)?;
        mark(&stamp).map_err(|error| RenewError::Failed(stamp, error))
    }
}

/// Stamps this instant, and returns once the kernel's clock has gone past it.
fn mark(stamp: &Path) -> io::Result<()> {
    let touched = |path: &Path| {
        fs::write(path, "")?;
        fs::symlink_metadata(path).map(|meta| changed(&meta))
    };
    let _none_before = fs::remove_file(stamp);
    let at = touched(stamp)?;
    let clock = stamp.with_extension("clock");
    while touched(&clock)? <= at {
        sleep(TICK);
    }
    Ok(())
}

fn changed(meta: &Metadata) -> Changed {
    (meta.ctime(), meta.ctime_nsec())
}

fn lstat(path: &Path) -> Option<Metadata> {
    fs::symlink_metadata(path).ok()
}

/// Makes the folder `to` as `from` is, with all that is in it.
fn folder(from: &Path, to: &Path, since: Option<Changed>) -> Result<(), RenewError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| RenewError::Failed(path, error)
    };
    let original = fs::symlink_metadata(from).map_err(failed(from))?;
    if !lstat(to).is_some_and(|meta| meta.is_dir()) {
        remove(to).map_err(failed(to))?;
        fs::create_dir(to).map_err(failed(to))?;
    }
    let names = entries(from).map_err(failed(from))?;
    for name in entries(to).map_err(failed(to))?.difference(&names) {
        remove(&to.join(name)).map_err(failed(&to.join(name)))?;
    }
    for name in &names {
        let (source, target) = (from.join(name), to.join(name));
        let meta = fs::symlink_metadata(&source).map_err(failed(&source))?;
        if meta.is_dir() {
            folder(&source, &target, since)?;
        } else if !is_as_it_was(&source, &meta, &target, since) {
            remove(&target).and_then(|()| copy(&source, &meta, &target)).map_err(failed(&target))?;
        }
    }
    if lstat(to).is_none_or(|meta| !alike(&original, &meta)) {
        dress(to, &original).map_err(failed(to))?;
    }
    Ok(())
}

fn entries(folder: &Path) -> io::Result<HashSet<OsString>> {
    fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

fn alike(one: &Metadata, other: &Metadata) -> bool {
    let facts = |meta: &Metadata| (meta.mode(), meta.uid(), meta.gid(), meta.mtime(), meta.mtime_nsec());
    facts(one) == facts(other)
}

fn is_as_it_was(source: &Path, original: &Metadata, target: &Path, since: Option<Changed>) -> bool {
    let Some(meta) = lstat(target) else { return false };
    if since.is_some_and(|stamp| changed(&meta) > stamp) || original.file_type() != meta.file_type() {
        return false;
    }
    if original.is_symlink() {
        return fs::read_link(source).ok() == fs::read_link(target).ok();
    }
    alike(original, &meta) && original.len() == meta.len()
}

/// Removes whatever has this name, if anything has.
fn remove(path: &Path) -> io::Result<()> {
    let Some(meta) = lstat(path) else { return Ok(()) };
    if meta.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Makes a file or a link that is not there yet.
fn copy(source: &Path, original: &Metadata, target: &Path) -> io::Result<()> {
    if original.is_symlink() {
        symlink(fs::read_link(source)?, target)?;
        return permitted(lchown(target, Some(original.uid()), Some(original.gid())));
    }
    fs::copy(source, target)?;
    dress(target, original)
}

/// Gives a file or folder its owner, mode and time of modification.
fn dress(target: &Path, original: &Metadata) -> io::Result<()> {
    // Opened for the folder's sake too: a path would be followed where a program has put a link.
    let opened = File::open(target)?;
    permitted(fchown(&opened, Some(original.uid()), Some(original.gid())))?;
    opened.set_permissions(Permissions::from_mode(original.mode() & 0o7777))?;
    opened.set_times(FileTimes::new().set_modified(original.modified()?))
}

/// A sandbox with a single user cannot give its files to another.
fn permitted(given: io::Result<()>) -> io::Result<()> {
    given.or_else(|error| if error.kind() == ErrorKind::PermissionDenied { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        /// Two folders that are alike, as the image has them.
        fn new(name: &str) -> Self {
            let top = std::env::temp_dir().join(format!("tare-renew-{}-{name}", std::process::id()));
            let _none = fs::remove_dir_all(&top);
            fs::create_dir_all(top.join("from/sub")).unwrap();
            fs::write(top.join("from/a"), "first").unwrap();
            fs::write(top.join("from/sub/b"), "second").unwrap();
            fs::set_permissions(top.join("from/sub/b"), Permissions::from_mode(0o750)).unwrap();
            symlink("a", top.join("from/link")).unwrap();
            let scratch = Self(top);
            scratch.renewed();
            scratch
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.join(path)
        }

        fn renewed(&self) {
            Renewal { from: self.at("from"), to: self.at("to") }.run().unwrap();
            for path in ["a", "sub/b"] {
                let (from, to) = (self.at("from").join(path), self.at("to").join(path));
                assert_eq!(fs::read(&from).unwrap(), fs::read(&to).unwrap(), "{path}");
                assert!(alike(&lstat(&from).unwrap(), &lstat(&to).unwrap()), "{path}");
            }
            assert_eq!(fs::read_link(self.at("to/link")).unwrap(), Path::new("a"));
            assert!(alike(&lstat(&self.at("from/sub")).unwrap(), &lstat(&self.at("to/sub")).unwrap()));
            assert_eq!(entries(&self.at("to")).unwrap(), entries(&self.at("from")).unwrap());
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_folder_is_the_same_again_whatever_was_done_to_it() {
        let scratch = Scratch::new("whatever");
        fs::write(scratch.at("to/a"), "longer than before").unwrap();
        fs::remove_file(scratch.at("to/sub/b")).unwrap();
        fs::create_dir_all(scratch.at("to/new/below")).unwrap();
        fs::write(scratch.at("to/new/below/c"), "").unwrap();
        fs::remove_file(scratch.at("to/link")).unwrap();
        fs::create_dir(scratch.at("to/link")).unwrap();
        scratch.renewed();
        fs::remove_dir_all(scratch.at("to/sub")).unwrap();
        fs::write(scratch.at("to/sub"), "a file").unwrap();
        fs::set_permissions(scratch.at("to/a"), Permissions::from_mode(0o600)).unwrap();
        scratch.renewed();
        fs::remove_dir_all(scratch.at("to")).unwrap();
        scratch.renewed();
    }

    #[test]
    fn a_change_that_hides_its_time_and_size_is_undone() {
        let scratch = Scratch::new("hidden");
        let time = lstat(&scratch.at("to/a")).unwrap().modified().unwrap();
        fs::write(scratch.at("to/a"), "FIRST").unwrap();
        File::open(scratch.at("to/a")).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
        scratch.renewed();
    }

    #[test]
    fn what_is_as_it_was_is_not_written_again() {
        let scratch = Scratch::new("same");
        let inode = || lstat(&scratch.at("to/a")).unwrap().ino();
        let before = inode();
        fs::write(scratch.at("to/sub/b"), "changed").unwrap();
        scratch.renewed();
        assert_eq!(inode(), before);
    }

    #[test]
    fn a_link_that_a_program_left_leads_nowhere() {
        let scratch = Scratch::new("link");
        fs::create_dir(scratch.at("elsewhere")).unwrap();
        fs::write(scratch.at("elsewhere/kept"), "kept").unwrap();
        fs::remove_dir_all(scratch.at("to/sub")).unwrap();
        symlink(scratch.at("elsewhere"), scratch.at("to/sub")).unwrap();
        fs::remove_file(scratch.at("to/a")).unwrap();
        symlink(scratch.at("elsewhere/kept"), scratch.at("to/a")).unwrap();
        symlink(scratch.at("elsewhere"), scratch.at("to/more")).unwrap();
        scratch.renewed();
        assert_eq!(fs::read(scratch.at("elsewhere/kept")).unwrap(), b"kept");
        assert_eq!(entries(&scratch.at("elsewhere")).unwrap().len(), 1);
    }

    #[test]
    fn without_the_original_it_is_unavailable() {
        let scratch = Scratch::new("none");
        let error = Renewal { from: scratch.at("nowhere"), to: scratch.at("to") }.run().unwrap_err();
        assert_eq!(error.code(), 69);
        assert!(error.to_string().contains("nowhere"));
    }

    #[test]
    fn two_folders_are_named() {
        let parsed = |line: &str| Renewal::parse(line.split_whitespace().map(str::to_owned));
        assert_eq!(parsed("/a /b"), Ok(Renewal { from: "/a".into(), to: "/b".into() }));
        assert!(parsed("/a").unwrap_err().contains("two folders"));
        assert!(parsed("/a /b /c").is_err());
    }
}
