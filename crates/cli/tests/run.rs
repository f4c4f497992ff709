//! `saiga run`: the state in which a program starts, and why a program cannot be accelerated.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(unsafe_code, reason = "setxattr")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;

mod support;
use support::{Installation, said, text};

const NOBODY: u32 = 65534;

#[test]
fn the_program_gets_the_library_and_its_arguments_and_nothing_else() {
    let saiga = Installation::with_library();
    let library = saiga.path("lib/saiga/libsaiga.so");
    let out = said(&mut saiga.saiga(&[
        "run",
        "--require",
        "--",
        "grep",
        "-c",
        "libsaiga.so",
        "/proc/self/maps",
    ]));
    assert_eq!(
        (out.code, out.stderr.as_str()),
        (Some(0), ""),
        "the library is mapped"
    );

    let mut command = saiga.saiga(&["run", "env"]);
    let out = said(command.env("LD_PRELOAD", "").env("KEEP", "a=b"));
    let lines: Vec<&str> = out.stdout.lines().collect();
    assert!(
        lines.contains(&format!("LD_PRELOAD={}", library.display()).as_str()),
        "{lines:?}"
    );
    assert!(lines.contains(&"KEEP=a=b"), "{lines:?}");
    assert!(!out.stdout.contains("SAIGA_"), "{lines:?}");

    // Without `--`, the flags after the program are the program's; its exit code is saiga's.
    let script = "echo \"$0|$1|$SAIGA_PROFILE\"; exit 7";
    let arguments = [
        "run",
        "--profile",
        "gentle",
        "sh",
        "-c",
        script,
        "zero",
        "--require",
    ];
    let out = said(&mut saiga.saiga(&arguments));
    assert_eq!(
        (out.code, out.stdout.as_str()),
        (Some(7), "zero|--require|gentle\n")
    );
}

#[test]
fn no_process_stays_between_caller_and_program() {
    let saiga = Installation::with_library();
    let mut child = saiga
        .saiga(&[
            "run",
            "sh",
            "-c",
            "echo $$; readlink /proc/$$/exe; exec cat /proc/self/status",
        ])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    let mut stdout = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut stdout).unwrap();
    assert!(child.wait().unwrap().success());
    let mut lines = stdout.lines();
    assert_eq!(lines.next(), Some(pid.as_str()));
    assert!(!lines.next().unwrap().contains("saiga"));
    let signals = |name: &str| {
        let line = stdout.lines().find(|line| line.starts_with(name)).unwrap();
        u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap()
    };
    assert_eq!(signals("SigIgn:") & (1 << 12), 0, "SIGPIPE is not ignored");
    assert_eq!(signals("SigBlk:"), 0);
}

#[test]
fn an_ignored_sigpipe_stays_ignored() {
    let saiga = Installation::with_library();
    let binary = saiga.path("bin/saiga");
    let mut shell = std::process::Command::new("sh");
    let script = "trap '' PIPE; exec \"$0\" run grep SigIgn /proc/self/status";
    let out = said(shell.args(["-c", script]).arg(binary));
    let mask = u64::from_str_radix(out.stdout.split_whitespace().nth(1).unwrap(), 16).unwrap();
    assert_ne!(mask & (1 << 12), 0, "{out:?}");
}

/// Asserts that `program` runs on kernel TCP with the reason `expected`, and does not run with
/// `--require`.
fn cannot_be_accelerated(saiga: &Installation, program: &str, expected: &str) {
    let out = said(&mut saiga.saiga(&["run", "--", program]));
    assert_eq!(
        (out.code, out.stdout.as_str()),
        (Some(0), "ran\n"),
        "{program}: {out:?}"
    );
    assert!(out.stderr.contains("stays on kernel TCP"), "{out:?}");
    assert!(out.stderr.contains(expected), "{out:?}");
    assert_eq!(out.stderr.lines().count(), 1, "{out:?}");

    let out = said(&mut saiga.saiga(&["run", "--require", "--", program]));
    assert_eq!(
        (out.code, out.stdout.as_str()),
        (Some(1), ""),
        "{program}: {out:?}"
    );
    assert!(
        out.stderr.contains("was not started") && out.stderr.contains(expected),
        "{out:?}"
    );
}

const RAN: &str = "#include <stdio.h>\nint main(void) { puts(\"ran\"); return 0; }\n";

#[test]
fn static_programs_are_named() {
    let saiga = Installation::with_library();
    let fixed = saiga.compile(RAN, &["-static"], "static");
    cannot_be_accelerated(&saiga, text(&fixed), "is statically linked");
    let relocatable = saiga.compile(RAN, &["-static-pie"], "static-pie");
    cannot_be_accelerated(&saiga, text(&relocatable), "is statically linked");
    // The interpreter of a script is checked, also if that is a script.
    let inner = saiga.script("inner", &format!("#! {} -x\n", text(&fixed)));
    let outer = saiga.script("outer", &format!("#!{}\n", text(&inner)));
    cannot_be_accelerated(&saiga, text(&outer), "is statically linked");
}

#[test]
fn programs_that_end_if_another_library_precedes_their_sanitizer_are_named() {
    let saiga = Installation::with_library();
    let program = saiga.compile(RAN, &["-fsanitize=address"], "sanitized");
    let library = saiga.path("lib/saiga/libsaiga.so");
    cannot_be_accelerated(&saiga, text(&program), &format!(":{}\n", library.display()));

    // As the message says.
    let said_now = said(&mut saiga.saiga(&["run", text(&program)])).stderr;
    let (_, preload) = said_now.trim().split_once("LD_PRELOAD=").unwrap();
    let mut command = std::process::Command::new(&program);
    let out = said(command.env("LD_PRELOAD", preload));
    assert_eq!(
        (out.code, out.stdout.as_str()),
        (Some(0), "ran\n"),
        "{out:?}"
    );

    let program = saiga.compile(RAN, &["-fsanitize=undefined"], "other");
    let out = said(&mut saiga.saiga(&["run", "--require", text(&program)]));
    assert_eq!(
        (out.code, out.stdout.as_str()),
        (Some(0), "ran\n"),
        "{out:?}"
    );
}

#[test]
fn scripts_of_dynamic_interpreters_are_accelerated() {
    let saiga = Installation::with_library();
    for first_line in ["#!/bin/sh\n", ""] {
        let script = saiga.script("script", &format!("{first_line}echo $LD_PRELOAD $1\n"));
        let out = said(&mut saiga.saiga(&["run", "--require", text(&script), "x"]));
        let expected = format!("{} x\n", saiga.path("lib/saiga/libsaiga.so").display());
        assert_eq!(
            (out.code, out.stdout, out.stderr.as_str()),
            (Some(0), expected, "")
        );
    }
}

#[test]
fn privileged_programs_are_named() {
    let saiga = Installation::with_library();
    let program = saiga.compile(RAN, &[], "privileged");
    let mode = |mode| fs::set_permissions(&program, PermissionsExt::from_mode(mode)).unwrap();

    mode(0o4755);
    let out = said(&mut saiga.saiga(&["run", "--require", text(&program)]));
    assert_eq!(
        out.code,
        Some(0),
        "the bit has no effect for the owner: {out:?}"
    );

    chown(&program, Some(NOBODY), Some(NOBODY)).expect("tests of setuid need root");
    mode(0o4755);
    cannot_be_accelerated(&saiga, text(&program), "is setuid");
    mode(0o2755);
    cannot_be_accelerated(&saiga, text(&program), "is setgid");
    mode(0o755);
    let out = said(&mut saiga.saiga(&["run", "--require", text(&program)]));
    assert_eq!(out.code, Some(0), "{out:?}");
}

#[test]
fn file_capabilities_are_an_obstacle_for_every_user_but_root() {
    let saiga = Installation::with_library();
    let program = saiga.compile(RAN, &[], "capable");
    set_capability(&program);
    let out = said(&mut saiga.saiga(&["run", "--require", text(&program)]));
    assert_eq!(out.code, Some(0), "{out:?}");
    let mut command = saiga.saiga(&["run", "--require", text(&program)]);
    let out = said(command.uid(NOBODY).gid(NOBODY));
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(out.stderr.contains("has file capabilities"), "{out:?}");
}

/// Gives a file CAP_NET_BIND_SERVICE as setcap(8) does: `vfs_cap_data`, version 2, effective.
fn set_capability(file: &std::path::Path) {
    let words: [u32; 5] = [0x0200_0001, 1 << 10, 0, 0, 0];
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
    let name = c"security.capability";
    // SAFETY: two C strings, and `data` is readable for its length.
    let set = unsafe {
        libc::setxattr(
            path.as_ptr(),
            name.as_ptr(),
            data.as_ptr().cast(),
            data.len(),
            0,
        )
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn a_program_for_another_machine_is_named_and_cannot_run() {
    let saiga = Installation::with_library();
    let program = saiga.compile(RAN, &[], "program");
    let original = fs::read(program).unwrap();
    let changed = |at: usize, byte: u8| {
        let mut bytes = original.clone();
        bytes[at] = byte;
        saiga.executable("foreign", &bytes)
    };
    let narrow = changed(4, 1); // EI_CLASS: 32 bits.
    let out = said(&mut saiga.saiga(&["run", "--require", text(&narrow)]));
    assert_eq!(out.code, Some(1));
    assert!(
        out.stderr.contains("is not a 64-bit little-endian program"),
        "{out:?}"
    );

    let foreign = changed(18, 42); // e_machine: SuperH.
    let out = said(&mut saiga.saiga(&["run", "--require", text(&foreign)]));
    assert_eq!(out.code, Some(1));
    assert!(
        out.stderr.contains("another processor (ELF machine 42"),
        "{out:?}"
    );
    let out = said(&mut saiga.saiga(&["run", text(&foreign)]));
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(
        out.stderr
            .contains("this machine does not support its format"),
        "{out:?}"
    );
}

#[test]
fn a_program_of_another_c_library_is_named() {
    let saiga = Installation::with_library();
    let flags = ["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"];
    let program = saiga.compile(RAN, &flags, "musl");
    let out = said(&mut saiga.saiga(&["run", "--require", text(&program)]));
    assert_eq!(out.code, Some(1));
    assert!(out.stderr.contains("not built for glibc"), "{out:?}");
    let out = said(&mut saiga.saiga(&["run", text(&program)]));
    assert_eq!(out.code, Some(2));
    assert!(
        out.stderr.contains("interpreter or loader is missing"),
        "{out:?}"
    );
}

#[test]
fn a_missing_unreadable_or_damaged_library_is_named() {
    let saiga = Installation::bare();
    let program = saiga.compile(RAN, &[], "program");
    cannot_be_accelerated(&saiga, text(&program), "libsaiga.so is neither at");

    let saiga = Installation::with_library();
    let library = saiga.path("lib/saiga/libsaiga.so");
    fs::set_permissions(&library, PermissionsExt::from_mode(0o600)).unwrap();
    let mut command = saiga.saiga(&["run", "--require", "true"]);
    let out = said(command.uid(NOBODY).gid(NOBODY));
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(out.stderr.contains("this user cannot read"), "{out:?}");
    let out = said(&mut saiga.saiga(&["run", "--require", "true"]));
    assert_eq!(out.code, Some(0), "root can: {out:?}");

    fs::write(&library, "not an object").unwrap();
    let program = saiga.compile(RAN, &[], "program");
    cannot_be_accelerated(&saiga, text(&program), "is not a shared library");
}

#[test]
fn settings_that_switch_off_are_named() {
    let saiga = Installation::with_library();
    let program = saiga.compile(RAN, &[], "program");
    let file = saiga.path(".config/saiga/saiga.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "programs_off = [\"program\"]\n").unwrap();
    cannot_be_accelerated(&saiga, text(&program), "program is in programs_off");
    fs::write(&file, "enabled = false\n").unwrap();
    cannot_be_accelerated(&saiga, text(&program), "Saiga is switched off");
}

#[test]
fn a_profile_of_apparmor_that_denies_the_library_is_an_obstacle() {
    let saiga = Installation::with_library();
    let program = saiga.compile("int main(void){return 0;}", &[], "program");
    let profile = "profile mine /program {\n  /lib/** r,\n}\n";
    for (file, text) in [
        ("sys/module/apparmor/parameters/enabled", "Y\n"),
        ("etc/apparmor.d/mine", profile),
    ] {
        fs::create_dir_all(saiga.path(file).parent().unwrap()).unwrap();
        fs::write(saiga.path(file), text).unwrap();
    }
    let run = |code: i32, more: &[&str]| {
        let root = saiga.path("");
        let words = [&["run", "--root", text(&root)], more, &[text(&program)]].concat();
        let out = said(&mut saiga.saiga(&words));
        assert_eq!(out.code, Some(code), "{out:?}");
        out.stderr
    };
    let stderr = run(0, &[]);
    assert!(
        stderr.contains("stays on kernel TCP: AppArmor's profile mine"),
        "{stderr}"
    );
    assert!(
        stderr.contains("\n    /lib/saiga/libsaiga.so mr,\n"),
        "{stderr}"
    );
    assert!(run(1, &["--require"]).contains("was not started: AppArmor's profile mine"));

    // A user who cannot read which profiles are enforced relies on the flags in the file.
    fs::write(
        saiga.path("etc/apparmor.d/mine"),
        profile.replace(" {", " flags=(complain) {"),
    )
    .unwrap();
    assert_eq!(run(0, &["--require"]), "");
}
