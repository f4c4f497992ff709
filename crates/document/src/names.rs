//! Suggestions for misspelt names.

/// The name in `known` that is most similar to `name`. Case and the difference between `-` and `_`
/// are ignored. At most two letters may differ, or one if the known name has fewer than four.
pub fn nearest<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    let distance = |other: &str| strsim::levenshtein(&plain(name), &plain(other));
    let best = known.iter().min_by_key(|other| distance(other))?;
    let allowed = if best.len() < 4 { 1 } else { 2 };
    (distance(best) <= allowed).then_some(*best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_near_by_two_letters_or_by_case() {
        let known = ["redis", "postgres", "run", "max_pairs"];
        for (name, expected) in [
            ("rediss", Some("redis")),
            ("Redis", Some("redis")),
            ("max-pairs", Some("max_pairs")),
            ("psotgres", Some("postgres")),
            ("rn", Some("run")),
            ("ra", None),
            ("mysql", None),
        ] {
            assert_eq!(nearest(name, &known), expected, "{name}");
        }
        assert_eq!(nearest("redis", &[]), None);
    }
}
