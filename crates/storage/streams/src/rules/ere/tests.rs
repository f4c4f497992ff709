//! Tests the differences between POSIX expressions and other dialects, and the refused expressions.

use super::*;

#[test]
fn expressions_match_as_in_posix() {
    for (expression, text, expected) in [
        ("^/data/ib_logfile", "/data/ib_logfile0", true),
        ("ibdata1$", "/data/ibdata12", false),
        ("a.c", "a\nc", false),
        ("a[^b]c", "a\nc", false),
        ("^b", "a\nb", true),
        ("[]]", "]", true),
        ("[^]]", "]", false),
        ("[a\\]", "\\", true),
        ("[[:digit:]]{6}$", "mysql-bin.000001", true),
        ("a+?b", "b", true),
        ("a{2,3}$", "aaaa", true),
        ("^a{,2}$", "aaa", false),
        ("\\<undo\\>", "/data/undo/1", true),
        ("a)", "a)", true),
        ("#sql-.*\\.ibd", "/d/#sql-1.ibd", true),
        ("()", "", true),
        ("[[.a.]-c]", "b", true),
        ("[[=a=]]", "a", true),
        ("é.$", "é/", true),
        // In the C locale, a character of two bytes counts as two characters.
        ("^..$", "é", true),
        ("a", "\0a", false),
    ] {
        let regex = Ere::new(expression.as_bytes()).unwrap();
        assert_eq!(regex.is_match(text.as_bytes()), expected, "{expression}");
    }
}

#[test]
fn paths_need_not_be_utf8() {
    let regex = Ere::new(b"\xff[\xfe]$").unwrap();
    assert!(regex.is_match(b"/data/\xff\xfe"));
    assert!(!regex.is_match(b"/data/\xfe\xff"));
}

#[test]
fn errors_have_the_message_of_the_c_library() {
    for (expression, expected) in [
        ("(a", "Unmatched ( or \\("),
        ("[a", "Unmatched [, [^, [:, [., or [="),
        ("*a", "Invalid preceding regular expression"),
        ("a{3,2}", "Invalid content of \\{\\}"),
        ("[z-a]", "Invalid range end"),
        ("[[:word:]]", "Invalid character class name"),
        ("[[.space.]]", "Invalid collation character"),
        ("a\\", "Trailing backslash"),
    ] {
        let error = Ere::new(expression.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), expected, "{expression}");
    }
    assert_eq!(Ere::new(b"a\0b").unwrap_err(), EreError::Nul);
}

#[test]
fn back_references_are_refused_except_in_brackets() {
    for (expression, digit) in [
        ("(a)\\1", '1'),
        ("(a)\\2", '2'),
        ("\\\\(a)\\9", '9'),
        ("([]\\])\\1", '1'),
        ("([^]\\])\\1", '1'),
        ("([[:alpha:]])\\1", '1'),
        ("([[.].]])\\1", '1'),
        ("(a{2})\\1", '1'),
    ] {
        let error = Ere::new(expression.as_bytes()).unwrap_err();
        assert_eq!(error, EreError::BackReference(digit), "{expression}");
    }
    for (expression, text) in [
        ("^[\\1]$", "1"),
        ("^[]\\1]$", "]"),
        ("^[^]\\1]$", "a"),
        ("^[[:alpha:]\\1]$", "1"),
        ("^[[.].]\\1]$", "]"),
        ("^[[=]=]\\1]$", "\\"),
        ("^\\\\1$", "\\1"),
        ("^[[\\1]$", "["),
    ] {
        let regex = Ere::new(expression.as_bytes()).unwrap();
        assert!(regex.is_match(text.as_bytes()), "{expression}");
    }
}

/// The refused expressions would take too much memory in the C library.
#[test]
fn repetitions_are_counted_before_they_are_expanded() {
    let many = "a+".repeat(500);
    for expression in [
        &many,
        "a{1000}",
        "(ab){,200}",
        "([0-9]{1,3}\\.){3}[0-9]{1,3}",
        "a{0}",
    ] {
        assert!(Ere::new(expression.as_bytes()).is_ok(), "{expression}");
    }
    let plus = format!("a{}", "+".repeat(24));
    let empty = format!("(){}", "+".repeat(24));
    let nested = format!("{}a{}", "(".repeat(24), "+)".repeat(24));
    let escaped = format!("\\.{}", "+".repeat(24));
    let bracket = format!("[]+]{}", "+".repeat(24));
    for expression in [
        &plus,
        &empty,
        &nested,
        &escaped,
        &bracket,
        "a{2000}",
        "(a{100}){100}",
        "(a{,100}){,100}",
        "(a{100,}){100,}",
    ] {
        let error = Ere::new(expression.as_bytes()).unwrap_err();
        assert_eq!(error, EreError::Large, "{expression}");
    }
}
