//! Random strings and names of TPC-C §4.3.2: a-strings, n-strings, last names, zip codes.

use fastrand::Rng;

const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];
/// Characters of an a-string. §4.3.2.2 requires at least 26 lower case letters, 26 upper case
/// letters and the digits.
const ALPHANUMERIC: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const ORIGINAL: &str = "ORIGINAL";

/// C_LAST for a number from 0 to 999 (§4.3.2.3).
#[must_use]
pub fn last_name(number: u32) -> String {
    let digits = [number / 100 % 10, number / 10 % 10, number % 10];
    digits.map(|digit| SYLLABLES[digit as usize]).concat()
}

/// Appends a random a-string (§4.3.2.2) with a length drawn from `length`.
pub fn push_a_string(out: &mut String, rng: &mut Rng, length: std::ops::RangeInclusive<usize>) {
    let mut left = rng.usize(length);
    // A load draws about fifty million characters per warehouse. For speed, each random 64-bit
    // number gives four characters. The probabilities of two characters differ by less than one
    // part in a thousand.
    while left > 0 {
        let drawn = rng.u64(..);
        for lane in 0..left.min(4) {
            let sixteen = u16::try_from((drawn >> (16 * lane)) & 0xffff).unwrap_or(0);
            let at = (usize::from(sixteen) * ALPHANUMERIC.len()) >> 16;
            out.push(char::from(ALPHANUMERIC[at]));
        }
        left -= left.min(4);
    }
}

/// A random a-string (§4.3.2.2) with a length drawn from `length`.
pub fn a_string(rng: &mut Rng, length: std::ops::RangeInclusive<usize>) -> String {
    let mut out = String::with_capacity(*length.end());
    push_a_string(&mut out, rng, length);
    out
}

/// A random n-string: `length` digits (§4.3.2.2).
pub fn n_string(rng: &mut Rng, length: usize) -> String {
    (0..length)
        .map(|_| char::from(b'0' + rng.u8(0..10)))
        .collect()
}

/// W_ZIP, D_ZIP or C_ZIP: four random digits, then `11111` (§4.3.2.7).
pub fn zip(rng: &mut Rng) -> String {
    n_string(rng, 4) + "11111"
}

/// I_DATA or S_DATA: an a-string of 26 to 50 characters. With `is_original` it contains `ORIGINAL`
/// at a random position (§4.3.3.1).
pub fn brand_data(rng: &mut Rng, is_original: bool) -> String {
    let mut data = a_string(rng, 26..=50);
    if is_original {
        let at = rng.usize(0..=data.len() - ORIGINAL.len());
        data.replace_range(at..at + ORIGINAL.len(), ORIGINAL);
    }
    data
}

/// Chooses exactly one in ten rows at random, in one pass (§4.3.3.1). With independent draws, the
/// share would sometimes deviate by more than the allowed 5 %.
#[derive(Debug, Clone, Copy)]
pub struct Tenth {
    rows_left: u32,
    chosen_left: u32,
}

impl Tenth {
    /// A choice among `rows` rows.
    #[must_use]
    pub fn of(rows: u32) -> Self {
        Self {
            rows_left: rows,
            chosen_left: rows / 10,
        }
    }

    /// Whether the next row is chosen. Call it once per row.
    pub fn chooses(&mut self, rng: &mut Rng) -> bool {
        let chosen = rng.u32(0..self.rows_left.max(1)) < self.chosen_left;
        self.rows_left = self.rows_left.saturating_sub(1);
        self.chosen_left -= u32::from(chosen);
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_consist_of_the_syllables_of_the_clause() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn strings_have_the_wanted_lengths_and_characters() {
        let mut rng = Rng::with_seed(1);
        let lengths: Vec<usize> = (0..500).map(|_| a_string(&mut rng, 8..=16).len()).collect();
        assert_eq!(
            (lengths.iter().min(), lengths.iter().max()),
            (Some(&8), Some(&16))
        );
        let long = a_string(&mut rng, 20_000..=20_000);
        assert!(ALPHANUMERIC.iter().all(|b| long.as_bytes().contains(b)));
        let digits = n_string(&mut rng, 5000);
        assert!((b'0'..=b'9').all(|b| digits.as_bytes().contains(&b)));
        assert_eq!(digits.trim_matches(|c: char| c.is_ascii_digit()), "");
        let zip = zip(&mut rng);
        assert_eq!((zip.len(), &zip[4..]), (9, "11111"));
    }

    #[test]
    fn original_replaces_characters_at_a_random_position() {
        let mut rng = Rng::with_seed(2);
        let all: Vec<String> = (0..5000).map(|_| brand_data(&mut rng, true)).collect();
        assert!(all.iter().all(|data| (26..=50).contains(&data.len())));
        assert!(all.iter().all(|data| data.contains(ORIGINAL)));
        assert!(all.iter().any(|data| data.ends_with(ORIGINAL)));
        assert!(all.iter().any(|data| data.starts_with(ORIGINAL)));
        assert!(!brand_data(&mut rng, false).contains(ORIGINAL));
    }

    #[test]
    fn exactly_one_in_ten_is_chosen_and_all_are_equally_likely() {
        let mut rng = Rng::with_seed(3);
        let mut counts = [0u32; 30];
        for _ in 0..10_000 {
            let mut tenth = Tenth::of(30);
            let chosen: Vec<bool> = (0..30).map(|_| tenth.chooses(&mut rng)).collect();
            assert_eq!(chosen.iter().filter(|chosen| **chosen).count(), 3);
            for (count, chosen) in counts.iter_mut().zip(chosen) {
                *count += u32::from(chosen);
            }
        }
        assert!(
            counts.iter().all(|count| (880..1120).contains(count)),
            "{counts:?}"
        );
        assert_eq!(Tenth::of(9).chosen_left, 0);
    }
}
