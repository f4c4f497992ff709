//! Text for metrics, verdicts, times and counts.

use saiga_experiment::result::{Better, Comparison, Verdict};

use saiga_document::model::Tone;

/// The words with which a report speaks of a metric.
pub(crate) struct MetricNames {
    /// Heading: `Throughput`, `Server CPU per operation`.
    pub(crate) title: String,
    /// Verdict on an arm with a better value: `faster`.
    pub(crate) better: &'static str,
    /// Verdict on an arm with a worse value: `slower`.
    pub(crate) worse: &'static str,
    /// Continues "7.9×": `the throughput`, `less server CPU per operation`.
    pub(crate) gain: String,
}

impl MetricNames {
    /// The title within a sentence, in lower case: `server CPU per operation`.
    pub(crate) fn in_sentence(&self) -> String {
        let mut letters = self.title.chars();
        let first: String = letters
            .next()
            .into_iter()
            .flat_map(char::to_lowercase)
            .collect();
        format!("{first}{}", letters.as_str())
    }
}

/// The words for a metric of `result.json`; an unknown metric keeps its name, with spaces.
pub(crate) fn metric(name: &str) -> MetricNames {
    let known = |title: &str, better, worse, gain: &str| MetricNames {
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
        "server_host_cpu_us_per_op" => less_of("server host CPU per operation"),
        "gateway_cpu_us_per_op" => less_of("gateway CPU per operation"),
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

/// Memory per idle connection of the `server` or `client` side.
fn memory(side: &str) -> MetricNames {
    less_of(&format!("{side} memory per idle connection"))
}

/// A quantity of which less is better.
fn less_of(quantity: &str) -> MetricNames {
    MetricNames {
        title: heading(quantity),
        better: "less",
        worse: "more",
        gain: format!("less {quantity}"),
    }
}

fn unknown(name: &str) -> MetricNames {
    let title = name.replace('_', " ");
    MetricNames {
        gain: format!("better {title}"),
        title,
        better: "better",
        worse: "worse",
    }
}

/// The unit that the suffix of a metric's name stands for; empty without a known suffix.
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

/// The verdict after correction for the number of comparisons.
pub(crate) fn corrected_verdict(comparison: &Comparison) -> Verdict {
    match comparison.holds_corrected {
        Some(false) => Verdict::NoDifferenceShown,
        Some(true) | None => comparison.verdict,
    }
}

/// Whether the correction for the number of comparisons changes the verdict.
pub(crate) fn is_uncorrected(comparison: &Comparison) -> bool {
    comparison.verdict != corrected_verdict(comparison)
}

/// The verdict in words, with its tone.
pub(crate) fn verdict(comparison: &Comparison) -> (String, Tone) {
    let names = metric(&comparison.metric);
    if comparison.ratio.has_too_few_pairs() {
        return ("too few pairs to tell".to_owned(), Tone::Neutral);
    }
    let (word, tone) = match comparison.verdict {
        Verdict::Faster => (names.better, Tone::Better),
        Verdict::Slower => (names.worse, Tone::Worse),
        Verdict::NoDifferenceShown => return ("no difference shown".to_owned(), Tone::Neutral),
    };
    if is_uncorrected(comparison) {
        (format!("{word}, uncorrected"), Tone::Caution)
    } else {
        (word.to_owned(), tone)
    }
}

/// Labels for the ends of an axis of ratios: the meaning of ratios below 1 and above 1.
pub(crate) fn axis_ends(name: &str, better: Better, subject: &str) -> [(String, Tone); 2] {
    let names = metric(name);
    let good = (format!("{subject} {}", names.better), Tone::Better);
    let bad = (format!("{subject} {}", names.worse), Tone::Worse);
    match better {
        Better::Higher => [bad, good],
        Better::Lower => [good, bad],
    }
}

/// How many times better B is than A: the ratio, inverted for metrics of which less is better.
pub(crate) fn gain(comparison: &Comparison) -> f64 {
    match comparison.better {
        Better::Higher => comparison.ratio.median,
        Better::Lower => 1.0 / comparison.ratio.median,
    }
}

/// A count with a noun or verb phrase that agrees with it: `1 run`, `3 runs`.
pub(crate) fn count(number: usize, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

/// A name in snake case as a heading: `NUMA nodes`.
pub(crate) fn heading(name: &str) -> String {
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

/// The name of an experiment in a title: `Redis`, `SQL`.
pub(crate) fn experiment_title(name: &str) -> String {
    match name {
        "sql" => "SQL".to_owned(),
        "tpcc" => "TPC-C".to_owned(),
        other => heading(other),
    }
}

/// A time as `2026-11-20 14:02:11 UTC`; text that is not RFC 3339 in UTC stays as it is.
pub(crate) fn timestamp(rfc3339: &str) -> String {
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
    fn times_are_readable_and_other_text_stays() {
        assert_eq!(timestamp("2026-11-20T14:02:11Z"), "2026-11-20 14:02:11 UTC");
        for text in ["", "Z", "T", "TZ", "yesterday", "µTµ"] {
            assert!(
                timestamp(text).contains(text.trim_matches(['T', 'Z'])),
                "{text}"
            );
        }
    }

    #[test]
    fn experiments_have_the_names_of_their_field() {
        let names = ["redis", "sql", "tpcc", "my_own"].map(experiment_title);
        assert_eq!(names, ["Redis", "SQL", "TPC-C", "My own"]);
    }
}
