//! Names of files: open and close, stat, create and remove, also with the disk's word for it.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, c_long};

use super::{Call, Kind, Repeat, exactly, succeeded};

pub const KINDS: [Kind; 4] = [
    Kind::new("open", open),
    Kind::new("stat", stat),
    Kind::new("file-create", |folder| create(folder, false)),
    Kind::new("file-fsync", |folder| create(folder, true)),
];

const HERE: c_long = libc::AT_FDCWD as c_long;
const NO_FLAGS: c_long = 0;

/// A unique name in the folder.
fn own_name(folder: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    folder.join(format!(".tare-calls-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
}

fn for_kernel(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// An empty file, removed when it is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(folder: &Path) -> io::Result<Self> {
        let path = own_name(folder);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Who removed it before us did what was to be done.
        let _gone = std::fs::remove_file(&self.0);
    }
}

fn open_and_close(path: &CString, flags: c_int, sync: bool) -> io::Result<()> {
    let (flags, mode): (c_long, c_long) = (c_long::from(flags | libc::O_CLOEXEC), 0o600);
    // SAFETY: the path ends with NUL.
    let fd = succeeded(unsafe { libc::syscall(libc::SYS_openat, HERE, path.as_ptr(), flags, mode) })?;
    let synced = if sync {
        // SAFETY: the descriptor was opened above.
        exactly(unsafe { libc::syscall(libc::SYS_fsync, fd) }, 0)
    } else {
        Ok(())
    };
    // SAFETY: the descriptor was opened above, and nothing else has it.
    exactly(unsafe { libc::syscall(libc::SYS_close, fd) }, 0)?;
    synced
}

/// open(2) of a file that is there, and close(2).
struct Open {
    path: CString,
    _scratch: Scratch,
}

fn open(folder: &Path) -> io::Result<Box<dyn Repeat>> {
    let scratch = Scratch::new(folder)?;
    Ok(Box::new(Open { path: for_kernel(scratch.path())?, _scratch: scratch }))
}

impl Call for Open {
    fn call(&mut self) -> io::Result<()> {
        open_and_close(&self.path, libc::O_RDONLY, false)
    }
}

/// stat(2) of a file that is there.
struct Stat {
    path: CString,
    _scratch: Scratch,
}

fn stat(folder: &Path) -> io::Result<Box<dyn Repeat>> {
    let scratch = Scratch::new(folder)?;
    Ok(Box::new(Stat { path: for_kernel(scratch.path())?, _scratch: scratch }))
}

impl Call for Stat {
    fn call(&mut self) -> io::Result<()> {
        let mut told = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the path ends with NUL; there is room for the answer.
        let result =
            unsafe { libc::syscall(libc::SYS_newfstatat, HERE, self.path.as_ptr(), told.as_mut_ptr(), NO_FLAGS) };
        exactly(result, 0)
    }
}

/// A file is made, closed and removed; with `sync`, fsync(2) is called before it is closed.
struct Create {
    path: CString,
    sync: bool,
}

fn create(folder: &Path, sync: bool) -> io::Result<Box<dyn Repeat>> {
    Ok(Box::new(Create { path: for_kernel(&own_name(folder))?, sync }))
}

impl Call for Create {
    fn call(&mut self) -> io::Result<()> {
        let made = open_and_close(&self.path, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, self.sync);
        // SAFETY: the path ends with NUL.
        let removed = exactly(unsafe { libc::syscall(libc::SYS_unlinkat, HERE, self.path.as_ptr(), NO_FLAGS) }, 0);
        made.and(removed)
    }
}
