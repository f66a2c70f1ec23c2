//! Files to and from the host.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

use rustix::fs::OFlags;

use crate::message::{self, Code};

/// The reason why a file could not be put or got.
#[derive(Debug)]
pub struct FileError {
    pub code: Code,
    pub text: String,
}

impl FileError {
    fn new(code: Code, path: &str, why: impl std::fmt::Display) -> Self {
        Self { code, text: format!("{path}: {why}") }
    }

    fn from_io(path: &str, error: &io::Error) -> Self {
        let code = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Code::NotFound,
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Code::Denied,
            _ => Code::Io,
        };
        Self::new(code, path, error)
    }
}

/// A file that is being written. It takes its name only when it is whole.
pub struct Put {
    path: String,
    partial: PathBuf,
    file: File,
    size: u64,
    written: u64,
    mode: u32,
}

impl Put {
    pub fn open(request: &message::Put) -> Result<Self, FileError> {
        let fail = |error: &io::Error| FileError::from_io(&request.path, error);
        match std::fs::metadata(&request.path) {
            Ok(meta) if !meta.is_file() => {
                return Err(FileError::new(Code::Denied, &request.path, "is there, and is not a regular file"));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(fail(&error)),
            _ => {}
        }
        let partial = PathBuf::from(format!("{}.tare-put-{}", request.path, request.id));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&partial)
            .map_err(|error| fail(&error))?;
        Ok(Self { path: request.path.clone(), partial, file, size: request.size, written: 0, mode: request.mode })
    }

    /// Takes the next bytes, or the end (no bytes); true when the file is whole.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<bool, FileError> {
        let written = self.written + bytes.len() as u64;
        if written > self.size || (bytes.is_empty() && written < self.size) {
            let why = format!("{} bytes were announced, {written} came", self.size);
            return Err(FileError::new(Code::BadRequest, &self.path, why));
        }
        self.file.write_all(bytes).map_err(|error| FileError::from_io(&self.path, &error))?;
        self.written = written;
        Ok(bytes.is_empty())
    }

    /// Gives the whole file its mode and name; returns its size.
    pub fn finish(self) -> Result<u64, FileError> {
        self.file
            .set_permissions(Permissions::from_mode(self.mode))
            .and_then(|()| std::fs::rename(&self.partial, &self.path))
            .map_err(|error| FileError::from_io(&self.path, &error))?;
        Ok(self.written)
    }
}

impl Drop for Put {
    fn drop(&mut self) {
        // After `finish` it has another name and this finds nothing.
        let _gone = std::fs::remove_file(&self.partial);
    }
}

/// A file that is being read, a piece at a time.
pub struct Get {
    path: String,
    file: File,
    cap: u64,
    sent: u64,
}

impl Get {
    pub fn open(request: &message::Get) -> Result<Self, FileError> {
        let fail = |error: &io::Error| FileError::from_io(&request.path, error);
        // Opening a pipe must not wait for its writer.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&request.path)
            .map_err(|error| fail(&error))?;
        let meta = file.metadata().map_err(|error| fail(&error))?;
        if !meta.is_file() {
            return Err(FileError::new(Code::Denied, &request.path, "is not a regular file"));
        }
        let get = Self { path: request.path.clone(), file, cap: request.cap, sent: 0 };
        if meta.len() > request.cap { Err(get.too_big()) } else { Ok(get) }
    }

    /// The next bytes of the file; none at its end. Files in /proc say no size, so the cap is held here too.
    pub fn read<'a>(&mut self, scratch: &'a mut [u8]) -> Result<&'a [u8], FileError> {
        let count = self.file.read(scratch).map_err(|error| FileError::from_io(&self.path, &error))?;
        self.sent += count as u64;
        if self.sent > self.cap { Err(self.too_big()) } else { Ok(&scratch[..count]) }
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    fn too_big(&self) -> FileError {
        FileError::new(Code::TooBig, &self.path, format!("is larger than the {} bytes that were asked for", self.cap))
    }
}
