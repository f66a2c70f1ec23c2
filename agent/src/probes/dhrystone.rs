//! Dhrystone 2.1: one unit is one run through its main loop.
//!
//! Source: R. P. Weicker, "Dhrystone: a synthetic systems programming benchmark", CACM 27(10), 1984; version 2.1 in C
//! of 1988. Statement for statement as published, with the original's names, and checked at the end against the final
//! values that the original prints. Three things differ: records are found by index and not by address, strings are
//! compared by `memcmp`, and the element that counts the runs wraps around instead of overflowing.
//!
//! The published rules forbid a compiler to merge procedures; `inline(never)` keeps to that, and `black_box` hides the
//! values from one run to the next, as separate compilation does in C.

use std::hint::black_box;

use super::{Probe, Reader};

const PARTS: [&str; 1] = ["runs"];
const MAX_UNITS: u64 = 1_000_000;

/// A string of 30 characters, with C's end.
type Text = [u8; 31];
const SOME: Text = *b"DHRYSTONE PROGRAM, SOME STRING\0";
const FIRST: Text = *b"DHRYSTONE PROGRAM, 1'ST STRING\0";
const SECOND: Text = *b"DHRYSTONE PROGRAM, 2'ND STRING\0";
const THIRD: Text = *b"DHRYSTONE PROGRAM, 3'RD STRING\0";

/// The place of a record; only its lowest bit counts.
type Pointer = usize;
const NULL: Pointer = usize::MAX;
const GLOB: Pointer = 0;
const NEXT_GLOB: Pointer = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ident {
    One,
    Two,
    Three,
    Four,
    #[allow(dead_code)] // nothing makes it in the original either
    Five,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    ptr_comp: Pointer,
    discr: Ident,
    enum_comp: Ident,
    int_comp: i32,
    str_comp: Text,
}

/// The original's global variables.
struct Globals {
    records: [Record; 2],
    ptr_glob: Pointer,
    int_glob: i32,
    bool_glob: bool,
    ch_1_glob: u8,
    ch_2_glob: u8,
    arr_1_glob: [i32; 50],
    arr_2_glob: [[i32; 50]; 50],
}

/// The local variables of its main program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Locals {
    int_1: i32,
    int_2: i32,
    int_3: i32,
    enum_loc: Ident,
    str_1: Text,
    str_2: Text,
}

struct Dhrystone {
    globals: Box<Globals>,
    locals: Locals,
    runs: u64,
}

pub fn make(_params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    Ok(Box::new(Dhrystone::new()))
}

impl Dhrystone {
    fn new() -> Self {
        let first =
            Record { ptr_comp: NEXT_GLOB, discr: Ident::One, enum_comp: Ident::Three, int_comp: 40, str_comp: SOME };
        let blank =
            Record { ptr_comp: NULL, discr: Ident::Four, enum_comp: Ident::Four, int_comp: 0, str_comp: [0; 31] };
        let mut globals = Box::new(Globals {
            records: [first, blank],
            ptr_glob: GLOB,
            int_glob: 0,
            bool_glob: false,
            ch_1_glob: 0,
            ch_2_glob: 0,
            arr_1_glob: [0; 50],
            arr_2_glob: [[0; 50]; 50],
        });
        globals.arr_2_glob[8][7] = 10;
        let locals = Locals { int_1: 0, int_2: 0, int_3: 0, enum_loc: Ident::One, str_1: FIRST, str_2: [0; 31] };
        Self { globals, locals, runs: 0 }
    }

    /// The body of the main loop.
    fn once(&mut self, run_index: i32) {
        let (global, local) = (&mut *self.globals, &mut self.locals);
        global.proc_5();
        global.proc_4();
        local.int_1 = black_box(2);
        local.int_2 = black_box(3);
        local.str_2 = SECOND;
        local.enum_loc = Ident::Two;
        global.bool_glob = !global.func_2(&local.str_1, &local.str_2);
        while local.int_1 < local.int_2 {
            local.int_3 = 5 * local.int_1 - local.int_2;
            proc_7(local.int_1, local.int_2, &mut local.int_3);
            local.int_1 += 1;
        }
        global.proc_8(local.int_1, local.int_3);
        global.proc_1(global.ptr_glob);
        let mut ch_index = b'A';
        while ch_index <= global.ch_2_glob {
            if local.enum_loc == global.func_1(ch_index, b'C') {
                proc_6(Ident::One, &global.int_glob, &mut local.enum_loc);
                local.str_2 = THIRD;
                local.int_2 = run_index;
                global.int_glob = run_index;
            }
            ch_index += 1;
        }
        local.int_2 *= local.int_1;
        local.int_1 = local.int_2 / local.int_3;
        local.int_2 = 7 * (local.int_2 - local.int_3) - local.int_1;
        global.proc_2(&mut local.int_1);
    }
}

impl Globals {
    fn record(&mut self, at: Pointer) -> &mut Record {
        &mut self.records[at & 1]
    }

    #[inline(never)]
    fn proc_1(&mut self, ptr_val: Pointer) {
        let next = self.record(ptr_val).ptr_comp;
        *self.record(next) = *self.record(self.ptr_glob);
        self.record(ptr_val).int_comp = 5;
        self.record(next).int_comp = self.record(ptr_val).int_comp;
        self.record(next).ptr_comp = self.record(ptr_val).ptr_comp;
        self.proc_3(next);
        if self.record(next).discr == Ident::One {
            self.record(next).int_comp = 6;
            let value = self.record(ptr_val).enum_comp;
            proc_6(value, &self.int_glob, &mut self.records[next & 1].enum_comp);
            self.record(next).ptr_comp = self.record(self.ptr_glob).ptr_comp;
            let int_comp = self.record(next).int_comp;
            proc_7(int_comp, 10, &mut self.record(next).int_comp);
        } else {
            *self.record(ptr_val) = *self.record(next);
        }
    }

    #[inline(never)]
    fn proc_2(&mut self, int_ref: &mut i32) {
        let mut int_loc = *int_ref + 10;
        let mut enum_loc = Ident::Two;
        loop {
            if self.ch_1_glob == b'A' {
                int_loc -= 1;
                *int_ref = int_loc - self.int_glob;
                enum_loc = Ident::One;
            }
            if enum_loc == Ident::One {
                break;
            }
        }
    }

    /// The original gets the address of a record's pointer; here, of which record.
    #[inline(never)]
    fn proc_3(&mut self, of: Pointer) {
        if self.ptr_glob != NULL {
            self.record(of).ptr_comp = self.record(self.ptr_glob).ptr_comp;
        }
        proc_7(10, self.int_glob, &mut self.records[self.ptr_glob & 1].int_comp);
    }

    #[inline(never)]
    fn proc_4(&mut self) {
        let bool_loc = self.ch_1_glob == b'A';
        self.bool_glob |= bool_loc;
        self.ch_2_glob = b'B';
    }

    #[inline(never)]
    fn proc_5(&mut self) {
        self.ch_1_glob = b'A';
        self.bool_glob = false;
    }

    #[inline(never)]
    fn proc_8(&mut self, int_1: i32, int_2: i32) {
        let int_loc = int_1 + 5;
        let at = int_loc as usize;
        self.arr_1_glob[at] = int_2;
        self.arr_1_glob[at + 1] = self.arr_1_glob[at];
        self.arr_1_glob[at + 30] = int_loc;
        for index in at..=at + 1 {
            self.arr_2_glob[at][index] = int_loc;
        }
        self.arr_2_glob[at][at - 1] = self.arr_2_glob[at][at - 1].wrapping_add(1);
        self.arr_2_glob[at + 20][at] = self.arr_1_glob[at];
        self.int_glob = 5;
    }

    #[inline(never)]
    fn func_1(&mut self, ch_1: u8, ch_2: u8) -> Ident {
        let ch_1_loc = ch_1;
        let ch_2_loc = ch_1_loc;
        if ch_2_loc != ch_2 {
            Ident::One
        } else {
            self.ch_1_glob = ch_1_loc;
            Ident::Two
        }
    }

    #[inline(never)]
    fn func_2(&mut self, str_1: &Text, str_2: &Text) -> bool {
        let mut int_loc = 2;
        let mut ch_loc = 0;
        while int_loc <= 2 {
            if self.func_1(str_1[int_loc], str_2[int_loc + 1]) == Ident::One {
                ch_loc = b'A';
                int_loc += 1;
            }
        }
        if (b'W'..b'Z').contains(&ch_loc) {
            int_loc = 7;
        }
        if ch_loc == b'R' {
            return true;
        }
        if str_1 > str_2 {
            int_loc += 7;
            self.int_glob = int_loc as i32;
            return true;
        }
        false
    }
}

#[inline(never)]
fn proc_6(value: Ident, int_glob: &i32, to: &mut Ident) {
    *to = value;
    if !func_3(value) {
        *to = Ident::Four;
    }
    match value {
        Ident::One => *to = Ident::One,
        Ident::Two if *int_glob > 100 => *to = Ident::One,
        Ident::Two => *to = Ident::Four,
        Ident::Three => *to = Ident::Two,
        Ident::Four => {}
        Ident::Five => *to = Ident::Three,
    }
}

#[inline(never)]
fn proc_7(int_1: i32, int_2: i32, to: &mut i32) {
    let int_loc = int_1 + 2;
    *to = int_2 + int_loc;
}

#[inline(never)]
fn func_3(value: Ident) -> bool {
    let enum_loc = value;
    enum_loc == Ident::Three
}

impl Probe for Dhrystone {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        MAX_UNITS
    }

    fn run(&mut self, _part: usize, units: u64) -> u64 {
        for _ in 0..units {
            self.runs += 1;
            self.once(self.runs as i32);
            black_box(&mut *self);
        }
        units
    }

    /// The values that the original prints beside "should be".
    fn verify(&mut self) -> Result<(), String> {
        if self.runs == 0 {
            return Ok(());
        }
        let global = &self.globals;
        let first =
            Record { ptr_comp: NEXT_GLOB, discr: Ident::One, enum_comp: Ident::Three, int_comp: 17, str_comp: SOME };
        let next = Record { enum_comp: Ident::Two, int_comp: 18, ..first };
        let locals = Locals { int_1: 5, int_2: 13, int_3: 7, enum_loc: Ident::Two, str_1: FIRST, str_2: SECOND };
        let counted = 10_i32.wrapping_add(self.runs as i32);
        let checks = [
            ("Int_Glob", global.int_glob == 5),
            ("Bool_Glob", global.bool_glob),
            ("Ch_1_Glob", global.ch_1_glob == b'A'),
            ("Ch_2_Glob", global.ch_2_glob == b'B'),
            ("Arr_1_Glob[8]", global.arr_1_glob[8] == 7),
            ("Arr_2_Glob[8][7]", global.arr_2_glob[8][7] == counted),
            ("Ptr_Glob", global.records[GLOB] == first),
            ("Next_Ptr_Glob", global.records[NEXT_GLOB] == next),
            ("a local variable", self.locals == locals),
        ];
        match checks.iter().find(|(_, right)| !right) {
            None => Ok(()),
            Some((name, _)) => Err(format!("{name} is not what it should be after {} runs", self.runs)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(runs: u64) -> Dhrystone {
        let mut probe = Dhrystone::new();
        assert_eq!(probe.run(0, runs), runs);
        probe
    }

    #[test]
    fn the_final_values_are_those_that_the_original_prints() {
        for runs in [1, 2, 50, 10_000] {
            assert_eq!(after(runs).verify(), Ok(()), "{runs} runs");
        }
    }

    #[test]
    fn runs_in_pieces_are_the_same() {
        let mut probe = after(3);
        probe.run(0, 4);
        assert_eq!(probe.globals.arr_2_glob[8][7], 17);
        assert_eq!(probe.verify(), Ok(()));
    }

    #[test]
    fn the_element_that_counts_wraps_around() {
        let mut probe = after(1);
        probe.globals.arr_2_glob[8][7] = i32::MAX;
        probe.runs = (i32::MAX - 10) as u64;
        probe.run(0, 5);
        assert_eq!(probe.verify(), Ok(()));
    }

    #[test]
    fn a_wrong_value_is_named() {
        let mut probe = after(5);
        probe.globals.arr_2_glob[8][7] -= 1;
        assert!(probe.verify().unwrap_err().contains("Arr_2_Glob[8][7]"));
        probe = after(5);
        probe.globals.records[NEXT_GLOB].int_comp = 17;
        assert!(probe.verify().unwrap_err().contains("Next_Ptr_Glob"));
        probe = after(5);
        probe.locals.str_2 = THIRD;
        assert!(probe.verify().unwrap_err().contains("local"));
    }
}
