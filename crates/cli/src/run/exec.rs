//! Replaces this process by another program (execve). The program gets the signal mask and the
//! disposition of SIGPIPE with which `saiga` was started.
//!
//! Deliberately absent: `CommandExt::exec` of std, which resets the signal mask and the disposition
//! of SIGPIPE.
#![expect(unsafe_code, reason = "execve and signal dispositions")]

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::anyhow;

use saiga_program::Command;

/// Whether the caller of `saiga` ignored SIGPIPE, as systemd does. Read in `.init_array`, because
/// Rust's start-up code, which runs later, always ignores the signal.
static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_SIGNALS: extern "C" fn() = note_signals;

extern "C" fn note_signals() {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: changes no disposition, and `action` has room for the current one.
    let asked = unsafe { libc::sigaction(libc::SIGPIPE, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: if the call failed, the zeros are a valid value.
    let action = unsafe { action.assume_init() };
    PIPE_WAS_IGNORED.store(asked == 0 && action.sa_sigaction == libc::SIG_IGN, Relaxed);
}

/// Replaces this process by `command`, with `name` as `argv[0]`. Returns only if this fails, with
/// the reason.
pub(crate) fn replace(
    command: &Command,
    name: &OsStr,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
) -> anyhow::Error {
    let shown = command
        .script
        .as_ref()
        .unwrap_or(&command.program)
        .display()
        .to_string();
    let Ok(strings) = Strings::new(command, name, arguments, environment) else {
        return anyhow!("cannot run {shown}: an argument or variable contains a NUL byte");
    };
    if !PIPE_WAS_IGNORED.load(Relaxed) {
        // SAFETY: the default disposition is valid for SIGPIPE.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
    let (argv, envp) = (pointers(&strings.argv), pointers(&strings.envp));
    // SAFETY: a C string and two null-terminated arrays of C strings that outlive the call.
    unsafe { libc::execve(strings.program.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOENT) => anyhow!("cannot run {shown}: its interpreter or loader is missing"),
        Some(libc::ENOEXEC) => {
            anyhow!("cannot run {shown}: this machine does not support its format")
        }
        _ => anyhow!("cannot run {shown}: {error}"),
    }
}

struct Strings {
    program: CString,
    argv: Vec<CString>,
    envp: Vec<CString>,
}

impl Strings {
    fn new(
        command: &Command,
        name: &OsStr,
        arguments: &[OsString],
        environment: &[(OsString, OsString)],
    ) -> Result<Self, std::ffi::NulError> {
        let text = |text: &OsStr| CString::new(text.as_bytes());
        let mut argv = vec![text(name)?];
        if let Some(script) = &command.script {
            argv.push(text(script.as_os_str())?);
        }
        for argument in arguments {
            argv.push(text(argument)?);
        }
        let mut envp = Vec::with_capacity(environment.len());
        for (name, value) in environment {
            let mut line = name.clone();
            line.push("=");
            line.push(value);
            envp.push(text(&line)?);
        }
        Ok(Self {
            program: text(command.program.as_os_str())?,
            argv,
            envp,
        })
    }
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|text| text.as_ptr())
        .chain([ptr::null()])
        .collect()
}
