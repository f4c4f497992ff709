//! Kinds of files: names that only differ in numbers.

/// Replaces numbers in a name: `binlog.000012` becomes `binlog.N`, and
/// `pg_wal/00000001000000000000002A` becomes `pg_wal/N`.
#[must_use]
pub fn kind_of(name: &str) -> String {
    let mut short = String::new();
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        let end = |is_in: fn(char) -> bool| rest.find(|c| !is_in(c)).unwrap_or(rest.len());
        let decimal = end(|c| c.is_ascii_digit());
        let hexadecimal = end(|c| c.is_ascii_digit() || ('A'..='F').contains(&c));
        let run = if hexadecimal >= 8 {
            hexadecimal
        } else {
            decimal
        };
        if run > 0 {
            short.push('N');
            rest = &rest[run..];
        } else {
            short.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_replaced() {
        for (name, expected) in [
            ("ibdata1", "ibdataN"),
            ("binlog.000012", "binlog.N"),
            ("pg_wal/00000001000000000000002A", "pg_wal/N"),
            ("base/16384/2619_vm", "base/N/N_vm"),
            ("FACE", "FACE"),
            ("é12", "éN"),
        ] {
            assert_eq!(kind_of(name), expected);
        }
    }
}
