//! A process reads its own page, and a forked child gets another page than its parent's.
#![expect(unsafe_code, reason = "fork and pipes")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;

use saiga_status::reader::Page;
use saiga_status::{Flags, Reason, State, StatusPage};

#[test]
fn written_values_are_read_and_a_child_gets_its_own_page() {
    let own = std::process::id();
    let error = Page::open(own).unwrap_err().to_string();
    assert!(error.contains("is not accelerated"), "{error}");

    let (fd, page) = StatusPage::create(1000).unwrap();
    assert!(fd > 2);
    page.header().set_flags(Flags::ENABLED);
    page.header().upgrades.fetch_add(3, Relaxed);
    page.header().count_failure(Reason::PeerRemote);
    page.header().count_downgrade(Reason::Stdio);
    page.header().count_downgrade(Reason::Stdio);
    page.header().count_reset(Reason::PeerGone);
    let entry = page.entry(700).unwrap();
    entry.begin(State::Upgraded, Reason::None);
    entry.channel_tx.fetch_add(1 << 40, Relaxed);
    entry.peer_pid.store(42, Relaxed);

    let shown = Page::open(own).unwrap().snapshot(u32::MAX).unwrap();
    assert_eq!(shown.pid, own);
    assert!(shown.flags.contains(Flags::ENABLED));
    assert_eq!(shown.disabled, None);
    assert_eq!(shown.upgrades, 3);
    assert_eq!(shown.failures, [(Reason::PeerRemote, 1)]);
    assert_eq!(shown.downgrades, 2);
    assert_eq!(shown.taken_back, [(Reason::Stdio, 2)]);
    assert_eq!(shown.resets, 1);
    assert_eq!(shown.reset_for, [(Reason::PeerGone, 1)]);
    let [socket] = shown.sockets[..] else {
        panic!("{shown:?}")
    };
    assert_eq!(
        (socket.fd, socket.state, socket.channel_tx),
        (700, State::Upgraded, 1 << 40)
    );
    assert_eq!((socket.peer_pid, socket.inode), (Some(42), None));
    // Entries beyond the last descriptor asked for are not read.
    assert_eq!(Page::open(own).unwrap().snapshot(699).unwrap().sockets, []);

    page.header()
        .disable(Reason::BadSettings, "saiga.toml line 3:\x1b[31m bad");
    let shown = Page::open(own).unwrap().snapshot(0).unwrap();
    let text = "saiga.toml line 3: [31m bad".to_owned();
    assert_eq!(
        shown.disabled,
        Some((Reason::BadSettings, text)),
        "without the escape character"
    );
    assert!(!shown.flags.contains(Flags::ENABLED));

    let through_proc = std::fs::OpenOptions::new()
        .write(true)
        .open(format!("/proc/self/fd/{fd}"));
    let written = through_proc.and_then(|mut file| file.write(b"nonsense"));
    assert_eq!(
        written.unwrap_err().raw_os_error(),
        Some(libc::EPERM),
        "sealed against writing"
    );

    child_has_its_own_page(page);
    let after = Page::open(own).unwrap().snapshot(u32::MAX).unwrap();
    assert_eq!(
        after.upgrades, 3,
        "the child did not write into its parent's page"
    );
    assert_eq!(after.sockets.len(), 1);
}

fn child_has_its_own_page(page: StatusPage) {
    let (mut ready, mut done) = ([0; 2], [0; 2]);
    for ends in [&mut ready, &mut done] {
        // SAFETY: `ends` has room for two descriptors.
        let result = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
        assert_eq!(result, 0);
    }
    // SAFETY: the child makes system calls only, and ends by _exit.
    let child = unsafe { libc::fork() };
    assert_ne!(child, -1);
    let mut byte = 0_u8;
    if child == 0 {
        let replaced = page.replace_after_fork().is_ok();
        page.header().upgrades.fetch_add(1, Relaxed);
        if let Some(entry) = page.entry(5) {
            entry.begin(State::Tracked, Reason::NotEnoughMessages);
        }
        // SAFETY: closes the child's copy, so that the child reads EOF when the parent ends.
        unsafe { libc::close(done[1]) };
        // SAFETY: one byte from a live variable.
        unsafe { libc::write(ready[1], (&raw const byte).cast(), 1) };
        // SAFETY: one byte into a live variable; returns when the parent writes or ends.
        unsafe { libc::read(done[0], (&raw mut byte).cast(), 1) };
        // SAFETY: ends the child without running the test harness's exit handlers.
        unsafe { libc::_exit(i32::from(!replaced)) };
    }
    // SAFETY: closes the parent's copy, so that the parent reads EOF when the child ends.
    unsafe { libc::close(ready[1]) };
    // SAFETY: one byte into a live variable.
    let received = unsafe { libc::read(ready[0], (&raw mut byte).cast(), 1) };
    let shown = Page::open(u32::try_from(child).unwrap()).map(|page| page.snapshot(100).unwrap());
    // SAFETY: one byte from a live variable.
    unsafe { libc::write(done[1], (&raw const byte).cast(), 1) };
    let mut status = 0;
    // SAFETY: `child` is a child of this process and was not waited for yet.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((received, status), (1, 0));
    let shown = shown.unwrap();
    assert_eq!(shown.upgrades, 1, "counted from zero");
    let [socket] = shown.sockets[..] else {
        panic!("{shown:?}")
    };
    assert_eq!((socket.fd, socket.state), (5, State::Tracked));
}
