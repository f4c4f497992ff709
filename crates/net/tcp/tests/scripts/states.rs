//! Every state with every event, from the table states.txt: RFC 9293 §3.10, RFC 5961, RFC 1337.
//!
//! Each line of the table is a script of its own: the state is reached, the event happens, the
//! segment that the line names leaves and no other, and the named state follows.

use crate::run;

const TABLE: &str = include_str!("states.txt");

/// A state: how it is reached, and `RCV.NXT` and `SND.NXT` in it.
const STATES: [(&str, &str, [u32; 2]); 9] = [
    ("SYN-SENT", "connect\n> S 0", [1, 1]),
    (
        "SYN-RECEIVED",
        "accept\n< S 0 win 8000\n> S. 0 ack 1",
        [1, 1],
    ),
    ("ESTABLISHED", "established", [1, 1]),
    ("FIN-WAIT-1", "established\nshutdown\n> F. 1 ack 1", [1, 2]),
    (
        "FIN-WAIT-2",
        "established\nshutdown\n> F. 1 ack 1\n< . 1 ack 2 win 8000",
        [1, 2],
    ),
    (
        "CLOSE-WAIT",
        "established\n< F. 1 ack 1 win 8000\n> . 1 ack 2",
        [2, 1],
    ),
    (
        "CLOSING",
        "established\nshutdown\n> F. 1 ack 1\n< F. 1 ack 1 win 8000\n> . 2 ack 2",
        [2, 2],
    ),
    (
        "LAST-ACK",
        "established\n< F. 1 ack 1 win 8000\n> . 1 ack 2\nshutdown\n> F. 1 ack 2",
        [2, 2],
    ),
    (
        "TIME-WAIT",
        "established\nshutdown\n> F. 1 ack 1\n< F. 1 ack 2 win 8000\n> . 2 ack 2",
        [2, 2],
    ),
];

/// An event with the numbers of the state: `{rcv}` is `RCV.NXT`, `{old}` one less, `{in}` and
/// `{above}` are in the window and above it; `{snd}` is `SND.NXT`, `{more}` one more, `{past}` more
/// than a window less.
const EVENTS: [(&str, &str); 19] = [
    ("reset", "< R {rcv}"),
    ("reset with acknowledgement", "< R. {rcv} ack {snd}"),
    ("reset in the window", "< R {in}"),
    ("reset above the window", "< R {above}"),
    ("SYN in the window", "< S {in} win 8000"),
    ("SYN above the window", "< S {above} win 8000"),
    ("answer to the SYN", "< S. 0 ack 1 win 8000"),
    ("acknowledgement of all", "< . {rcv} ack {snd} win 8000"),
    ("acknowledgement of more", "< . {rcv} ack {more} win 8000"),
    (
        "acknowledgement of the past",
        "< . {rcv} ack {past} win 8000",
    ),
    ("no acknowledgement", "< - {rcv} win 8000"),
    ("data", "< P. {rcv}+10 ack {snd} win 8000"),
    (
        "data above the window",
        "< P. {above}+10 ack {snd} win 8000",
    ),
    ("old byte", "< . {old}+1 ack {snd} win 8000"),
    ("FIN", "< F. {rcv} ack {snd} win 8000"),
    ("FIN again", "< F. {old} ack {snd} win 8000"),
    ("shutdown", "shutdown"),
    ("close", "close"),
    ("abort", "abort"),
];

fn event(name: &str, [rcv, snd]: [u32; 2]) -> String {
    let (_, template) = EVENTS.iter().find(|(event, _)| *event == name).unwrap();
    [
        ("{rcv}", rcv),
        ("{old}", rcv - 1),
        ("{in}", rcv + 9),
        ("{above}", rcv + 70_000),
        ("{snd}", snd),
        ("{more}", snd + 1),
        ("{past}", snd.wrapping_sub(9000)),
    ]
    .into_iter()
    .fold((*template).to_owned(), |text, (field, number)| {
        text.replace(field, &number.to_string())
    })
}

/// The script of a line, `EVENT: STATE > SEGMENT`.
fn script(state: &str, line: &str) -> String {
    let (_, reached, numbers) = STATES.iter().find(|(name, ..)| *name == state).unwrap();
    let (name, outcome) = line.split_once(':').unwrap();
    let (next, segment) = match outcome.split_once('>') {
        Some((next, segment)) => (next.trim(), format!("> {}\n", segment.trim())),
        None => (outcome.trim(), String::new()),
    };
    let event = event(name.trim(), *numbers);
    format!("config sack=off\n{reached}\n{event}\n{segment}state {next}\n")
}

/// The lines of the table with their states.
fn lines() -> Vec<(&'static str, &'static str)> {
    let mut state = "";
    let mut lines = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix("  ") {
            Some(line) => lines.push((state, line)),
            None => state = line,
        }
    }
    lines
}

#[test]
fn every_state_answers_every_event() {
    let lines = lines();
    let failures: Vec<String> = lines
        .iter()
        .filter_map(|(state, line)| {
            let why = run::run(&script(state, line), false).err()?;
            Some(format!("{state}, {line}: {why}"))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let of = |state: &str| lines.iter().filter(|(name, _)| *name == state).count();
    for (state, ..) in STATES {
        assert_eq!(of(state), EVENTS.len(), "lines of {state}");
    }
}
