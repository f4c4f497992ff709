//! `saiga status`, `top`, `topology`, `tune` and `diagnose`; the first two on the process of this
//! test.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(unsafe_code, reason = "a pseudo-terminal")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Stdio;
use std::sync::atomic::Ordering::Relaxed;

use saiga_status::{Flags, Reason, State, StatusPage};

mod diagnose;
mod support;
mod topology;
mod tune;
use support::{Installation, said};

/// One test, because it starts one process.
#[test]
fn a_process_is_shown_as_its_page_and_the_kernel_see_it() {
    let saiga = Installation::bare();
    let pid = std::process::id().to_string();
    let out = said(&mut saiga.saiga(&["status", &pid]));
    assert_eq!(out.code, Some(1));
    assert!(
        out.stdout
            .contains("is not accelerated: the library is not loaded"),
        "{out:?}"
    );
    let out = said(&mut saiga.saiga(&["status", "--json", &pid]));
    let answer: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(
        (out.code, &answer["accelerated"]),
        (Some(1), &serde_json::json!(false))
    );

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upgraded = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (remote, _) = listener.accept().unwrap();
    let other = TcpListener::bind("[::1]:0").unwrap();
    let six = TcpStream::connect(other.local_addr().unwrap()).unwrap();
    let (_fd, page) = StatusPage::create(1024).unwrap();
    show(page, &upgraded, &remote);

    one_process_as_json(&saiga, &pid, &listener, [&upgraded, &remote, &six]);
    let out = said(&mut saiga.saiga(&["status", &pid]));
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
    for expected in [
        "1 of 3 connections upgraded",
        "peer is not a Saiga process",
        "not upgraded 2 times: peer is remote",
        "downgraded 1 times: stdio on the socket",
        "reset 1 times: peer's process ended",
        "1.00 MiB",
        "not opened through the library",
    ] {
        assert!(out.stdout.contains(expected), "{expected}: {}", out.stdout);
    }
    the_list_and_top_contain_it(&saiga, &pid);

    page.header()
        .disable(Reason::BadSettings, "/etc/saiga/saiga.toml line 1");
    let out = said(&mut saiga.saiga(&["status", &pid]));
    let expected =
        "no connection is accelerated: settings could not be read: /etc/saiga/saiga.toml line 1";
    assert!(out.stdout.contains(expected), "{}", out.stdout);
}

fn show(page: StatusPage, upgraded: &TcpStream, remote: &TcpStream) {
    page.header().set_flags(Flags::ENABLED);
    page.header().upgrades.fetch_add(1, Relaxed);
    page.header().count_failure(Reason::PeerRemote);
    page.header().count_failure(Reason::PeerRemote);
    page.header().count_downgrade(Reason::Stdio);
    page.header().count_reset(Reason::PeerGone);
    let entry = page.entry(upgraded.as_raw_fd()).unwrap();
    entry.begin(State::Upgraded, Reason::None);
    entry.channel_tx.fetch_add(1 << 20, Relaxed);
    entry.peer_pid.store(std::process::id(), Relaxed);
    page.entry(remote.as_raw_fd())
        .unwrap()
        .begin(State::Never, Reason::PeerNotSaiga);
    // Shown for a number that is not a socket of the process.
    page.entry(0).unwrap().begin(State::Upgraded, Reason::None);
}

fn one_process_as_json(
    saiga: &Installation,
    pid: &str,
    listener: &TcpListener,
    [upgraded, remote, six]: [&TcpStream; 3],
) {
    let out = said(&mut saiga.saiga(&["status", pid, "--json"]));
    let answer: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(
        (out.code, &answer["accelerated"]),
        (Some(0), &serde_json::json!(true))
    );
    assert_eq!(
        (&answer["enabled"], &answer["disabled"]),
        (&true.into(), &().into())
    );
    for (counts, reason) in [("taken_back", "stdio"), ("reset_for", "peer-gone")] {
        let [only] = &answer[counts].as_array().unwrap()[..] else {
            panic!("{counts}: {answer}")
        };
        assert_eq!(only["reason"], reason);
        assert_eq!(only["count"], 1);
    }
    let sockets = answer["sockets"].as_array().unwrap();
    let row = |fd: i32| sockets.iter().find(|socket| socket["fd"] == fd).unwrap();
    let mine = row(upgraded.as_raw_fd());
    assert_eq!(mine["state"], "upgraded");
    assert_eq!(mine["channel_tx"], 1 << 20);
    assert_eq!(mine["local"], upgraded.local_addr().unwrap().to_string());
    assert_eq!(mine["remote"], upgraded.peer_addr().unwrap().to_string());
    assert_eq!(row(remote.as_raw_fd())["reason"], "peer-kernel");
    assert_eq!(
        row(six.as_raw_fd())["remote"],
        six.peer_addr().unwrap().to_string()
    );
    assert_eq!(row(six.as_raw_fd())["state"], "kernel");
    assert_eq!(row(listener.as_raw_fd())["state"], "listening");
    assert!(sockets.iter().all(|socket| socket["fd"] != 0));
}

fn the_list_and_top_contain_it(saiga: &Installation, pid: &str) {
    let is_mine = |line: &str| line.split_whitespace().next() == Some(pid);
    let out = said(&mut saiga.saiga(&["status"]));
    assert!(out.stdout.lines().any(is_mine), "{out:?}");
    let out = said(&mut saiga.saiga(&["status", "--json"]));
    let list: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    let mut pids = list
        .as_array()
        .unwrap()
        .iter()
        .map(|process| process["pid"].to_string());
    assert!(pids.any(|listed| listed == pid), "{list}");
    let out = said(&mut saiga.saiga(&["top", "--once"]));
    assert!(out.stdout.lines().any(is_mine), "{out:?}");
    assert!(
        !out.stdout.contains('\x1b'),
        "no escape sequences where there is no terminal"
    );
}

#[test]
fn top_leaves_the_terminal_as_it_was() {
    let saiga = Installation::bare();
    let by_key = |master: &mut File, _pid: i32| master.write_all(b"xq").unwrap();
    let by_interrupt_key = |master: &mut File, _pid: i32| master.write_all(&[3]).unwrap();
    let by_signal = |_master: &mut File, pid: i32| {
        // SAFETY: a signal to a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGTERM) }, 0);
    };
    let ways: [fn(&mut File, i32); 3] = [by_key, by_interrupt_key, by_signal];
    for end in ways {
        let (mut master, slave) = terminal();
        let before = settings(&slave);
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        let mut command = saiga.saiga(&["top"]);
        let mut child = command
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .spawn()
            .unwrap();
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        while !String::from_utf8_lossy(&seen).contains("press q to quit") {
            let read = master.read(&mut buffer).unwrap();
            seen.extend_from_slice(&buffer[..read]);
        }
        assert_ne!(
            settings(&slave),
            before,
            "keys come without Enter while it runs"
        );
        end(&mut master, i32::try_from(child.id()).unwrap());
        assert!(child.wait().unwrap().success());
        assert_eq!(settings(&slave), before);
    }
}

fn terminal() -> (File, OwnedFd) {
    let (mut master, mut slave) = (-1, -1);
    let null = std::ptr::null_mut();
    // SAFETY: both numbers are writable; the optional parts are null.
    let opened = unsafe {
        libc::openpty(
            &raw mut master,
            &raw mut slave,
            null,
            null.cast(),
            null.cast(),
        )
    };
    assert_eq!(opened, 0);
    // SAFETY: new and owned by nothing else.
    let master = unsafe { OwnedFd::from_raw_fd(master) };
    // SAFETY: new and owned by nothing else.
    (File::from(master), unsafe { OwnedFd::from_raw_fd(slave) })
}

/// The flags that `top` changes.
fn settings(terminal: &OwnedFd) -> libc::tcflag_t {
    let mut settings = std::mem::MaybeUninit::uninit();
    // SAFETY: `settings` is room for the answer.
    let asked = unsafe { libc::tcgetattr(terminal.as_raw_fd(), settings.as_mut_ptr()) };
    assert_eq!(asked, 0);
    // SAFETY: tcgetattr succeeded, so it filled the structure.
    let settings: libc::termios = unsafe { settings.assume_init() };
    settings.c_lflag
}
