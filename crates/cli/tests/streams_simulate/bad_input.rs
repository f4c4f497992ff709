//! Traces and options that cannot be simulated or lead to no rules: the message names the error.

use std::fs;

use crate::support::{Installation, said, text};
use crate::trace;

/// Arguments and the expected message. `T` is a valid trace, `BAD` one with a wrong line, `EMPTY`
/// one without writes, `R` are valid rules, `ODD` invalid ones.
const BAD: &[(&[&str], &str)] = &[
    (
        &[],
        "--uniform|--hot-cold <R/F>|--sequential|--trace <FILE>",
    ),
    (&["--uniform", "--sequential"], "cannot be used with"),
    (
        &["--hot-cold", "0.1"],
        "give two shares between 0 and 1, such as 0.1/0.9",
    ),
    (
        &["--hot-cold", "0.1/1.5"],
        "give two shares between 0 and 1, such as 0.1/0.9",
    ),
    (
        &["--uniform", "--op", "0"],
        "over-provisioning 0: use a share above 0",
    ),
    (&["--uniform", "--op", "x"], "invalid value 'x' for '--op"),
    (
        &["--uniform", "--ru-pages", "100"],
        "100 pages per reclaim unit: use a power of two",
    ),
    (
        &["--uniform", "--ru-pages", "128,256"],
        "--ru-pages takes several values only with --trace; give one",
    ),
    (
        &["--uniform", "--policy", "lru"],
        "give greedy, fifo, cost-benefit, or choice:D",
    ),
    (
        &["--uniform", "--policy", "choice:0"],
        "give greedy, fifo, cost-benefit, or choice:D",
    ),
    (
        &["--uniform", "--quota", "half"],
        "[possible values: none, even, data]",
    ),
    (
        &["--uniform", "--utilisation", "1.2"],
        "--utilisation 1.2: give a share",
    ),
    (&["--uniform", "--warm-up", "2"], "2 is not in 8..=1000"),
    (
        &[
            "--uniform",
            "--pages",
            "3000",
            "--op",
            "0.01",
            "--ru-pages",
            "2048",
        ],
        "cannot hold 3000 pages and a spare one",
    ),
    (&["--uniform", "--pages", "0"], "0 is not in 1..=4294967295"),
    (
        &["--uniform", "--pages", "4000000000", "--op", "1"],
        "scale the device down",
    ),
    (
        &["--hot-cold", "0.1/0.9", "--streams", "3"],
        "hot and cold data need 1 or 2 streams",
    ),
    (&["--uniform", "--rules", "R"], "cannot be used with"),
    (&["--sequential", "--handles", "3"], "cannot be used with"),
    (&["--trace", "T", "--pages", "9"], "cannot be used with"),
    (&["--trace", "/no/file"], "cannot open /no/file"),
    (
        &["--trace", "BAD"],
        "line 4: lba \"x\" is not a whole number",
    ),
    (
        &["--trace", "EMPTY"],
        "has no writes, so there is nothing to simulate",
    ),
    (
        &["--trace", "T", "--rules", "ODD"],
        "ODD:1: failed to parse the rule: 3 words",
    ),
    (
        &["--trace", "T", "--rules", "MIXED"],
        "MIXED: TOML parse error",
    ),
    (
        &["--trace", "T", "--rules", "mysql", "/no/rules"],
        "cannot read the rules in /no/rules",
    ),
    (
        &["--trace", "T", "--rules", "mysq"],
        "there is no rule set `mysq`; use none, suggested, astream, mysql,",
    ),
    (
        &["--trace", "T", "--rules", "mysql", "redis", "mysql"],
        "two rule sets have the name mysql",
    ),
    (
        &["--trace", "NAMELESS", "--rules", "suggested"],
        "has no writes to a file that a rule could name",
    ),
    (&["--trace", "T", "--by", "size"], "invalid value 'size'"),
    (&["--uniform", "--by", "hint"], "cannot be used with"),
    (&["--uniform", "--without", "a"], "cannot be used with"),
    (
        &["--uniform", "--op", "0.07,0.28"],
        "--op takes several values only with --trace; give one",
    ),
    (
        &["--trace", "T", "--op", "0.07,0"],
        "over-provisioning 0: use a share above 0",
    ),
    (
        &["--trace", "T", "--without", "redo"],
        "--without redo: no file of the trace matches this, and no rule has such a stream; give a \
         set with --rules",
    ),
    (
        &["--trace", "T", "--rules", "mysql", "--without", "rodo"],
        "--without rodo: no file of the trace matches this, and no rule has such a stream; \
         streams are doublewrite, redo,",
    ),
    (
        &["--trace", "T", "--rules", "mysql", "--without", "undo"],
        "--without undo: the trace writes to no file of this stream",
    ),
    (
        &["--trace", "T", "--without", "*", "db/*"],
        "without *, db/*, the trace: has no writes",
    ),
    (&["--uniform", "--report", "x"], "cannot be used with"),
    (&["--uniform", "--simulations", "9"], "cannot be used with"),
    (
        &["--trace", "T", "--report", "/no/page.html"],
        "cannot write /no/page.html: /no is not a directory",
    ),
    (&["--trace", "T", "--report", "/"], "/ is not a file name"),
    (
        &["--trace", "T", "--report", "/tmp"],
        "/tmp is a directory; give a file in it",
    ),
    (
        &["--uniform", "--utilisation", "0.7,0.9"],
        "--utilisation takes several values only with --trace",
    ),
    (
        &["--uniform", "--policy", "greedy,fifo"],
        "--policy takes several values only with --trace",
    ),
    (
        &["--trace", "T", "--utilisation", "0.7,x"],
        "invalid value 'x'",
    ),
    (
        &["--trace", "T", "--utilisation", "0.7,1.2"],
        "utilisation 1.2: use a share",
    ),
    (
        &["--trace", "T", "--page-bytes", "5000"],
        "pages of 5000 bytes: use a power of two",
    ),
    (&["--trace", "T", "--handles", "0"], "0 handles: use"),
    (
        &["--trace", "T", "--utilisation", "0"],
        "utilisation 0: use a share",
    ),
];

/// The same for `suggest`.
const BAD_SUGGEST: &[(&[&str], &str)] = &[
    (&[], "--trace <FILE>"),
    (&["--trace", "/no/file"], "cannot open /no/file"),
    (&["--trace", "EMPTY"], "has no writes"),
    (
        &["--trace", "NAMELESS"],
        "has no writes to a file that a rule could name",
    ),
    (&["--trace", "T", "--handles", "0"], "0 handles: use"),
    (&["--trace", "T", "--op", "0"], "over-provisioning 0"),
    (
        &["--trace", "T", "--utilisation", "2"],
        "utilisation 2: use a share",
    ),
    (
        &["--trace", "T", "--out", "/no/rules.toml"],
        "cannot write /no/rules.toml: /no is not a directory",
    ),
    (
        &["--trace", "T", "--out", "x.rules"],
        "x.rules: the name of a rule file must end in .toml",
    ),
];

#[test]
fn bad_input_is_named() {
    let saiga = Installation::bare();
    let head = "# saiga block trace 1\nt_ns,lba,len,op,file\n";
    let files = [
        ("T", trace()),
        ("BAD", format!("{head}1,0,512,W,-\n2,x,512,W,-\n")),
        ("EMPTY", format!("{head}1,0,4096,D,-\n")),
        ("R", "[[assign]]\nmatch = 'a'\nstream = 1\n".to_owned()),
        ("ODD", "rule = 1\n".to_owned()),
        ("MIXED", "[[rule]]\n[[assign]]\n".to_owned()),
        ("NAMELESS", format!("{head}1,0,4194304,W,-\n")),
    ];
    for (name, contents) in &files {
        fs::write(saiga.path(name), contents).unwrap();
    }
    let of = |verb: &'static str, all: &'static [(&'static [&'static str], &'static str)]| {
        all.iter()
            .map(move |(words, expected)| ([&[verb], *words].concat(), *expected))
    };
    let all = of("simulate", BAD).chain(of("suggest", BAD_SUGGEST));
    for (words, expected) in all {
        let put = |word: &&str| match files.iter().find(|(name, _)| name == word) {
            Some((name, _)) => text(&saiga.path(name)).to_owned(),
            None => (*word).to_owned(),
        };
        let words: Vec<String> = words.iter().map(put).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let words: Vec<&str> = [&["streams"], &words[..]].concat();
        let out = said(&mut saiga.saiga(&words));
        assert_eq!(
            (out.code, out.stdout.as_str()),
            (Some(2), ""),
            "{words:?}: {out:?}"
        );
        assert!(out.stderr.contains(expected), "{words:?}: {out:?}");
    }
}
