//! HardInfo's Raytracing: J. Walker's fbench, which traces rays of light through a lens; one unit is one design.
//!
//! Source: John Walker, fbench, December 1980, https://www.fourmilab.ch/fbench/ (free to use and to change as long as
//! the origin is told): the design is that of a 4 inch telescope objective from Wyld's work on ray tracing by hand, and
//! the eight figures that come out are compared with Walker's reference results to their eleventh decimal.

use std::hint::black_box;

use super::super::{Probe, Reader};

const PARTS: [&str; 1] = ["designs"];
const MAX_UNITS: u64 = 10_000;
const APERTURE: f64 = 4.0;
/// Wavelengths of the spectral lines C, D and F in Angstroms.
const LINE_C: f64 = 6562.816;
const LINE_D: f64 = 5895.944;
const LINE_F: f64 = 4861.344;
const REFERENCE: [f64; 8] = [
    47.094_791_209_20,
    0.041_784_726_83,
    47.083_721_602_49,
    0.041_778_648_21,
    -0.011_069_606_71,
    0.053_067_499_07,
    0.000_089_547_61,
    0.004_482_290_32,
];
/// Half of the last decimal that the reference has, and what the two roundings may add.
const TOLERANCE: f64 = 5.001e-12;

/// One face of a lens. If its material's index is 1 (air), the dispersion is not used.
struct Surface {
    radius: f64, // of curvature; none is plane
    index: f64,  // of refraction
    dispersion: f64,
    thickness: f64, // at the edge
}

const OBJECTIVE: [Surface; 4] = [
    Surface { radius: 27.05, index: 1.5137, dispersion: 63.6, thickness: 0.52 },
    Surface { radius: -16.68, index: 1.0, dispersion: 0.0, thickness: 0.138 },
    Surface { radius: -16.68, index: 1.6164, dispersion: 36.7, thickness: 0.38 },
    Surface { radius: -78.1, index: 1.0, dispersion: 0.0, thickness: 0.0 },
];

/// A ray on its way: the distance of its focus from the vertex (0: parallel light), the angle to the axis, its height.
#[derive(Clone, Copy)]
struct Ray {
    distance: f64,
    angle: f64,
    height: f64,
}

impl Ray {
    /// Passes a surface from one index of refraction to another.
    fn transit(&mut self, radius: f64, from: f64, to: f64) {
        let sine = if self.distance == 0.0 {
            self.angle = 0.0;
            self.height / radius
        } else {
            (self.distance - radius) / radius * self.angle.sin()
        };
        let incidence = sine.asin();
        let before = self.angle;
        self.angle += incidence - (from / to * sine).asin();
        let half = ((before + incidence) / 2.0).sin();
        let sagitta = 2.0 * radius * half * half;
        self.distance = radius * (before + incidence).sin() * (1.0 / self.angle.tan()) + sagitta;
    }

    /// The same by the approximation for rays near to the axis.
    fn transit_paraxial(&mut self, radius: f64, from: f64, to: f64) {
        let sine = if self.distance == 0.0 {
            self.angle = 0.0;
            self.height / radius
        } else {
            (self.distance - radius) / radius * self.angle
        };
        let before = self.angle;
        self.angle += sine - from / to * sine;
        if self.distance != 0.0 {
            self.height = self.distance * before;
        }
        self.distance = self.height / self.angle;
    }
}

/// Traces a ray of a spectral line through the whole objective.
fn trace(objective: &[Surface], line: f64, paraxial: bool) -> Ray {
    let mut ray = Ray { distance: 0.0, angle: 0.0, height: APERTURE / 2.0 };
    let mut from = 1.0;
    for surface in objective {
        let mut to = surface.index;
        if to > 1.0 {
            to += (LINE_D - line) / (LINE_C - LINE_F) * ((surface.index - 1.0) / surface.dispersion);
        }
        if paraxial {
            ray.transit_paraxial(surface.radius, from, to);
        } else {
            ray.transit(surface.radius, from, to);
        }
        from = to;
        ray.distance -= surface.thickness; // that of the last is 0
    }
    ray
}

/// The figures that fbench prints: marginal and paraxial ray in D light (distance and angle), longitudinal spherical
/// aberration and the most that is permissible, the offence against the sine condition, the chromatic aberration.
fn design(objective: &[Surface]) -> [f64; 8] {
    let marginal = trace(objective, LINE_D, false);
    let paraxial = trace(objective, LINE_D, true);
    let red = trace(objective, LINE_C, false).distance;
    let blue = trace(objective, LINE_F, false).distance;
    let sine = marginal.angle.sin();
    let offence = 1.0 - paraxial.distance * paraxial.angle / (sine * marginal.distance);
    let spherical = paraxial.distance - marginal.distance;
    let most = 0.000_092_6 / (sine * sine);
    [marginal.distance, marginal.angle, paraxial.distance, paraxial.angle, spherical, most, offence, blue - red]
}

struct Raytracing {
    wrong: u64,
}

pub fn make(_params: &mut Reader<'_>) -> Result<Box<dyn Probe>, String> {
    Ok(Box::new(Raytracing { wrong: 0 }))
}

fn right(figures: &[f64; 8]) -> bool {
    figures.iter().zip(&REFERENCE).all(|(figure, reference)| (figure - reference).abs() < TOLERANCE)
}

impl Probe for Raytracing {
    fn parts(&self) -> &'static [&'static str] {
        &PARTS
    }

    fn max_units(&self) -> u64 {
        MAX_UNITS
    }

    fn run(&mut self, _part: usize, units: u64) -> u64 {
        for _ in 0..units {
            let figures = design(black_box(&OBJECTIVE));
            self.wrong += u64::from(!right(&figures));
        }
        units
    }

    fn verify(&mut self) -> Result<(), String> {
        match self.wrong {
            0 => Ok(()),
            wrong => Err(format!("{wrong} designs are not Walker's reference results")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_walkers_to_the_last_decimal() {
        assert_eq!(design(&OBJECTIVE).map(|figure| format!("{figure:.11}")), REFERENCE.map(|it| format!("{it:.11}")));
        let mut probe = Raytracing { wrong: 0 };
        assert_eq!(probe.run(0, 20), 20);
        assert_eq!(probe.verify(), Ok(()));
    }

    #[test]
    fn another_lens_is_found() {
        let mut figures = design(&OBJECTIVE);
        assert!(right(&figures));
        figures[6] += 1e-10;
        assert!(!right(&figures));
        figures[6] = f64::NAN;
        assert!(!right(&figures));
    }
}
