//! Specifiers in the settings of a unit (`man 5 systemd.unit`): those that stand for parts of the
//! unit's name, and those with one value for all units of the system manager.
//!
//! Deliberately absent: values of the host that runs the unit, such as `%H`, which are kept.

use crate::name::UnitName;

/// Replaces the specifiers in a setting of the unit `name`.
pub(crate) fn expand(word: &str, name: &UnitName) -> String {
    let mut text = String::new();
    let mut chars = word.chars();
    while let Some(c) = chars.next() {
        let letter = chars.clone().next().filter(|_| c == '%');
        let Some(value) = letter.and_then(|letter| value(letter, name)) else {
            text.push(c);
            continue;
        };
        text.push_str(&value);
        chars.next();
    }
    text
}

fn value(specifier: char, name: &UnitName) -> Option<String> {
    let last = |prefix: &str| prefix.rsplit('-').next().unwrap_or_default().to_owned();
    Some(match specifier {
        'i' => name.instance().to_owned(),
        'I' => unescape(name.instance()),
        'p' => name.prefix().to_owned(),
        'P' => unescape(name.prefix()),
        'j' => last(name.prefix()),
        'J' => unescape(&last(name.prefix())),
        'f' if name.instance().is_empty() => format!("/{}", unescape(name.prefix())),
        'f' => format!("/{}", unescape(name.instance())),
        'n' => name.as_str().to_owned(),
        'N' => name.stem().to_owned(),
        't' => "/run".to_owned(),
        'S' => "/var/lib".to_owned(),
        'C' => "/var/cache".to_owned(),
        'L' => "/var/log".to_owned(),
        'E' => "/etc".to_owned(),
        'T' => "/tmp".to_owned(),
        'V' => "/var/tmp".to_owned(),
        'h' => "/root".to_owned(),
        'u' | 'g' => "root".to_owned(),
        'U' | 'G' => "0".to_owned(),
        '%' => "%".to_owned(),
        _ => return None,
    })
}

/// `-` stands for a slash, `\x2d` for the character with that number.
fn unescape(text: &str) -> String {
    let text = text.replace('-', "/");
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part
            .get(..2)
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        match code {
            Some(code) => bytes.extend([&[code], &part.as_bytes()[2..]].concat()),
            None => bytes.extend([b"\\x", part.as_bytes()].concat()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifiers_have_the_values_of_systemd() {
        let expand = |word| expand(word, &"my-db@a-b\\x2dc".parse().unwrap());
        for (word, expected) in [
            ("%i %I", "a-b\\x2dc a/b-c"),
            ("%p %P %j", "my-db my/db db"),
            ("%n", "my-db@a-b\\x2dc.service"),
            ("%N%%i", "my-db@a-b\\x2dc%i"),
            ("%f %E/x %t %h", "/a/b-c /etc/x /run /root"),
            ("100% %w %", "100% %w %"),
        ] {
            assert_eq!(expand(word), expected);
        }
    }
}
