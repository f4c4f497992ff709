//! The deviations of a run from TPC-C. Every result lists its deviations; `docs/tpcc.md` has a
//! table of all that are possible.

use super::record::Record;

/// Shortest measured interval of a publishable result, in seconds (§5.5.2.1).
const MIN_S: f64 = 7200.0;

/// Deviations of every run: clauses that Saiga does not fulfil or does not check.
const ALWAYS: [&str; 4] = [
    "New-Order computes neither the brand-generic field of a line nor the total of the order \
     (§2.4.2.2)",
    "terminals are threads without a screen: nothing is entered or displayed (§2.4.3)",
    "not checked: the 90th percentile of the response times of a type must be at least their mean \
     (§5.2.5.6)",
    "not checked: checkpoints, which the server controls, must be at most 30 minutes apart, and four \
     must lie in the measured interval (§5.5.2.2)",
];

/// The deviations of a run, as sentences.
#[must_use]
pub fn of(record: &Record) -> Vec<String> {
    let conditions = &record.conditions;
    let mut list = Vec::new();
    match conditions.pace.as_str() {
        "open" => list.push(
            "open loop: transactions start by a schedule, not after keying and think times (§5.2.5)".to_owned(),
        ),
        "human" if conditions.is_human() => {}
        "human" => list.push("keying and think times are shortened (§5.2.5)".to_owned()),
        _ => list.push(
            "no keying and think times (§5.2.5): the figure can only be compared with runs of the same kind".to_owned(),
        ),
    }
    if conditions.delivery_workers == 0 {
        list.push(
            "terminals perform their deliveries and wait for them, as in BenchmarkSQL 5 (§2.7.2 requires \
             a queue: --delivery queue)"
                .to_owned(),
        );
    }
    if !conditions.fixed_warehouse {
        list.push(
            "terminals draw a warehouse for each transaction (terminalWarehouseFixed=false; §2.4.1.1 \
             and §2.8.1.1 require a fixed one)"
                .to_owned(),
        );
    }
    let specified = u64::from(conditions.warehouses) * 10;
    if u64::from(conditions.terminals) < specified {
        list.push(format!(
            "{} terminals for {} warehouses; §4.2.1 specifies ten for each: {specified}",
            conditions.terminals, conditions.warehouses
        ));
    }
    if !conditions.isolation.is_empty()
        && !conditions.isolation.eq_ignore_ascii_case("serializable")
    {
        list.push(format!(
            "isolation level {}; §3.4.1 requires phantom protection for most pairs of transactions; \
             SELECT ... FOR UPDATE protects only the rows that it reads",
            conditions.isolation
        ));
    }
    if record.run.seconds < MIN_S {
        list.push(format!(
            "{:.0} s measured; §5.5.2.1 requires 120 minutes",
            record.run.seconds
        ));
    }
    list.extend(ALWAYS.map(str::to_owned));
    list
}
