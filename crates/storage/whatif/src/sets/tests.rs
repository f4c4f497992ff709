//! Every format of a set, and the streams that it gives to names.

use saiga_ftl::replay::Rules as _;
use saiga_ftl::trace::Row;

use super::*;

/// Creates a trace that writes a number of sectors to each file.
fn trace(files: &[(&str, u64)], directories: &[&str]) -> Trace {
    let row = |(file, (_, sectors)): (u32, &(&str, u64))| Row {
        t_ns: 0,
        lba: 0,
        len: sectors * 512,
        op: Op::Write,
        file: Some(file),
    };
    Trace {
        files: files.iter().map(|(name, _)| (*name).to_owned()).collect(),
        directories: directories.iter().map(|path| (*path).to_owned()).collect(),
        rows: (0..).zip(files).map(row).collect(),
        ..Trace::default()
    }
}

fn join(word: &str, trace: &Trace, by: By) -> Joined {
    Set::load(word).unwrap().0.join(trace, by).unwrap()
}

#[test]
fn astream_has_the_rules_of_its_documentation() {
    let trace = trace(
        &[
            ("/db/ib_logfile0", 4),
            ("/db/ibdata1", 2),
            ("/db/undo_001", 1),
            ("/db/mysql-bin.01", 8),
            ("/db/t.ibd", 16),
        ],
        &["/db"],
    );
    for by in [By::Stream, By::Hint] {
        let joined = join("astream", &trace, by);
        let names = |file| joined.stream_name(joined.stream_of(Some(file)));
        let found: Vec<String> = trace.files.iter().map(|file| names(file)).collect();
        assert_eq!(found, ["short", "medium", "long", "extreme", "default"]);
        assert_eq!(
            (joined.matched_bytes(), joined.written_bytes),
            (15 * 512, 31 * 512)
        );
        assert_eq!(joined.idle(), [""; 0]);
    }
    let f2fs = join("astream", &trace, By::F2fs);
    let found: Vec<usize> = trace
        .files
        .iter()
        .map(|file| f2fs.stream_of(Some(file)))
        .collect();
    assert_eq!(found, [1, 0, 0, 2, 0]);
}

/// Globs are relative to the database's directory, so they only match files in a directory.
#[test]
fn built_in_rules_match_places_in_the_directory() {
    let files = [
        ("/srv/my/ib_logfile0", 1),
        ("/srv/my/#ib_1_0.dblwr", 1),
        ("/srv/my/db/t.ibd", 1),
    ];
    let known = join("mysql", &trace(&files, &["/srv/my"]), By::Stream);
    let names =
        |joined: &Joined| files.map(|(file, _)| joined.stream_name(joined.stream_of(Some(file))));
    assert_eq!(names(&known), ["redo", "doublewrite", "data"]);
    let unknown = join("mysql", &trace(&files, &[]), By::Stream);
    assert_eq!(names(&unknown), ["default", "doublewrite", "data"]);
    let by_hint = join("mysql", &trace(&files, &["/srv/my"]), By::Hint);
    assert_eq!(names(&by_hint), ["medium", "short", "extreme"]);
    assert_eq!(by_hint.stream_of(None), 0);
}

#[test]
fn files_are_recognised_by_their_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let rule = "[[rule]]\npath = 'a'\nhint = 'HINT'\nwhy = 'x'\n";
    let files = trace(&[("a", 1), ("b", 2)], &[]);
    let labels = join(
        &path("labels.toml", &rule.replace("HINT", "short")),
        &files,
        By::Stream,
    );
    assert_eq!(
        (labels.name.as_str(), labels.stream_of(Some("a"))),
        ("labels", 1)
    );
    assert_eq!(
        (labels.matched_bytes(), labels.stream_of(Some("b"))),
        (512, 0)
    );
    // The kernel's hint for an unknown lifetime is not a stream.
    let none = join(
        &path("none.toml", &rule.replace("HINT", "none")),
        &files,
        By::Stream,
    );
    assert_eq!((none.stream_of(Some("a")), none.matched_bytes()), (0, 512));
    let text = "name = 'own'\n [[assign]] # one\nmatch = 'b'\nstream = 7\n";
    let plain = path("p", text);
    let plain = join(&plain, &files, By::Stream);
    assert_eq!(
        (plain.name.as_str(), plain.stream_of(Some("b"))),
        ("own", 7)
    );
    let grammar = join(&path("grammar", "b$ 3\nzz 2\n"), &files, By::Stream);
    assert_eq!(grammar.stream_name(grammar.stream_of(Some("b"))), "medium");
    assert_eq!(grammar.idle(), ["zz"]);
}

#[test]
fn files_that_are_not_rules_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    for (word, expected) in [
        (
            "nosuch".to_owned(),
            "there is no rule set `nosuch`; use none, suggested, astream, mysql,",
        ),
        (
            folder.path().join("no.toml").display().to_string(),
            "cannot read the rules in",
        ),
        (
            path("odd.toml", "[[assign]]\nmatch = '('\nstream = 1\n"),
            "odd.toml: match of [[assign]] number 1",
        ),
        (
            path(
                "mixed.toml",
                "[[assign]]\nmatch = 'a'\nstream = 1\n[[rule]]\n",
            ),
            "unknown field `rule`",
        ),
        (
            path(
                "bad.toml",
                "[[rule]]\npath = 'a'\nhint = 'shrt'\nwhy = 'x'\n",
            ),
            "bad.toml:3: `shrt` is not a hint",
        ),
        (path("bad", "a b c\n"), "bad:1: failed to parse the rule"),
        (path("empty.toml", ""), "empty.toml has no rule"),
    ] {
        let error = Set::load(&word).unwrap_err().to_string();
        assert!(error.contains(expected), "{word}: {error}");
    }
}

#[test]
fn too_many_streams_are_refused() {
    let rule = |i| format!("[[rule]]\npath = 'f{i}'\nhint = 'short'\nwhy = 'x'\nstream = 's{i}'\n");
    let text: String = (0..64).map(rule).collect();
    let rules = rules::file::parse(Path::new("many.toml"), &text).unwrap();
    let set = Set::of_labels("many", rules, false);
    let error = set
        .join(&Trace::default(), By::Stream)
        .unwrap_err()
        .to_string();
    assert_eq!(error, "many has 64 streams; at most 63 can be simulated");
    assert!(set.join(&Trace::default(), By::Hint).is_ok());
}
