//! Who asks for what, and when: drawn from a seed beforehand, whatever the site does.

use super::protocol::Protocol;

/// The settings that all users share.
#[derive(Debug, Clone, PartialEq)]
pub struct Habits {
    pub protocol: Protocol,
    /// Between the beginnings of two searches, on average: from half of it to half more.
    pub think_ns: u64,
    /// Between the requests of one search.
    pub pace_ns: u64,
    /// In a session; then another begins, on a connection of its own.
    pub searches: u64,
    /// That are looked up: the first more often than the second, and so on (Zipf's law).
    pub words: u64,
    /// The requests of one search, in order; `{3}` stands for the first three letters of its word.
    pub requests: Vec<String>,
}

/// The place of one user in the schedule: a request that is the next one, until `advance` or `give_up`.
#[derive(Debug)]
pub struct User {
    random: Random,
    number: u64,
    session: u64,
    search: u64,
    begin_ns: u64,
    step: usize,
    word: String,
}

impl User {
    /// Users begin at different times of the first thought.
    pub fn new(habits: &Habits, seed: u64, number: u64, begin_ns: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(1 << 32).wrapping_add(number));
        let begin_ns = begin_ns + random.below(habits.think_ns);
        let word = spelled(random.rank(habits.words));
        Self { random, number, session: 0, search: 0, begin_ns, step: 0, word }
    }

    /// The instant at which the next request is due, in ns.
    pub fn due_ns(&self, habits: &Habits) -> u64 {
        self.begin_ns + habits.pace_ns * self.step as u64
    }

    /// The next request, as it is sent.
    pub fn request(&self, habits: &Habits, host: &str) -> Vec<u8> {
        let mut request = habits.requests[self.step].clone();
        for letters in 1..=self.word.len() {
            request = request.replace(&format!("{{{letters}}}"), &self.word[..letters]);
        }
        let (number, session) = (self.number, self.session);
        match habits.protocol {
            Protocol::Http => {
                format!("GET {request} HTTP/1.1\r\nHost: {host}\r\nCookie: user={number}.{session}\r\n\r\n")
            }
            Protocol::Redis => format!("{request}\r\n"),
        }
        .into_bytes()
    }

    /// Goes on to the request after this one; true where a new session begins with it.
    pub fn advance(&mut self, habits: &Habits) -> bool {
        self.step += 1;
        self.step == habits.requests.len() && self.think(habits)
    }

    /// Leaves out the rest of this search: how many requests, and whether a new session begins.
    pub fn give_up(&mut self, habits: &Habits) -> (u64, bool) {
        let left = habits.requests.len() - self.step - 1;
        (left as u64, self.think(habits))
    }

    fn think(&mut self, habits: &Habits) -> bool {
        self.begin_ns += habits.think_ns / 2 + self.random.below(habits.think_ns);
        self.step = 0;
        self.search += 1;
        self.word = spelled(self.random.rank(habits.words));
        let ended = self.search == habits.searches;
        if ended {
            self.search = 0;
            self.session += 1;
        }
        ended
    }
}

/// The word of a number: scattered, so that neighbours do not begin alike, in base 36 with the last digit first.
/// `dictionary/seed.sql` says the same to the database.
fn spelled(number: u64) -> String {
    let mut left = number.wrapping_mul(2_654_435_761) & 0xffff_ffff;
    let mut word = String::new();
    for _ in 0..7 {
        word.push(char::from(b"0123456789abcdefghijklmnopqrstuvwxyz"[usize::try_from(left % 36).unwrap_or(0)]));
        left /= 36;
    }
    word
}

/// `SplitMix64` (Steele, Lea and Flood 2014): the same numbers for the same seed.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below `bound`. The remainder prefers some numbers by a part in 2^64 / bound.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// From 0 to below `bound`, each as likely as one over its rank.
    fn rank(&mut self, bound: u64) -> u64 {
        // A share from 0 to 1 in 53 bits, to whose power the number of ranks is taken: below 2^53, and not negative.
        #[allow(clippy::cast_precision_loss)]
        let (share, ranks) = ((self.next() >> 11) as f64 / (1_u64 << 53) as f64, (bound + 1) as f64);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rank = ranks.powf(share) as u64;
        rank.clamp(1, bound) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn habits() -> Habits {
        let requests = ["/", "/suggest?w={2}", "/word?w={7}"].map(str::to_owned).to_vec();
        let protocol = Protocol::Http;
        Habits { protocol, think_ns: 1_000_000_000, pace_ns: 50_000_000, searches: 2, words: 1000, requests }
    }

    #[test]
    fn the_same_seed_is_the_same_day() {
        let habits = habits();
        let day = |seed, number| {
            let mut user = User::new(&habits, seed, number, 5);
            let mut asked = Vec::new();
            for _ in 0..20 {
                asked.push((user.due_ns(&habits), user.request(&habits, "site")));
                user.advance(&habits);
            }
            asked
        };
        assert_eq!(day(1, 3), day(1, 3));
        assert_ne!(day(1, 3), day(1, 4));
        assert_ne!(day(1, 3), day(2, 3));
        assert!(day(1, 3).is_sorted_by_key(|(due_ns, _)| *due_ns));
    }

    #[test]
    fn a_session_is_so_many_searches_of_all_paths_in_order() {
        let habits = habits();
        let mut user = User::new(&habits, 1, 0, 0);
        let begin_ns = user.due_ns(&habits);
        assert!(begin_ns < habits.think_ns);
        let path = |user: &User| {
            let text = String::from_utf8(user.request(&habits, "site")).unwrap();
            assert!(text.ends_with("\r\n\r\n"));
            text.lines().next().unwrap().to_owned()
        };
        assert_eq!(path(&user), "GET / HTTP/1.1");
        assert!(!user.advance(&habits));
        assert_eq!(user.due_ns(&habits), begin_ns + habits.pace_ns);
        let start = path(&user);
        assert!(!user.advance(&habits));
        let whole = path(&user);
        assert_eq!(start["GET /suggest?w=".len()..][..2], whole["GET /word?w=".len()..][..2]);
        assert!(!user.advance(&habits)); // the second search
        let thought = user.due_ns(&habits) - begin_ns;
        assert!((habits.think_ns / 2..habits.think_ns * 3 / 2).contains(&thought));
        assert_eq!(user.give_up(&habits), (2, true)); // the second session
        assert!(String::from_utf8(user.request(&habits, "site")).unwrap().contains("user=0.1\r\n"));
    }

    #[test]
    fn words_are_spelled_as_the_database_spells_them() {
        // The words that MariaDB makes of 0, 1 and 4999 by seed.sql.
        assert_eq!([0, 1, 4999].map(spelled), ["0000000", "pqrdw71", "b3q9731"]);
    }

    #[test]
    fn the_first_words_are_asked_for_most() {
        let mut random = Random(7);
        let mut counts = [0_u32; 100];
        for _ in 0..100_000 {
            counts[usize::try_from(random.rank(100)).unwrap()] += 1;
        }
        // One over ranks: the first of 101 has log 2 / log 101 of all, the last nearly nothing.
        assert!((14_500..15_600).contains(&counts[0]), "{}", counts[0]);
        assert!(counts[99] > 100 && counts[99] < 400, "{}", counts[99]);
    }
}
