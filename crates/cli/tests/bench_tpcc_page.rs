//! The HTML pages of `saiga bench tpcc run` and `merge`, in a browser.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

#[path = "../../measure/report/tests/support/mod.rs"]
mod browser;
mod support;
use browser::{Window, open_in_browser};
use support::{Installation, said, text};

/// A valid file name that is markup: it runs a script if the page does not escape it.
const DATABASE: &str = "t'\"><img src=x onerror=window.evil=1>.db";
const USER: &str = "</style></script><script>window.evil=1</script>";

/// A database whose name and user contain markup.
struct Bench {
    saiga: Installation,
}

impl Bench {
    fn built() -> Self {
        let bench = Self {
            saiga: Installation::bare(),
        };
        let database = bench.saiga.path(DATABASE);
        let props = format!(
            "conn=jdbc:sqlite:{}\nuser={USER}\npassword=PWbmsql\nwarehouses=1\nterminals=3\n\
             limitTxnsPerMin=0\nrunTxnsPerTerminal=40\nrunMins=0\n",
            database.display()
        );
        fs::write(bench.saiga.path("props"), props).unwrap();
        let built = said(&mut bench.step("build", &[]));
        assert_eq!(built.code, Some(0), "{built:?}");
        assert!(database.is_file());
        bench
    }

    fn step(&self, step: &str, more: &[&str]) -> Command {
        let props = self.saiga.path("props");
        let mut command = self
            .saiga
            .saiga(&["bench", "tpcc", step, "--props", text(&props)]);
        command.args(more);
        command
    }
}

/// The visible text of the page in a result directory, and the record beside it.
fn opened(out: &Path) -> (String, Value) {
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    let script = "
        const parts = [...document.querySelectorAll('header, main, footer')];
        const foreign = document.querySelectorAll('img, iframe, base, link, [onerror]').length;
        return {text: parts.map(e => e.textContent).join(' '), foreign, evil: 'evil' in window};
    ";
    let window = Window {
        width: 1280,
        height: 900,
        dark: false,
    };
    let seen = open_in_browser(&page, window, script);
    assert_eq!(seen.errors, Vec::<String>::new());
    assert_eq!(
        (&seen.findings["foreign"], &seen.findings["evil"]),
        (&Value::from(0), &Value::from(false))
    );
    let told = seen.findings["text"].as_str().unwrap().to_owned();
    assert!(!told.contains("PWbmsql"), "{told}");
    let record = fs::read_to_string(out.join("result.json")).unwrap();
    (told, serde_json::from_str(&record).unwrap())
}

fn tells(page: &str, part: &str) {
    assert!(page.contains(part), "{part} in {page}");
}

#[test]
fn a_run_leaves_a_page_with_the_figures_of_its_record() {
    let bench = Bench::built();
    let out = bench.saiga.path("out");
    let run = said(&mut bench.step("run", &["--no-check", "--seed", "4", "--out", text(&out)]));
    assert_eq!(run.code, Some(0), "{run:?}");
    let (page, record) = opened(&out);
    for name in [DATABASE, USER] {
        tells(&page, name);
    }
    let number = |value: &Value| value.as_f64().unwrap();
    let metrics = &record["run"]["metrics"];
    tells(
        &page,
        &format!("{:.2}", number(&metrics["tpmc_no_think_time"])),
    );
    for (name, value) in metrics.as_object().unwrap() {
        tells(&page, &format!("{name}{}", number(value)));
    }
    let detail = &record["run"]["detail"];
    let transactions = detail["transactions"].as_array().unwrap();
    assert_eq!(transactions.len(), 5);
    for one in transactions {
        let name = one["name"].as_str().unwrap();
        let share = number(&one["share_percent"]);
        let p50 = number(&one["p50_ms"]);
        let p90 = number(&one["p90_ms"]);
        let count = &one["count"];
        tells(&page, &format!("{name}{count}{share:.2}{p50:.2}{p90:.2}"));
    }
    for check in record["validity"].as_array().unwrap() {
        tells(&page, check["found"].as_str().unwrap());
    }
    for deviation in record["deviations"].as_array().unwrap() {
        tells(&page, deviation.as_str().unwrap());
    }
}

#[test]
fn the_page_of_a_sum_names_a_missing_worker() {
    let bench = Bench::built();
    let (parts, out) = (bench.saiga.path("parts"), bench.saiga.path("out"));
    let soon = SystemTime::now() + Duration::from_secs(8);
    let at = format!("@{}", soon.duration_since(UNIX_EPOCH).unwrap().as_secs());
    let worker = ["--worker", "1/2", "--seed", "4", "--start-at", &at];
    let words = [&worker[..], &["--out", text(&parts)]].concat();
    let run = said(&mut bench.step("run", &words));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!parts.join("report.html").exists());
    let merge = ["bench", "tpcc", "merge", text(&parts), "--out", text(&out)];
    let merged = said(&mut bench.saiga.saiga(&merge));
    assert_eq!(merged.code, Some(1), "{merged:?}");
    let (page, record) = opened(&out);
    tells(
        &page,
        "Partial: worker 2 of 2 is missing; the figures are those of 2 of 3 terminals",
    );
    tells(&page, "2MISSING");
    let partial = &record["run"]["metrics"]["tpmc_partial"];
    let partial = partial.as_f64().unwrap();
    tells(&page, &format!("{partial:.2}"));
    tells(&page, &format!("tpmc_partial{partial}"));
}
