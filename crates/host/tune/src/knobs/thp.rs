//! Transparent huge pages. Each file has its own value and is restored to it.

use crate::about::{Risk, Stage};
use crate::form::Form;
use crate::goal::Engine;
use crate::knob::{Context, Domain, Knob, Place};
use crate::target::Target;

const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";
const REASON: &str = "Allocation of a huge page may stall a query, and a fork copies 2 MiB for \
                      one changed byte.";

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "thp.enabled",
        purpose: "which memory gets huge pages automatically",
        reason: REASON,
        source: "procedure 004; redis.io/docs: latency; Linux admin-guide/mm/transhuge.rst",
        effect: "lower latency tail; existing huge pages stay until the database restarts; \
                 slows JVMs",
        default: "never for MySQL, openGauss and Redis; madvise instead of always for PostgreSQL",
        risk: Risk::Restart,
        domain: Domain::Words(&["always", "madvise", "never"]),
        propose: word,
        ..Knob::by(|_| file(ENABLED), Stage::Memory)
    },
    Knob {
        id: "thp.defrag",
        purpose: "whether an allocation waits for a huge page",
        reason: REASON,
        source: "procedure 004; Linux admin-guide/mm/transhuge.rst",
        effect: "lower latency tail; none if thp.enabled is never",
        default: "madvise instead of always for PostgreSQL",
        domain: Domain::Words(&["always", "defer", "defer+madvise", "madvise", "never"]),
        propose: |context, place| {
            let enabled = context.readings.raw(&target(ENABLED)).unwrap_or_default();
            let is_never = Form::Bracketed.value(enabled) == "never";
            instead_of_always(context, place).filter(|_| !is_never)
        },
        ..Knob::by(|_| file(DEFRAG), Stage::Memory)
    },
    Knob {
        id: "thp.khugepaged_defrag",
        purpose: "whether the kernel's thread compacts memory for huge pages",
        reason: "Compaction takes locks of the process whose memory it moves.",
        source: "Linux admin-guide/mm/transhuge.rst",
        effect: "none if thp.enabled is never",
        domain: Domain::Number(0, 1),
        ..Knob::memory("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag")
    },
];

fn file(path: &str) -> Vec<Place> {
    vec![Place {
        instance: None,
        target: target(path),
        coupled: Vec::new(),
    }]
}

fn target(path: &str) -> Target {
    Target::file(path, Form::Bracketed)
}

fn word(context: &Context, place: &Place) -> Option<String> {
    let engines = [Engine::Mysql, Engine::OpenGauss, Engine::Redis];
    if context.serves_any(&engines) {
        return Some("never".to_owned());
    }
    instead_of_always(context, place)
}

/// PostgreSQL asks for no such pages: `never` is as good.
fn instead_of_always(context: &Context, place: &Place) -> Option<String> {
    let raw = context.readings.raw(&place.target)?;
    let is_always = place.target.form().value(raw) == "always";
    (is_always && context.serves_any(&[Engine::Postgres])).then(|| "madvise".to_owned())
}
