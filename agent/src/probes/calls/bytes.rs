//! Reading and writing: 1 byte and 4 KiB, of devices that do nothing and of a file that is in the page cache.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use libc::c_long;

use super::files::Scratch;
use super::{Call, Kind, Repeat, exactly};

pub const KINDS: [Kind; 8] = [
    Kind::new("read-1b", |_| device_read(1)),
    Kind::new("read-4k", |_| device_read(PAGE)),
    Kind::new("write-1b", |_| device_write(1)),
    Kind::new("write-4k", |_| device_write(PAGE)),
    Kind::new("file-read-1b", |folder| file_read(folder, 1)),
    Kind::new("file-read-4k", |folder| file_read(folder, PAGE)),
    Kind::new("file-write-1b", |folder| file_write(folder, 1)),
    Kind::new("file-write-4k", |folder| file_write(folder, PAGE)),
];

const PAGE: usize = 4096;

/// read(2) or write(2) of the whole buffer, of a device that has no position.
struct OfDevice {
    number: c_long,
    device: File,
    buffer: Vec<u8>,
}

fn device_read(size: usize) -> io::Result<Box<dyn Repeat>> {
    Ok(Box::new(OfDevice { number: libc::SYS_read, device: File::open("/dev/zero")?, buffer: vec![1; size] }))
}

fn device_write(size: usize) -> io::Result<Box<dyn Repeat>> {
    let device = OpenOptions::new().write(true).open("/dev/null")?;
    Ok(Box::new(OfDevice { number: libc::SYS_write, device, buffer: vec![1; size] }))
}

impl Call for OfDevice {
    fn call(&mut self) -> io::Result<()> {
        let (fd, size) = (c_long::from(self.device.as_raw_fd()), self.buffer.len());
        // SAFETY: the buffer is writable and has this size; the number is that of read or write.
        exactly(unsafe { libc::syscall(self.number, fd, self.buffer.as_mut_ptr(), size) }, size as c_long)
    }
}

/// pread(2) or pwrite(2) of the file's beginning: read and write themselves would have to be led back there.
struct OfFile {
    number: c_long,
    file: File,
    buffer: Vec<u8>,
    _scratch: Scratch,
}

fn of_file(folder: &Path, number: c_long, size: usize) -> io::Result<Box<dyn Repeat>> {
    let scratch = Scratch::new(folder)?;
    let mut file = OpenOptions::new().read(true).write(true).open(scratch.path())?;
    // More than is read, so that no read ends at the file's end.
    file.write_all(&[2; 4 * PAGE])?;
    Ok(Box::new(OfFile { number, file, buffer: vec![2; size], _scratch: scratch }))
}

fn file_read(folder: &Path, size: usize) -> io::Result<Box<dyn Repeat>> {
    of_file(folder, libc::SYS_pread64, size)
}

fn file_write(folder: &Path, size: usize) -> io::Result<Box<dyn Repeat>> {
    of_file(folder, libc::SYS_pwrite64, size)
}

impl Call for OfFile {
    fn call(&mut self) -> io::Result<()> {
        let (fd, size, from) = (c_long::from(self.file.as_raw_fd()), self.buffer.len(), 0 as c_long);
        // SAFETY: the buffer is writable and has this size; the number is that of pread or pwrite.
        exactly(unsafe { libc::syscall(self.number, fd, self.buffer.as_mut_ptr(), size, from) }, size as c_long)
    }
}
