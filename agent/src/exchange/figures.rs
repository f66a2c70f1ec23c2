//! A client's output: a line a figure, with a sum, since nothing else would reveal a damaged median.

use std::fmt;

/// The times of all answers that were counted.
#[derive(Debug)]
pub struct Figures {
    took_ns: Vec<u64>, // ascending, never empty
    lost: u64,
    spent_ns: u64,
}

impl Figures {
    /// The error says that there was no answer at all, or no request: a client may have had no processor.
    pub fn of(mut took_ns: Vec<u64>, lost: u64, spent_ns: u64) -> Result<Self, String> {
        if took_ns.is_empty() {
            return Err(match lost {
                0 => "its time was over before a request was begun that counts".into(),
                _ => format!("no answer to {lost} requests"),
            });
        }
        took_ns.sort_unstable();
        Ok(Self { took_ns, lost, spent_ns })
    }

    /// The time within which a number of thousandths of the answers came, in ns.
    fn within(&self, thousandths: usize) -> u64 {
        self.took_ns[(self.took_ns.len() * thousandths / 1000).min(self.took_ns.len() - 1)]
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.took_ns.len();
        // Times of a day in ns, and their sums, are far below where a float loses whole ones that matter.
        #[allow(clippy::cast_precision_loss)]
        let (number, seconds) = (count as f64, self.spent_ns as f64 / 1e9);
        #[allow(clippy::cast_precision_loss)]
        let us = |ns: u64| ns as f64 / 1e3;
        let mean = us(self.took_ns.iter().sum()) / number;
        let (median, p99) = (us(self.within(500)), us(self.within(990)));
        let told = format!(
            "answered {count}\nlost {}\nseconds {seconds:.6}\nrate {:.3}\nmean {mean:.3} us\nmedian {median:.3} us\n\
             p99 {p99:.3} us\n",
            self.lost,
            number / seconds,
        );
        let sum: u32 = told.bytes().map(u32::from).sum();
        write!(out, "{told}sum {sum}\nend\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_all_answers() {
        let took = (1..=1000).rev().map(|number| number * 1000).collect();
        let told = Figures::of(took, 3, 2_000_000_000).unwrap().to_string();
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(
            lines[..7],
            [
                "answered 1000",
                "lost 3",
                "seconds 2.000000",
                "rate 500.000",
                "mean 500.500 us",
                "median 501.000 us",
                "p99 991.000 us"
            ]
        );
        let before: u32 = told[..told.find("sum ").unwrap()].bytes().map(u32::from).sum();
        assert_eq!(lines[7..], [format!("sum {before}").as_str(), "end"]);
    }

    #[test]
    fn without_an_answer_there_are_none() {
        assert_eq!(Figures::of(Vec::new(), 2, 1).unwrap_err(), "no answer to 2 requests");
        let none = Figures::of(Vec::new(), 0, 1).unwrap_err();
        assert_eq!(none, "its time was over before a request was begun that counts");
    }
}
