//! Certificates of CAs that exist for one test, made by openssl.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A new key, of a kind that is made at once.
const KEY: [&str; 5] = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
];

/// Makes, in a folder: `ca.pem` and `other.pem`, the certificates of two CAs; `server.key` with
/// `server.pem`, which the first CA has signed for the name `localhost` alone; and `old.pem`, the
/// same key in a certificate of version 1, which has no names.
pub(crate) fn make(folder: &Path) {
    let run = |words: &[&[&str]]| {
        let words: Vec<&str> = words.concat();
        let mut command = Command::new("openssl");
        let output = command.args(&words).current_dir(folder).output();
        let output = output.expect("openssl is installed; tools/setup test");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {words:?}: {said}");
    };
    for name in ["ca", "other"] {
        let (key, pem) = (format!("{name}.key"), format!("{name}.pem"));
        let subject = format!("/CN={name} of a test");
        let own = ["req", "-x509", "-days", "2", "-subj", &subject];
        run(&[&own, &KEY, &["-keyout", &key, "-out", &pem]]);
    }
    let request = ["req", "-subj", "/CN=server of a test"];
    run(&[
        &request,
        &KEY,
        &["-keyout", "server.key", "-out", "server.csr"],
    ]);
    let names = "basicConstraints=CA:FALSE\nsubjectAltName=DNS:localhost\n";
    fs::write(folder.join("names"), names).expect("it can be written");
    let sign = ["x509", "-req", "-in", "server.csr", "-days", "2"];
    let by = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
    let extensions = ["-extfile", "names", "-out", "server.pem"];
    run(&[&sign, &by, &extensions]);
    run(&[&sign, &by, &["-out", "old.pem"]]);
}

/// A path in `folder` as a parameter of a URL has it.
pub(crate) fn path(folder: &Path, name: &str) -> String {
    let path: PathBuf = folder.join(name);
    path.to_str().expect("it is UTF-8").to_owned()
}
