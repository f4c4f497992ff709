//! Where a run is not as the specification wants it: said with every result.
//!
//! `docs/tpcc.md` has a table of them.

use super::record::Record;

/// The shortest measured interval of a publishable run, in seconds (§5.5.2.1).
const LEAST_S: f64 = 7200.0;

/// Clauses that no run follows, or that are not checked.
const ALWAYS: [&str; 4] = [
    "New-Order works out neither the brand-generic field of a line nor the total of the order \
     (§2.4.2.2)",
    "terminals are threads without a screen: nothing is entered or shown (§2.4.3)",
    "not checked: the 90th percentile of the response times of a type is at least their mean \
     (§5.2.5.6)",
    "checkpoints are the server's own: not checked that none is more than 30 minutes after the one \
     before it, and that four are in the measured interval (§5.5.2.2)",
];

/// All of them, in plain words.
#[must_use]
pub fn of(record: &Record) -> Vec<String> {
    let conditions = &record.conditions;
    let mut list = Vec::new();
    match conditions.pace.as_str() {
        "open" => list.push(
            "open loop: transactions begin by a schedule, not after keying and think times (§5.2.5)".to_owned(),
        ),
        "human" if conditions.is_human() => {}
        "human" => list.push("keying and think times are shortened (§5.2.5)".to_owned()),
        _ => list.push(
            "no keying and think times (§5.2.5): the figure compares with the same kind only".to_owned(),
        ),
    }
    if conditions.delivery_workers == 0 {
        list.push(
            "deliveries are carried out by the terminals, which wait for them, as in BenchmarkSQL 5 \
             (§2.7.2 wants a queue: --delivery queue)"
                .to_owned(),
        );
    }
    if !conditions.fixed_warehouse {
        list.push(
            "terminals draw a warehouse for each transaction (terminalWarehouseFixed=false; §2.4.1.1 \
             and §2.8.1.1 want a fixed one)"
                .to_owned(),
        );
    }
    let places = u64::from(conditions.warehouses) * 10;
    if u64::from(conditions.terminals) < places {
        list.push(format!(
            "{} terminals for {} warehouses; §4.2.1 has ten for each: {places}",
            conditions.terminals, conditions.warehouses
        ));
    }
    if !conditions.isolation.is_empty()
        && !conditions.isolation.eq_ignore_ascii_case("serializable")
    {
        list.push(format!(
            "isolation level {}; §3.4.1 wants phantom protection for most pairs of transactions, which \
             SELECT ... FOR UPDATE gives for the rows it reads only",
            conditions.isolation
        ));
    }
    if record.run.seconds < LEAST_S {
        list.push(format!(
            "{:.0} s measured; §5.5.2.1 wants 120 minutes",
            record.run.seconds
        ));
    }
    list.extend(ALWAYS.map(str::to_owned));
    list
}
