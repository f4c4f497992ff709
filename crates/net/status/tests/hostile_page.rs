//! Pages with false or damaged content are refused, and the error names the problem.
#![expect(unsafe_code, reason = "memfd_create and seals")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};

use saiga_status::reader::{OpenError, Page};

/// A `cat` process that inherits a memfd with the name of a status page. It ends when its stdin
/// is closed.
struct HostilePage {
    child: Child,
    page: File,
}

impl HostilePage {
    fn start(bytes: u64, seals: i32) -> Self {
        // SAFETY: the name is a C string. Not close-on-exec, because `cat` inherits the memfd.
        let fd = unsafe { libc::memfd_create(c"saiga-status".as_ptr(), libc::MFD_ALLOW_SEALING) };
        assert_ne!(fd, -1);
        // SAFETY: `fd` is new and ours.
        let page = unsafe { File::from_raw_fd(fd) };
        page.set_len(bytes).unwrap();
        // SAFETY: adding seals takes an integer.
        let sealed = unsafe { libc::fcntl(page.as_raw_fd(), libc::F_ADD_SEALS, seals) };
        assert_eq!(sealed, 0);
        let child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, page }
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        self.page.write_all_at(bytes, at).unwrap();
    }
}

impl Drop for HostilePage {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// One test function, because children of a parallel test would inherit the memfds too.
#[test]
fn false_pages_are_refused() {
    each_false_field_is_named();
    a_file_that_can_shrink_or_is_too_short_is_refused();
}

fn each_false_field_is_named() {
    let page = HostilePage::start(4096 + 64 * 4, libc::F_SEAL_SHRINK);
    let pid = page.child.id();
    let open = || Page::open(pid).map(|page| page.snapshot(9).unwrap());
    let fails_with = |problem: &str| {
        let error = open().unwrap_err().to_string();
        assert!(error.contains(problem), "{error} instead of {problem}");
    };
    fails_with("magic");
    page.write(0, b"SAIGAST1");
    assert!(matches!(
        open(),
        Err(OpenError::OtherVersion { found: 0, .. })
    ));
    page.write(8, &1_u32.to_ne_bytes());
    fails_with("size of its entries");
    page.write(12, &64_u32.to_ne_bytes());
    fails_with("number of entries");
    page.write(16, &u32::MAX.to_ne_bytes());
    fails_with("number of entries");
    page.write(16, &4_u32.to_ne_bytes());
    fails_with("is not accelerated"); // The PID is zero.
    page.write(20, &pid.to_ne_bytes());
    page.write(24, &1_u64.to_ne_bytes());
    fails_with("is not accelerated"); // The PID is right, but the start time is that of boot.
    page.write(24, &0_u64.to_ne_bytes());
    let shown = open().unwrap();
    assert_eq!(shown.sockets, []);

    // Unknown numbers: entries with an unknown state are left out, reasons become "internal".
    page.write(36, &9999_u32.to_ne_bytes());
    page.write(40, &u32::MAX.to_ne_bytes());
    page.write(48, &[0xff, b'\n', 0]);
    page.write(4096, &77_u32.to_ne_bytes());
    page.write(4096 + 64, &[4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    let shown = open().unwrap();
    let [socket] = shown.sockets[..] else {
        panic!("{shown:?}")
    };
    assert_eq!((socket.fd, socket.reason.name()), (1, "internal"));
    let (reason, text) = shown.disabled.unwrap();
    assert_eq!(reason.name(), "internal");
    assert!(!text.contains(char::is_control), "{text:?}");
}

fn a_file_that_can_shrink_or_is_too_short_is_refused() {
    let unsealed = HostilePage::start(8192, 0);
    let error = Page::open(unsealed.child.id()).unwrap_err().to_string();
    assert!(error.contains("not a sealed memfd"), "{error}");

    let short = HostilePage::start(100, libc::F_SEAL_SHRINK);
    let error = Page::open(short.child.id()).unwrap_err().to_string();
    assert!(
        error.contains("magic") || error.contains("too short"),
        "{error}"
    );
}

#[test]
fn a_missing_process_is_reported_as_such() {
    // Above the largest PID that the kernel assigns (PID_MAX_LIMIT, 2^22).
    assert!(matches!(
        Page::open(1 << 23),
        Err(OpenError::NoProcess { .. })
    ));
}
