//! Opens a page in headless Chromium and returns what a script measured in it.
//!
//! The page is a copy with two added scripts: the one at the top collects errors and blocked
//! requests, the one at the end measures and writes its findings into the document, which
//! `--dump-dom` prints. A test fails if Chromium is not installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// Much longer than a page takes on a busy machine; only a browser that hangs reaches it.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(90);

const ERRORS: &str = r"<script>
var probeErrors = [];
addEventListener('error', e => probeErrors.push(String(e.message || e.target.tagName)), true);
addEventListener('securitypolicyviolation', e => probeErrors.push('blocked ' + e.blockedURI));
</script>";

/// Writes the findings of the measuring script into the document.
const RECEIVER: &str = r"<script>addEventListener('message', e => {
    const out = document.createElement('script');
    out.type = 'application/json'; out.id = 'probe';
    out.textContent = e.data;
    document.documentElement.append(out);
});</script>";

const FINDINGS: &str = "<script type=\"application/json\" id=\"probe\">";

/// Size and colour scheme of a browser window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
}

/// A page after a browser has opened it.
pub(crate) struct Page {
    /// The value that the measuring script returned.
    pub(crate) findings: Value,
    /// Errors, blocked requests and console messages.
    pub(crate) errors: Vec<String>,
}

/// Opens `page` and evaluates `script`, the body of a function, after the page has loaded.
pub(crate) fn open_in_browser(page: &str, window: Window, script: &str) -> Page {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("report.html");
    let measure = format!(
        "<script>addEventListener('load', () => {{
            const found = (() => {{ {script} }})();
            const probe = JSON.stringify({{found, errors: probeErrors}});
            parent.postMessage(probe.replaceAll('<', '\\\\u003c'), '*');
        }});</script></body>"
    );
    let copy = page.replacen("<head>", &format!("<head>{ERRORS}{RECEIVER}"), 1);
    assert_eq!(copy.matches(ERRORS).count(), 1, "the page has one <head>");
    std::fs::write(&file, copy.replace("</body>", &measure)).expect("the page can be written");
    let file = framed(&file, window);
    let (stdout, stderr) = browse(&file, folder.path(), window);
    let found = stdout
        .split_once(FINDINGS)
        .and_then(|(_, rest)| rest.split_once("</script>"));
    let found = found.unwrap_or_else(|| panic!("Chromium printed no findings; it said:\n{stderr}"));
    let probe: Value = serde_json::from_str(found.0).expect("the findings are JSON");
    let errors = probe["errors"]
        .as_array()
        .expect("errors are a list")
        .iter();
    let console = stderr.lines().filter(|line| line.contains(":CONSOLE"));
    let errors = errors
        .map(Value::to_string)
        .chain(console.map(str::to_owned))
        .collect();
    Page {
        findings: probe["found"].clone(),
        errors,
    }
}

/// The file to open: `file`, or a page with `file` in a frame if `window` is narrower than
/// Chromium's windows can be.
fn framed(file: &Path, window: Window) -> PathBuf {
    const NARROWEST_WINDOW: u32 = 500;
    if window.width >= NARROWEST_WINDOW {
        return file.to_owned();
    }
    let frame = format!(
        "<!DOCTYPE html><head>{RECEIVER}</head><body>\
         <iframe src=\"report.html\" width=\"{}\" height=\"{}\" style=\"border:0\"></iframe></body>",
        window.width, window.height
    );
    let outer = file.with_file_name("frame.html");
    std::fs::write(&outer, frame).expect("the frame can be written");
    outer
}

fn browse(file: &Path, folder: &Path, window: Window) -> (String, String) {
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
    ]);
    command.args([
        "--no-first-run",
        "--disable-background-networking",
        "--disable-sync",
    ]);
    command.args(["--disable-component-update", "--enable-logging=stderr"]);
    command.args(["--hide-scrollbars", "--dump-dom"]);
    // Blink numbers its colour schemes: 0 is dark, 1 is light.
    let scheme = if window.dark { 0 } else { 1 };
    command.arg(format!("--blink-settings=preferredColorScheme={scheme}"));
    command.arg(format!("--window-size={},{}", window.width, window.height));
    command.arg(format!(
        "--user-data-dir={}",
        folder.join("profile").display()
    ));
    command.arg(format!("file://{}", file.display()));
    command
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| {
        panic!(
            "cannot start `chromium` ({error}): the report is tested in a real browser; \
             `apt-get install -y chromium`, or `make test`, which does it"
        )
    });
    let (done, finished) = mpsc::channel();
    let [mut out, mut err]: [Box<dyn std::io::Read + Send>; 2] = [
        Box::new(child.stdout.take().expect("stdout is piped")),
        Box::new(child.stderr.take().expect("stderr is piped")),
    ];
    let errors = thread::spawn(move || {
        let mut bytes = Vec::new();
        err.read_to_end(&mut bytes)
            .map(|_| String::from_utf8_lossy(&bytes).into_owned())
    });
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = out.read_to_end(&mut bytes);
        done.send(read.map(|_| String::from_utf8_lossy(&bytes).into_owned()))
    });
    let stdout = finished.recv_timeout(BROWSER_TIMEOUT);
    if stdout.is_err() {
        child.kill().expect("our own child can be killed");
    }
    child.wait().expect("our own child can be waited for");
    let stderr = errors
        .join()
        .expect("the reader ends")
        .expect("stderr is readable");
    let stdout = stdout.unwrap_or_else(|_| panic!("Chromium hung; it said:\n{stderr}"));
    (stdout.expect("stdout is readable"), stderr)
}
