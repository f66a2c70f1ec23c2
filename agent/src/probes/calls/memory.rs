//! Memory from the kernel: a page mapped and given back, with and without its use, and the fault alone.

use std::io;
use std::path::Path;
use std::ptr;

use super::{Call, Kind, Repeat};
use crate::probes::pages::{self, Mapping};

pub const KINDS: [Kind; 3] = [
    Kind::new("map", |_| Ok(Box::new(Map { touch: false }))),
    Kind::new("map-touch", |_| Ok(Box::new(Map { touch: true }))),
    Kind::new("fault", fault),
];

/// mmap(2) of one page and munmap(2); with `touch`, a word of it is written in between.
struct Map {
    touch: bool,
}

impl Call for Map {
    fn call(&mut self) -> io::Result<()> {
        let page = Mapping::new(pages::SIZE)?;
        if self.touch {
            page.touch();
        }
        page.end()
    }
}

/// The first write to a page of memory that is mapped already.
struct Fault {
    memory: Mapping,
    next: usize,
}

/// Pages that are touched before they are all given back: the share of that call is a 256th of itself a fault.
const PAGES: usize = 256;

fn fault(_folder: &Path) -> io::Result<Box<dyn Repeat>> {
    let memory = Mapping::new(PAGES * pages::SIZE)?;
    memory.small_pages_only();
    Ok(Box::new(Fault { memory, next: 0 }))
}

impl Call for Fault {
    fn call(&mut self) -> io::Result<()> {
        if self.next == PAGES {
            self.memory.give_back()?;
            self.next = 0;
        }
        let word = self.memory.at(self.next * pages::SIZE);
        // SAFETY: a byte within the mapping, which is writable and has no other user.
        unsafe { ptr::write_volatile(word, 1) };
        self.next += 1;
        Ok(())
    }
}
