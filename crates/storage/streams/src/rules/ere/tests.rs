//! Expressions by the table, and random ones against the C library's own regcomp.
#![expect(
    unsafe_code,
    reason = "the oracle is regcomp(3), which has no safe wrapper"
)]

use std::ffi::CString;
use std::mem::MaybeUninit;

use proptest::prelude::*;

use super::*;

/// Whether the C library accepts `expression`, and if so whether it finds it in `text`.
fn libc_finds(expression: &str, text: &str) -> Option<bool> {
    let (expression, text) = (CString::new(expression).ok()?, CString::new(text).ok()?);
    let mut compiled = MaybeUninit::<libc::regex_t>::uninit();
    let flags = libc::REG_EXTENDED | libc::REG_NEWLINE | libc::REG_NOSUB;
    // SAFETY: both pointers are valid for the call; regcomp fills `compiled` when it answers 0.
    let answer = unsafe { libc::regcomp(compiled.as_mut_ptr(), expression.as_ptr(), flags) };
    if answer != 0 {
        return None;
    }
    // SAFETY: regcomp answered 0, so `compiled` is filled; no match is asked for.
    let found =
        unsafe { libc::regexec(compiled.as_ptr(), text.as_ptr(), 0, std::ptr::null_mut(), 0) };
    // SAFETY: filled by regcomp and freed once.
    unsafe { libc::regfree(compiled.as_mut_ptr()) };
    Some(found == 0)
}

#[test]
fn the_table() {
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
    ] {
        let regex = compile(expression.as_bytes()).unwrap();
        assert_eq!(regex.is_match(text.as_bytes()), expected, "{expression}");
        assert_eq!(libc_finds(expression, text), Some(expected), "{expression}");
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    for (expression, expected) in [
        ("(a)\\1", EreError::BackReference('1')),
        ("(a", EreError::Parenthesis),
        ("[a", EreError::Bracket),
        ("*a", EreError::Repetition('*')),
        ("^*", EreError::Repetition('*')),
        ("a|+", EreError::Repetition('+')),
        ("a{2", EreError::Interval),
        ("a{x}", EreError::Interval),
        ("a{3,2}", EreError::Interval),
        ("a{32768}", EreError::Interval),
        ("[z-a]", EreError::Range),
        ("[a-[:digit:]]", EreError::Range),
        ("[a-c-e]", EreError::Range),
        ("[[:word:]]", EreError::Class("word".to_owned())),
        ("[[.space.]]", EreError::Collation(".space.]".to_owned())),
        ("a\\", EreError::Backslash),
    ] {
        assert_eq!(compile(expression.as_bytes()).unwrap_err(), expected);
        if !matches!(expected, EreError::BackReference(_)) {
            assert_eq!(libc_finds(expression, ""), None, "{expression}");
        }
    }
}

/// Pieces of which most lists are expressions that the C library accepts.
fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "a",
        "b",
        "ab",
        "/",
        ".",
        "*",
        "+",
        "?",
        "|",
        "(",
        ")",
        "^",
        "$",
        "[ab]",
        "[^a]",
        "[]b]",
        "[a-c]",
        "[b-]",
        "[[:alpha:]_]",
        "[^[:digit:]]",
        "{2}",
        "{,2}",
        "{1,}",
        "{0,1}",
        "\\.",
        "\\<",
        "\\>",
        "\\b",
        "\\w",
        "\\S",
        "1",
        "_",
        "-",
        "]",
        "}",
        ",",
        "\n",
        "[",
        "\\",
        "{",
    ]);
    fixed.prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_c_library_agrees(pieces in prop::collection::vec(piece(), 0..7), text in "[ab1/_.\\n\\]-]{0,8}") {
        let expression = pieces.concat();
        let ours = compile(expression.as_bytes());
        if let Err(EreError::BackReference(_)) = ours {
            return Ok(());
        }
        let ours = ours.ok().map(|regex| regex.is_match(text.as_bytes()));
        prop_assert_eq!(ours, libc_finds(&expression, &text), "{:?} in {:?}", expression, text);
    }
}
