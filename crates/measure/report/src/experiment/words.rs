//! Words for metrics, verdicts, moments and counts.

use saiga_experiment::result::{Better, Comparison, Verdict};

use saiga_document::model::Tone;

/// A metric as people call it.
pub(crate) struct Metric {
    /// `Throughput`, `Server CPU per operation`.
    pub(crate) title: String,
    /// What B is when it does better, and worse: `faster`, `slower`.
    pub(crate) better: &'static str,
    pub(crate) worse: &'static str,
    /// Ends "7.9 times ...": `the throughput`, `less server CPU per operation`.
    pub(crate) gain: String,
}

impl Metric {
    /// The title inside a sentence: `server CPU per operation`.
    pub(crate) fn inside(&self) -> String {
        let mut letters = self.title.chars();
        let first: String = letters
            .next()
            .into_iter()
            .flat_map(char::to_lowercase)
            .collect();
        format!("{first}{}", letters.as_str())
    }
}

/// Names a metric; the name of an unknown one is taken apart.
pub(crate) fn metric(name: &str) -> Metric {
    let known = |title: &str, better, worse, gain: &str| Metric {
        title: title.to_owned(),
        better,
        worse,
        gain: gain.to_owned(),
    };
    match name {
        "throughput_ops_s" => known("Throughput", "faster", "slower", "the throughput"),
        "tpmc_no_think_time" => known("tpmC (no think time)", "faster", "slower", "the throughput"),
        "tpmc" => known("tpmC", "faster", "slower", "the throughput"),
        "latency_p95_us" => known("95 % latency", "shorter", "longer", "shorter 95 % latency"),
        "latency_p50_us" => known(
            "Median latency",
            "shorter",
            "longer",
            "shorter median latency",
        ),
        "latency_p99_us" => known("99 % latency", "shorter", "longer", "shorter 99 % latency"),
        "latency_p999_us" => known(
            "99.9 % latency",
            "shorter",
            "longer",
            "shorter 99.9 % latency",
        ),
        "server_cpu_us_per_op" => known(
            "Server CPU per operation",
            "less CPU",
            "more CPU",
            "less server CPU per operation",
        ),
        "client_cpu_us_per_op" => known(
            "Client CPU per operation",
            "less CPU",
            "more CPU",
            "less client CPU per operation",
        ),
        "total_cpu_us_per_op" => known(
            "Server and client CPU per operation",
            "less CPU",
            "more CPU",
            "less CPU per operation",
        ),
        "without_service_s" => known(
            "Time without service",
            "shorter",
            "longer",
            "shorter time without service",
        ),
        "acknowledged_writes" => known("Acknowledged writes", "more", "fewer", "more writes"),
        "lost_writes" => known(
            "Acknowledged writes lost",
            "fewer",
            "more",
            "fewer writes lost",
        ),
        "idle_connections" => known("Idle connections", "more", "fewer", "more idle connections"),
        "server_rss_per_idle_bytes" => memory("server"),
        "client_rss_per_idle_bytes" => memory("client"),
        "waf" => less_of("write amplification"),
        "hit_share" => known(
            "Share of GETs that found their key",
            "more",
            "fewer",
            "more hits",
        ),
        other => unknown(other),
    }
}

/// What an idle connection holds on one side.
fn memory(side: &str) -> Metric {
    less_of(&format!("{side} memory per idle connection"))
}

/// Something of which less is better.
fn less_of(what: &str) -> Metric {
    Metric {
        title: spaced(what),
        better: "less",
        worse: "more",
        gain: format!("less {what}"),
    }
}

fn unknown(name: &str) -> Metric {
    let title = name.replace('_', " ");
    Metric {
        gain: format!("better {title}"),
        title,
        better: "better",
        worse: "worse",
    }
}

/// The unit that ends the name of a metric.
pub(crate) fn unit(metric: &str) -> &'static str {
    const SUFFIXES: [(&str, &str); 9] = [
        ("_ops_s", "ops/s"),
        ("_us_per_op", "µs/op"),
        ("_us", "µs"),
        ("_ms", "ms"),
        ("_ns", "ns"),
        ("_s", "s"),
        ("_bytes", "bytes"),
        ("_kib", "KiB"),
        ("_per_op", "per operation"),
    ];
    SUFFIXES
        .iter()
        .find(|(suffix, _)| metric.ends_with(suffix))
        .map_or("", |(_, unit)| unit)
}

/// What a comparison concludes, corrected for the number of comparisons.
pub(crate) fn outcome(comparison: &Comparison) -> Verdict {
    match comparison.holds_corrected {
        Some(false) => Verdict::NoDifferenceShown,
        Some(true) | None => comparison.verdict,
    }
}

/// Whether a verdict only holds as long as one looks at nothing else.
pub(crate) fn is_uncorrected(comparison: &Comparison) -> bool {
    comparison.verdict != outcome(comparison)
}

/// What a comparison concludes, in words and as a tone.
pub(crate) fn verdict(comparison: &Comparison) -> (String, Tone) {
    let words = metric(&comparison.metric);
    if comparison.ratio.has_too_few_pairs() {
        return ("too few pairs to tell".to_owned(), Tone::Neutral);
    }
    let (word, tone) = match comparison.verdict {
        Verdict::Faster => (words.better, Tone::Better),
        Verdict::Slower => (words.worse, Tone::Worse),
        Verdict::NoDifferenceShown => return ("no difference shown".to_owned(), Tone::Neutral),
    };
    if is_uncorrected(comparison) {
        (format!("{word}, uncorrected"), Tone::Caution)
    } else {
        (word.to_owned(), tone)
    }
}

/// What a ratio below 1 and above 1 means.
pub(crate) fn ends(name: &str, better: Better, subject: &str) -> [(String, Tone); 2] {
    let words = metric(name);
    let good = (format!("{subject} {}", words.better), Tone::Better);
    let bad = (format!("{subject} {}", words.worse), Tone::Worse);
    match better {
        Better::Higher => [bad, good],
        Better::Lower => [good, bad],
    }
}

/// How many times better B is: the ratio, turned round where less is better.
pub(crate) fn gain(comparison: &Comparison) -> f64 {
    match comparison.better {
        Better::Higher => comparison.ratio.median,
        Better::Lower => 1.0 / comparison.ratio.median,
    }
}

/// `1 run`, `3 runs`.
pub(crate) fn count(number: usize, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

/// A name with underscores as words: `NUMA nodes`.
pub(crate) fn spaced(name: &str) -> String {
    if name == "numa_nodes" {
        return "NUMA nodes".to_owned();
    }
    let mut letters = name.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}", letters.as_str().replace('_', " "))
}

/// What an experiment is about: `Redis`, `SQL`.
pub(crate) fn experiment(name: &str) -> String {
    if name == "sql" {
        return "SQL".to_owned();
    }
    spaced(name)
}

/// A moment as people read it: `2026-11-20 14:02:11 UTC`; another form stays as it is.
pub(crate) fn moment(rfc3339: &str) -> String {
    match (rfc3339.split_once('T'), rfc3339.strip_suffix('Z')) {
        (Some((day, _)), Some(whole)) if whole.len() > day.len() => {
            format!("{day} {} UTC", &whole[day.len() + 1..])
        }
        _ => rfc3339.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_readable_and_nonsense_survives() {
        assert_eq!(moment("2026-11-20T14:02:11Z"), "2026-11-20 14:02:11 UTC");
        for text in ["", "Z", "T", "TZ", "yesterday", "µTµ"] {
            assert!(
                moment(text).contains(text.trim_matches(['T', 'Z'])),
                "{text}"
            );
        }
    }
}
