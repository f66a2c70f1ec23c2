//! Whetstone in double precision: one unit is 100,000 Whetstone instructions.
//!
//! Source: H. J. Curnow and B. A. Wichmann, "A synthetic benchmark", The Computer Journal 19(1), 1976, by the module
//! numbers and loop counts of the C version (R. Painter, 1998, version 1.2). The modules' results after a pass of ten
//! loops (a million instructions) are compared with those that the original prints.
//!
//! The original does a module's loops of a whole pass before the next module. A slice may be shorter than that, and
//! must have something of all modules, so each module keeps variables of its own here and does a tenth of its loops in
//! every unit. Module 3 begins with what module 2 leaves at the end of a pass, as in the original. Modules 1, 5 and 10
//! have no loops there.
//!
//! sin, cos, atan, exp, log and sqrt are those of the C library that the agent is linked with; it chooses their form by
//! what the processor shows that it has.

use std::hint::black_box;

use super::{Probe, Reader};

const PARTS: [&str; 1] = ["kilo-instructions"];
/// Thousands of Whetstone instructions in a unit.
const UNIT: u64 = 100;
const MAX_UNITS: u64 = 10_000;
/// Units in a pass.
const TENTHS: u32 = 10;
const T: f64 = 0.499975;
const T1: f64 = 0.50025;
const T2: f64 = 2.0;
/// What an original with ten loops prints: X1 to X4 after modules 2 and 3, J after 4, X1 and X2 after 6, X and Y after
/// 7, Z after 8, X1 to X3 after 9, and X after 11.
const PUBLISHED: [&str; 18] = [
    "-6.8342e-2",
    "-4.6264e-1",
    "-7.2972e-1",
    "-1.1240e0",
    "-5.5336e-2",
    "-4.4744e-1",
    "-7.1097e-1",
    "-1.1031e0",
    "1.0000e0",
    "6.0000e0",
    "6.0000e0",
    "4.9041e-1",
    "4.9039e-1",
    "9.9994e-1",
    "3.0000e0",
    "2.0000e0",
    "3.0000e0",
    "8.3467e-1",
];
type Results = [f64; PUBLISHED.len()];

/// The variables of all modules, within a pass.
#[derive(Clone)]
struct Modules {
    t: f64,
    t1: f64,
    t2: f64,
    elements: [f64; 4],  // module 2
    parameter: [f64; 4], // module 3
    jump: i64,           // module 4
    integers: [i64; 3],  // module 6: J, K, L
    stored: [f64; 4],
    angles: [f64; 2], // module 7: X, Y
    called: [f64; 3], // module 8: X, Y, Z
    places: [usize; 3],
    references: [f64; 4], // module 9
    standard: f64,        // module 11
}

struct Whetstone {
    start: Modules,
    now: Modules,
    tenths: u32,
    /// The results of the first pass.
    first: Results,
    wrong: u64,
}

pub fn make(_params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    Ok(Box::new(Whetstone::new()))
}

impl Modules {
    fn new() -> Self {
        let begin = [1.0, -1.0, -1.0, -1.0];
        let mut modules = Self {
            t: black_box(T),
            t1: black_box(T1),
            t2: black_box(T2),
            elements: begin,
            parameter: begin,
            jump: 1,
            integers: [1, 2, 3],
            stored: [0.0; 4],
            angles: [0.5, 0.5],
            called: [1.0, 1.0, 1.0],
            places: [0, 1, 2],
            references: [1.0, 2.0, 3.0, 0.0],
            standard: 0.75,
        };
        for _ in 0..TENTHS {
            modules.module_2();
        }
        modules.parameter = modules.elements;
        modules.elements = begin;
        modules
    }

    /// A tenth of a pass.
    fn tenth(&mut self) {
        self.module_2();
        self.module_3();
        self.module_4();
        self.module_6();
        self.module_7();
        self.module_8();
        self.module_9();
        self.module_11();
    }

    fn module_2(&mut self) {
        let (e, t) = (&mut self.elements, self.t);
        for _ in 0..12 {
            e[0] = (e[0] + e[1] + e[2] - e[3]) * t;
            e[1] = (e[0] + e[1] - e[2] + e[3]) * t;
            e[2] = (e[0] - e[1] + e[2] + e[3]) * t;
            e[3] = (-e[0] + e[1] + e[2] + e[3]) * t;
        }
    }

    fn module_3(&mut self) {
        for _ in 0..14 {
            pa(&mut self.parameter, self.t, self.t2);
        }
    }

    fn module_4(&mut self) {
        let mut j = self.jump;
        for _ in 0..345 {
            j = if j == 1 { 2 } else { 3 };
            j = if j > 2 { 0 } else { 1 };
            j = if j < 1 { 1 } else { 0 };
            j = black_box(j);
        }
        self.jump = j;
    }

    fn module_6(&mut self) {
        let [mut j, mut k, mut l] = self.integers;
        for _ in 0..210 {
            j = j * (k - j) * (l - k);
            k = l * k - (l - j) * k;
            l = (l - k) * (k + j);
            self.stored[(l - 2) as usize & 3] = (j + k + l) as f64;
            self.stored[(k - 2) as usize & 3] = (j * k * l) as f64;
        }
        self.integers = [j, k, l];
    }

    fn module_7(&mut self) {
        let ([mut x, mut y], t, t2) = (self.angles, self.t, self.t2);
        for _ in 0..32 {
            x = t * (t2 * x.sin() * x.cos() / ((x + y).cos() + (x - y).cos() - 1.0)).atan();
            y = t * (t2 * y.sin() * y.cos() / ((x + y).cos() + (x - y).cos() - 1.0)).atan();
        }
        self.angles = [x, y];
    }

    fn module_8(&mut self) {
        for _ in 0..899 {
            self.p3();
        }
    }

    fn module_9(&mut self) {
        for _ in 0..616 {
            self.p0();
        }
    }

    fn module_11(&mut self) {
        let mut x = self.standard;
        for _ in 0..93 {
            x = (x.ln() / self.t1).exp().sqrt();
        }
        self.standard = x;
    }

    #[inline(never)]
    fn p0(&mut self) {
        let ([j, k, l], e) = (self.places, &mut self.references);
        e[j & 3] = e[k & 3];
        e[k & 3] = e[l & 3];
        e[l & 3] = e[j & 3];
    }

    #[inline(never)]
    fn p3(&mut self) {
        let [mut x, mut y, _] = self.called;
        x = self.t * (x + y);
        y = self.t * (x + y);
        self.called[2] = (x + y) / self.t2;
    }

    fn results(&self) -> Results {
        let ([e1, e2, e3, e4], [p1, p2, p3, p4]) = (self.elements, self.parameter);
        let ([x, y], [r1, r2, r3, _]) = (self.angles, self.references);
        let [s1, s2, ..] = self.stored;
        let (jump, called, standard) = (self.jump as f64, self.called[2], self.standard);
        [e1, e2, e3, e4, p1, p2, p3, p4, jump, s1, s2, x, y, called, r1, r2, r3, standard]
    }
}

#[inline(never)]
fn pa(e: &mut [f64; 4], t: f64, t2: f64) {
    for _ in 0..6 {
        e[0] = (e[0] + e[1] + e[2] - e[3]) * t;
        e[1] = (e[0] + e[1] - e[2] + e[3]) * t;
        e[2] = (e[0] - e[1] + e[2] + e[3]) * t;
        e[3] = (-e[0] + e[1] + e[2] + e[3]) / t2;
    }
}

impl Whetstone {
    fn new() -> Self {
        let start = Modules::new();
        let mut first = start.clone();
        for _ in 0..TENTHS {
            black_box(&mut first).tenth();
        }
        Self { now: start.clone(), start, tenths: 0, first: first.results(), wrong: 0 }
    }

    fn unit(&mut self) {
        black_box(&mut self.now).tenth();
        self.tenths += 1;
        if self.tenths == TENTHS {
            self.wrong += u64::from(self.now.results() != self.first);
            self.now.clone_from(&self.start);
            self.tenths = 0;
        }
    }
}

impl Probe for Whetstone {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        MAX_UNITS
    }

    fn run(&mut self, _part: usize, units: u64) -> u64 {
        for _ in 0..units {
            self.unit();
        }
        units * UNIT
    }

    fn verify(&mut self) -> Result<(), String> {
        while self.tenths > 0 {
            self.unit();
        }
        if self.wrong > 0 {
            return Err(format!("{} passes gave other results than the first", self.wrong));
        }
        for (result, published) in self.first.iter().zip(PUBLISHED) {
            let result = format!("{result:.4e}");
            if result != published {
                return Err(format!("a result is {result}, and {published} was published"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_are_the_published_ones() {
        assert_eq!(Whetstone::new().first.map(|result| format!("{result:.4e}")), PUBLISHED);
    }

    #[test]
    fn it_may_stop_anywhere() {
        for units in [0, 1, 9, 10, 11, 35] {
            let mut probe = Whetstone::new();
            assert_eq!(probe.run(0, units), units * 100);
            assert_eq!(probe.verify(), Ok(()), "{units} units");
        }
    }

    #[test]
    fn a_wrong_pass_is_found() {
        let mut probe = Whetstone::new();
        probe.run(0, 3);
        probe.now.standard += 1e-9;
        assert!(probe.verify().unwrap_err().contains("1 passes"));
        probe = Whetstone::new();
        probe.first[4] *= 1.001;
        probe.wrong = 0;
        assert!(probe.verify().unwrap_err().contains("-5.5336e-2 was published"));
    }
}
