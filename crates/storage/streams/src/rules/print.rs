//! Formats rules as TOML that [`file::parse`](super::file::parse) accepts.

use std::fmt::Write as _;

use super::{Rule, Rules};

pub(super) fn toml(rules: &Rules) -> String {
    let mut out = String::new();
    if let Some(about) = &rules.about {
        let _ = writeln!(out, "about = {}", quoted(about));
    }
    for rule in &rules.rules {
        let Rule {
            pattern,
            hint,
            why,
            stream,
            force,
            origin: _,
        } = rule;
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = writeln!(out, "[[rule]]\npath = {}", quoted(&pattern.to_string()));
        let _ = writeln!(out, "hint = {}", quoted(hint.name()));
        let _ = writeln!(out, "why = {}", quoted(why));
        if let Some(stream) = stream {
            let _ = writeln!(out, "stream = {}", quoted(stream));
        }
        if *force {
            out.push_str("force = true\n");
        }
    }
    out
}

/// Formats `text` as a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::rules::{builtin, file};

    #[test]
    fn built_in_sets_can_be_read_back() {
        for name in builtin::names() {
            let rules = builtin::find(name).unwrap();
            let again = file::parse(Path::new("again.toml"), &toml(&rules)).unwrap();
            assert_eq!(again, rules, "{name}");
        }
    }

    #[test]
    fn words_with_special_characters_can_be_read_back() {
        let text = r#"
            about = "a \"set\" \\ with\ttabs\nand lines"
            [[rule]]
            path = 'a\*"[!\]]'
            hint = "none"
            why = "ä \u007F"
            stream = "s"
            force = true
        "#;
        let rules = file::parse(Path::new("odd.toml"), text).unwrap();
        let again = file::parse(Path::new("again.toml"), &toml(&rules)).unwrap();
        assert_eq!(again, rules);
        assert_eq!(again.rules[0].pattern.to_string(), r#"a\*"[!\]]"#);
    }
}
