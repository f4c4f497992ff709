//! Ctrl-C while the tables are checked after a load.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use saiga_trials::witness::await_some;

use super::marked::{Marked, send};
use super::{ON_SQLITE, RUN};

/// While the file `slow` exists, the check after the load finds a FIFO in place of its props file.
const SLOW: &str = "[hooks]\n\
    after_run = \"test ! -e ${HERE}/slow || { mv ${HERE}/props \
    ${HERE}/whole && mkfifo ${HERE}/props; }\"\n";

/// Opens the FIFO for writing once a process has opened it and waits for data.
fn opened(pipe: &Path) -> Option<fs::File> {
    let is_pipe = fs::metadata(pipe).is_ok_and(|found| found.file_type().is_fifo());
    let mut options = fs::File::options();
    let file = is_pipe.then(|| {
        options
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(pipe)
    })?;
    file.map_err(|error| assert_eq!(error.raw_os_error(), Some(libc::ENXIO)))
        .ok()
}

#[test]
fn an_interrupted_check_keeps_the_run_and_resume_continues_after_it() {
    let test = Marked::new();
    let url = format!("jdbc:sqlite:{}", test.text("t.db"));
    let props = format!("conn={url}\nwarehouses=1\n{RUN}");
    fs::write(test.path("props"), props).unwrap();
    let built =
        test.said(&mut test.saiga(&["bench", "tpcc", "build", "--props", &test.text("props")]));
    assert_eq!(built.code, Some(0), "{built:?}");
    let text = ON_SQLITE
        .replace("\"6s\", \"--ramp-up\", \"200ms\"", "\"500ms\"")
        .replace("props = \"props\"", "props = \"props\"\ncheck = \"sample\"");
    fs::write(test.path("e.toml"), text + SLOW).unwrap();
    fs::write(test.path("slow"), "").unwrap();
    let (file, out) = (test.text("e.toml"), test.text("out"));
    let mut words = vec!["compare", &file, "--out", &out];
    let mut saiga = test.saiga(&words);
    let child = saiga
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _unwritten = await_some(
        || opened(&test.path("props")),
        || "the check does not begin".to_owned(),
    );
    send(&child, Signal::INT);
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{told}");
    assert!(
        told.contains("saiga: interrupted; the finished runs are in"),
        "{told}"
    );
    test.assert_nothing_left();
    let first = test.result().runs;
    let [run] = first.as_slice() else {
        panic!("{first:?}")
    };
    let why = "the tables were not checked after the run: interrupted";
    assert_eq!(run.rejected.as_deref(), Some(why));
    assert!(run.metrics["tpm_total"] > 0.0, "{run:?}");

    fs::remove_file(test.path("slow")).unwrap();
    fs::rename(test.path("whole"), test.path("props")).unwrap();
    words.push("--resume");
    let said = test.said(&mut test.saiga(&words));
    assert_eq!(said.code, Some(0), "{said:?}");
    let runs = test.result().runs;
    assert_eq!((runs.len(), &runs[0]), (3, run));
    assert!(
        runs[1..].iter().all(|run| run.rejected.is_none()),
        "{runs:?}"
    );
}
