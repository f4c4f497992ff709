//! Unusual histories: almost no writes, resets between all samples, a clock that was set back.

use super::*;

const GB: u128 = 1_000_000_000;

fn text_of(samples: &[Sample]) -> String {
    text::render(&document(&series(samples), 24), text::Style::plain())
}

fn html_of(samples: &[Sample]) -> String {
    html::render(&document(&series(samples), 24))
}

/// Returns the number at the top of the factor's axis.
fn top_of_plot(samples: &[Sample]) -> f64 {
    let page = html_of(samples);
    let (_, rest) = page.split_once("<span class=\"top\"").unwrap();
    let (_, rest) = rest.split_once('>').unwrap();
    rest.split_once('<').unwrap().0.parse().unwrap()
}

/// Creates samples of ten busy hours with a factor of 2, then of an hour with these writes.
fn then_an_hour_of(steps: Steps, host: u128, media: u128) -> Vec<Sample> {
    let busy = |hour: u8| {
        let host = 100 * GB * u128::from(hour);
        sample(hour.into(), "S1", host, 2 * host)
    };
    let mut samples: Vec<Sample> = (0..=10).map(busy).collect();
    samples.push(sample(11, "S1", 1000 * GB + host, 2000 * GB + media));
    for sample in &mut samples {
        sample.steps = steps;
    }
    samples
}

#[test]
fn a_single_step_of_host_writes_does_not_flatten_the_plot() {
    let steps = Steps {
        host: GB,
        media: GB,
    };
    let samples = then_an_hour_of(steps, GB, 2 * GB);
    let page = text_of(&samples);
    assert!(page.contains("0.500 or more"), "{page}");
    assert!(top_of_plot(&samples) < 3.0);
    let all = series(&samples);
    let value: serde_json::Value = serde_json::from_str(&json(&all).unwrap()).unwrap();
    let last = &value["drives"][0]["segments"][0]["intervals"][10];
    assert_eq!((&last["waf"], &last["waf_high"]), (&2.0.into(), &().into()));
    let metrics = prometheus(&all);
    let high = |line: &&str| line.contains("_high_ratio{") && line.contains("\"interval\"");
    let high = metrics.lines().find(high).unwrap();
    assert!(high.ends_with(" +Inf"), "{high}");
}

/// Ten gigabytes of garbage collection for 4 KiB: a factor of millions.
#[test]
fn an_almost_idle_hour_does_not_flatten_the_plot() {
    let samples = then_an_hour_of(Steps { host: 1, media: 1 }, 4096, 10 * GB);
    assert!(text_of(&samples).contains("2441406.250"));
    assert!(top_of_plot(&samples) < 3.0);
    let page = html_of(&samples);
    assert!(page.contains("not drawn: 1 of 11 factors"), "{page}");
}

#[test]
fn unmeasured_windows_are_not_idle() {
    let reset = [
        sample(1, "S1", 10 * GIB, 20 * GIB),
        sample(2, "S1", GIB, GIB),
    ];
    let page = text_of(&reset);
    let sentence = "No two of 2 samples have continuous counters, so there is no factor.";
    assert!(page.contains(sentence), "{page}");
    assert!(!page.contains("idle"), "{page}");
    // One sample after the reset.
    let before = sample(0, "S1", 5 * GIB, 10 * GIB);
    let all = [&[before][..], &reset].concat();
    let page = text_of(&all);
    assert!(page.contains("2.000") && page.contains('–'), "{page}");
    assert!(!page.contains("idle"), "{page}");
    assert!(!html_of(&all).contains("idle,"));
}

/// The clock was set back: 100 GiB in an unknown time, then 1 GiB in an hour.
#[test]
fn rates_are_of_intervals_with_a_known_length() {
    let mut samples = [
        sample(0, "S1", 0, 0),
        sample(5, "S1", 100 * GIB, 200 * GIB),
        sample(6, "S1", 101 * GIB, 202 * GIB),
    ];
    for one in &mut samples[1..] {
        one.taken.boot = "b".to_owned();
        one.taken.unix_ms -= 20 * 3_600_000;
    }
    let page = text_of(&samples);
    assert!(
        page.contains("2026-11-21 09:00 to 2026-11-22 00:00 UTC"),
        "{page}"
    );
    let page = html_of(&samples);
    assert!(page.contains("mean: host 1.0, flash 2.0"), "{page}");
    // Without any known length there is no rate.
    let page = html_of(&samples[..2]);
    assert!(!page.contains("GiB per hour"), "{page}");
}
