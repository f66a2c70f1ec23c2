//! Anonymous memory by calls of our own, for the probes that measure those calls.

use std::io;
use std::mem::ManuallyDrop;
use std::ptr;

use libc::c_void;

/// Bytes of a page: what a word is touched in. Where pages are larger, a page is touched more than once.
pub const SIZE: usize = 4096;

/// Private memory, readable and writable.
pub struct Mapping {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: it owns its memory, as a Box does.
unsafe impl Send for Mapping {}

impl Mapping {
    /// One mmap(2); `bytes` is a multiple of the page's size and not zero.
    #[inline]
    pub fn new(bytes: usize) -> io::Result<Self> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, at a place that the kernel chooses, touches nothing that there is.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(Self { start: start.cast(), bytes })
        }
    }

    /// Writes one word of each page.
    #[inline]
    pub fn touch(&self) {
        for offset in (0..self.bytes).step_by(SIZE) {
            let word = self.at(offset).cast::<u64>();
            // SAFETY: the start of a page within the mapping, which is writable and has no other user.
            unsafe { ptr::write_volatile(word, 1) };
        }
    }

    /// A byte of it; `offset` is less than its size.
    #[inline]
    pub fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset < self.bytes);
        // SAFETY: within the mapping.
        unsafe { self.start.add(offset) }
    }

    /// One munmap(2).
    #[inline]
    pub fn end(self) -> io::Result<()> {
        ManuallyDrop::new(self).unmap()
    }

    /// The caller must not use it afterwards.
    #[inline]
    fn unmap(&self) -> io::Result<()> {
        // SAFETY: the whole mapping, which nothing uses anymore.
        match unsafe { libc::munmap(self.start.cast::<c_void>(), self.bytes) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Takes a neighbour in, so that one call ends both; one that is apart is handed back.
    pub fn join(&mut self, other: Self) -> Result<(), Self> {
        if other.start.addr() + other.bytes == self.start.addr() {
            self.start = other.start;
        } else if self.start.addr() + self.bytes != other.start.addr() {
            return Err(other);
        }
        self.bytes += ManuallyDrop::new(other).bytes;
        Ok(())
    }

    /// Its pages go back to the kernel, and are new when they are touched again.
    pub fn give_back(&self) -> io::Result<()> {
        // SAFETY: the whole mapping, which stays mapped; that its contents are lost is what is wanted.
        match unsafe { libc::madvise(self.start.cast::<c_void>(), self.bytes, libc::MADV_DONTNEED) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Asks for pages of the usual size where the kernel would give huge ones: a fault is to be one page's.
    pub fn small_pages_only(&self) {
        // SAFETY: the whole mapping; only how it is backed changes. A kernel without huge pages refuses, rightly.
        let _without = unsafe { libc::madvise(self.start.cast::<c_void>(), self.bytes, libc::MADV_NOHUGEPAGE) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let _unmapped = self.unmap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_touched_is_there_until_it_is_given_back() {
        let memory = Mapping::new(3 * SIZE).unwrap();
        memory.touch();
        let read = |offset| {
            // SAFETY: within the mapping.
            unsafe { ptr::read_volatile(memory.at(offset)) }
        };
        assert_eq!((read(0), read(2 * SIZE), read(SIZE - 1)), (1, 1, 0));
        memory.give_back().unwrap();
        assert_eq!(read(2 * SIZE), 0);
        memory.end().unwrap();
    }

    #[test]
    fn neighbours_are_joined_on_either_side_and_strangers_not() {
        let apart = |memory: &Mapping, offset| Mapping { start: memory.start.wrapping_add(offset), bytes: SIZE };
        let whole = ManuallyDrop::new(Mapping::new(4 * SIZE).unwrap());
        let mut second = apart(&whole, SIZE);
        assert!(second.join(apart(&whole, 2 * SIZE)).is_ok());
        assert!(second.join(apart(&whole, 0)).is_ok());
        assert_eq!((second.start, second.bytes), (whole.start, 3 * SIZE));
        let stranger = second.join(Mapping { start: whole.start.wrapping_add(9 * SIZE), bytes: SIZE }).unwrap_err();
        // It was made up: nothing is mapped there that is ours.
        assert_eq!(ManuallyDrop::new(stranger).bytes, SIZE);
        assert!(second.join(apart(&whole, 3 * SIZE)).is_ok());
        second.end().unwrap();
    }

    #[test]
    fn more_than_there_can_be_is_refused() {
        assert!(Mapping::new(usize::MAX / 2 / SIZE * SIZE).is_err());
    }
}
