//! `saiga tune` in a network namespace of its own, whose settings no other test sees.

use std::fs;
use std::process::Command;

use crate::support::{Installation, Said, said, text};

/// Runs a shell script with `$SAIGA` and `$DIR` in a new network namespace.
fn alone(saiga: &Installation, script: &str) -> Said {
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-ec", script]);
    command.env("SAIGA", saiga.path("bin/saiga"));
    command.env("DIR", saiga.path(""));
    command.current_dir(saiga.path(""));
    said(&mut command)
}

#[test]
fn a_plan_is_applied_verified_and_undone() {
    let saiga = Installation::bare();
    let script = r#"
        somaxconn=/proc/sys/net/core/somaxconn
        tune() { "$SAIGA" tune "$@"; }
        plan() { tune plan --no-interrupts --set net.core.somaxconn=1234 "$@"; }
        echo "before $(cat $somaxconn)"
        plan >text
        grep -q "net.core.somaxconn .* -> 1234" text
        tune apply plan.toml --journal journal
        echo "applied $(cat $somaxconn)"
        tune verify plan.toml
        id=$(sed -n 's/^id = "\(.*\)"/\1/p' plan.toml)
        tune verify "$id" --journal journal
        plan --out again.toml >again && echo "something left" || echo "nothing left: $?"
        test ! -e again.toml
        tune apply plan.toml --journal journal && echo "applied twice" || echo "refused: $?"
        echo 99 >$somaxconn
        tune verify plan.toml && echo "as planned" || echo "different: $?"
        tune undo "$id" --journal journal && echo "overwrote" || echo "left: $?"
        echo "others' $(cat $somaxconn)"
        echo 1234 >$somaxconn
        tune undo "$id" --journal journal
        echo "after $(cat $somaxconn)"
        tune history --journal journal
        stat -c '%a %n' journal plan.toml
    "#;
    let said = alone(&saiga, script);
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = &said.stdout;
    let value = |word: &str| {
        let line = out.lines().find_map(|line| line.strip_prefix(word));
        line.unwrap_or_else(|| panic!("{word}: {said:?}"))
            .to_owned()
    };
    assert_eq!(value("applied 1"), "234");
    for expected in [
        "all values are as planned\nall values are as planned\nnothing left: 1\n",
        "refused: 2\n",
        "net.core.somaxconn: /proc/sys/net/core/somaxconn is 99, not 1234\ndifferent: 1\n",
        "left: 1\nothers' 99\n",
        "700 journal\n600 plan.toml\n",
    ] {
        assert!(out.contains(expected), "{expected}: {said:?}");
    }
    assert_eq!(value("before "), value("after "));
    assert!(
        out.lines().any(|line| line.ends_with(" undone")),
        "{said:?}"
    );
    assert!(
        said.stderr
            .contains("the host has changed since the plan was made"),
        "{said:?}"
    );
}

/// As [`alone`], with a file of its own in the place of `/proc/irq/default_smp_affinity`: changing
/// it needs a confirmation. Plans it and has functions for the scripts below.
fn with_affinity(saiga: &Installation, script: &str) -> Said {
    let start = r#"
        echo 3 >"$DIR/affinity"
        mount --bind "$DIR/affinity" /proc/irq/default_smp_affinity
        affinity() { cat /proc/irq/default_smp_affinity; }
        tune() { verb=$1; shift; "$SAIGA" tune "$verb" "$@" --journal "$DIR/journal"; }
        state() { tune history | sed -n '2s/.*  //p'; }
        waiting() { pgrep -f "tune watch .* $DIR/journal" >watching; }
        tune plan --no-interrupts --set irq.default_smp_affinity=1 >text
    "#;
    let mut command = Command::new("unshare");
    command.args(["-m", "-n", "sh", "-ec", &format!("{start}{script}")]);
    command.env("SAIGA", saiga.path("bin/saiga"));
    command.env("DIR", saiga.path("").canonicalize().unwrap());
    command.current_dir(saiga.path(""));
    said(&mut command)
}

/// The connection of the user ends with everything that runs in it.
#[test]
fn a_plan_that_is_not_confirmed_is_undone_after_its_session_was_killed() {
    let saiga = Installation::bare();
    let script = r#"
        mkfifo applied
        setsid sh -c '"$SAIGA" tune apply plan.toml --confirm-within 5s --journal "$DIR/journal"
            echo $$ >applied; sleep 1000' &
        read group <applied
        echo "applied $(affinity), $(state)"
        kill -KILL "-$group"
        while waiting; do sleep 0.1; done
        echo "after $(affinity), $(state)"
        tune confirm 0001 && echo "confirmed" || echo "refused: $?"
    "#;
    let said = with_affinity(&saiga, script);
    assert_eq!(said.code, Some(0), "{said:?}");
    for expected in [
        "applied 1, waits to be confirmed\n",
        "after 3, undone\nrefused: 2\n",
    ] {
        assert!(said.stdout.contains(expected), "{expected}: {said:?}");
    }
}

#[test]
fn a_plan_that_is_confirmed_outlasts_its_deadline() {
    let saiga = Installation::bare();
    let script = r#"
        tune apply plan.toml --confirm-within 5s
        waiting || echo "no process waits"
        tune confirm 0001
        while waiting; do sleep 0.1; done
        echo "after $(affinity), $(state)"
        tune undo 0001
        echo "undone $(affinity), $(state)"
    "#;
    let said = with_affinity(&saiga, script);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.stdout.contains("no process waits"), "{said:?}");
    for expected in ["after 1, applied\n", "undone 3, undone\n"] {
        assert!(said.stdout.contains(expected), "{expected}: {said:?}");
    }
}

/// An experiment file with a server that does nothing, and a load that may print its rate.
fn experiment(load: &str) -> String {
    format!(
        r#"
        name = "somaxconn"
        [plan]
        pairs = 6
        seed = 1
        max_foreign_cores = 100
        [[server]]
        name = "sleeper"
        command = "sleep 1000"
        ready = {{ command = "true" }}
        stop = {{ signal = "KILL" }}
        [workload]
        kind = "command"
        command = "{load}"
        [[workload.metric]]
        name = "rate_per_s"
        regex = 'rate ([0-9.]+)'
        unit = "1/s"
        better = "higher"
        "#
    )
}

/// The first run of an experiment waits, so that the second command finds its lock taken.
#[test]
fn a_directory_is_for_one_proof_and_one_user() {
    let saiga = Installation::bare();
    let load = "sh -c 'echo begun >${HERE}/begun; exec sleep 1000'";
    fs::write(saiga.path("e.toml"), experiment(load)).unwrap();
    let script = r#"
        "$SAIGA" tune plan --no-interrupts --set net.core.somaxconn=2000 >text
        prove() { "$SAIGA" tune prove plan.toml --experiment e.toml --no-dashboard "$@"; }
        mkfifo begun
        "$SAIGA" tune prove plan.toml --experiment e.toml --no-dashboard --out out >first 2>&1 &
        read word <begun
        prove --out out && echo "two proofs" || echo "busy: $?"
        kill -TERM $!
        wait $! || echo "interrupted"
        mkdir open
        chmod 777 open
        prove --out open && echo "an open directory" || echo "open: $?"
        mkdir other
        chown 65534 other
        prove --out other && echo "another user" || echo "other: $?"
        test -z "$(ls open other | grep tune)"
    "#;
    let said = alone(&saiga, script);
    assert_eq!(said.code, Some(0), "{said:?}");
    let expected = "busy: 2\ninterrupted\nopen: 2\nother: 2\n";
    assert!(said.stdout.starts_with(expected), "{said:?}");
    for expected in [
        "another `saiga tune prove` uses ",
        "open and could change the plans in it",
        "other belongs to another user",
    ] {
        assert!(said.stderr.contains(expected), "{expected}: {said:?}");
    }
}

#[test]
fn bad_input_is_named() {
    let saiga = Installation::bare();
    fs::write(saiga.path("plan.toml"), "version = 7\n").unwrap();
    let plan = saiga.path("plan.toml");
    let journal = saiga.path("journal");
    let journal = text(&journal);
    for (words, expected) in [
        (
            &["plan", "--set", "vm.swapiness=1"][..],
            "unknown knob `vm.swapiness`; the nearest is `vm.swappiness`",
        ),
        (
            &["plan", "--set", "vm.swappiness=hot"],
            "vm.swappiness: `hot` is not a number from 0 to 200",
        ),
        (
            &["plan", "--device", "eth77"],
            "there is no network device eth77",
        ),
        (
            &["plan", "--server-cores", "100000"],
            "100000 cores for server are more than the ",
        ),
        (&["plan", "--sysroot", "/nonexistent"], "/nonexistent"),
        (
            &["apply", "nothing.toml"],
            "cannot read the plan nothing.toml",
        ),
        (&["apply", text(&plan)], "plan.toml"),
        (&["undo", "abc", "--journal", journal], "abc"),
        (&["knobs", "vm.swapines"], "the nearest is `vm.swappiness`"),
        (
            &["move-pages", "--pid", "4194305", "--to-node", "0"],
            "there is no process 4194305",
        ),
        (
            &["move-pages", "--pid", "1", "--to-node", "77"],
            "there is no node 77",
        ),
        (
            &["database", "mysql", "--like", "procedure-9"],
            "there is no procedure procedure-9",
        ),
        (
            &["database", "redis", "--like", "procedure-001"],
            "procedure-001 has no values for this kind of server",
        ),
    ] {
        let mut command = saiga.saiga(&[&["tune"], words].concat());
        let said = said(command.current_dir(saiga.path("")));
        assert_eq!(said.code, Some(2), "{words:?}: {said:?}");
        assert!(said.stderr.contains(expected), "{words:?}: {said:?}");
        assert_eq!(said.stdout, "", "{words:?}");
    }
    // What is refused is part of the plan's text, with the safe way.
    let words = ["tune", "plan", "--no-interrupts", "--set", "mkfs"];
    let said = said(saiga.saiga(&words).current_dir(saiga.path("")));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stdout.contains("mkfs"), "{said:?}");
}

#[test]
fn changes_are_proven_one_by_one() {
    let saiga = Installation::bare();
    let load = "sh -c 'echo rate $(cat /proc/sys/net/core/somaxconn)'";
    fs::write(saiga.path("e.toml"), experiment(load)).unwrap();
    let script = r#"
        echo 1000 >/proc/sys/net/core/somaxconn
        cd /proc/sys/net/ipv4
        before=$(cat tcp_max_syn_backlog)
        cd "$DIR"
        "$SAIGA" tune plan --no-interrupts --set net.core.somaxconn=2000 \
            --set net.ipv4.tcp_max_syn_backlog=777 >/dev/null
        "$SAIGA" tune prove plan.toml --experiment e.toml --out out --no-dashboard >text
        cat text
        echo "after $(cat /proc/sys/net/core/somaxconn)"
        test "$before" = "$(cat /proc/sys/net/ipv4/tcp_max_syn_backlog)"
        grep '^knob' out/proven.toml
    "#;
    let said = alone(&saiga, script);
    assert_eq!(said.code, Some(0), "{said:?}");
    let row = |name: &str| -> Vec<String> {
        let mut lines = said.stdout.lines();
        let line = lines.find(|line| line.starts_with(&format!("{name}  ")));
        let line = line.unwrap_or_else(|| panic!("{name}: {said:?}"));
        line.split("  ")
            .filter(|cell| !cell.is_empty())
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    assert_eq!(row("net.core.somaxconn")[1..3], ["gain", "2.000x"]);
    assert_eq!(
        row("net.ipv4.tcp_max_syn_backlog")[1..3],
        ["no effect shown", "1.000x"]
    );
    assert_eq!(row("all")[1..3], ["gain", "2.000x"]);
    assert!(
        said.stdout
            .contains("after 1000\nknob = \"net.core.somaxconn\"\n"),
        "{said:?}"
    );
}
