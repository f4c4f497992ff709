//! `/proc/meminfo` and `/proc/vmstat`: memory and paging.
//!
//! Only a few of the many lines are used, so the reader looks for these and parses no others.

use crate::rate::RateMeter;
use crate::table::{Column, Table};

use super::text::Files;

const GAUGES_KB: [(&str, &str); 9] = [
    ("MemTotal:", "mem_total_kb"),
    ("MemFree:", "mem_free_kb"),
    ("MemAvailable:", "mem_available_kb"),
    ("Buffers:", "mem_buffers_kb"),
    ("Cached:", "mem_cached_kb"),
    ("Dirty:", "mem_dirty_kb"),
    ("Writeback:", "mem_writeback_kb"),
    ("AnonHugePages:", "mem_anon_huge_kb"),
    ("SwapTotal:", "swap_total_kb"),
];

const COUNTERS: [(&str, &str); 8] = [
    ("pgfault", "page_faults_s"),
    ("pgmajfault", "major_faults_s"),
    ("pgpgin", "page_in_kb_s"),
    ("pgpgout", "page_out_kb_s"),
    ("pswpin", "swap_in_pages_s"),
    ("pswpout", "swap_out_pages_s"),
    ("numa_miss", "numa_miss_pages_s"),
    ("numa_other", "numa_other_pages_s"),
];

/// Reader of both files.
#[derive(Debug)]
pub(crate) struct Memory {
    gauges: [Column; GAUGES_KB.len()],
    swap_used: Column,
    counters: [(Column, RateMeter); COUNTERS.len()],
}

impl Memory {
    pub(crate) fn new(table: &mut Table) -> Self {
        Self {
            gauges: GAUGES_KB.map(|(_, name)| table.column(name)),
            swap_used: table.column("swap_used_kb"),
            counters: COUNTERS.map(|(_, name)| (table.column(name), RateMeter::default())),
        }
    }

    pub(crate) fn sample(&mut self, at_s: f64, files: &mut Files, table: &mut Table) {
        let text = files.proc("meminfo").unwrap_or_default();
        let values = find(text, GAUGES_KB.map(|(word, _)| word));
        for (column, value) in self.gauges.iter().zip(values) {
            table.put(*column, value.map(|kb| kb as f64));
        }
        let [free] = find(text, ["SwapFree:"]);
        let total = values[GAUGES_KB.len() - 1];
        let used = total
            .zip(free)
            .and_then(|(total, free)| total.checked_sub(free));
        table.put(self.swap_used, used.map(|kb| kb as f64));

        let text = files.proc("vmstat").unwrap_or_default();
        let values = find(text, COUNTERS.map(|(word, _)| word));
        for ((column, meter), value) in self.counters.iter_mut().zip(values) {
            table.put(*column, meter.rate(at_s, value));
        }
    }
}

/// For each of `words`, the number in the line that begins with this word.
fn find<const N: usize>(text: &str, words: [&str; N]) -> [Option<u64>; N] {
    let mut values = [None; N];
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some(word), Some(number)) = (fields.next(), fields.next()) else {
            continue;
        };
        if let Some(index) = words.iter().position(|wanted| *wanted == word) {
            values[index] = number.parse().ok();
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::super::testing::Host;
    use super::*;

    #[test]
    fn memory_is_in_kilobytes_and_paging_in_rates() {
        let host = Host::new();
        host.proc(
            "meminfo",
            "MemTotal: 24684084 kB\nCached: 7 kB\nSwapCached: 8 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n",
        );
        host.proc("vmstat", "pgpgin 100\npgfault 4000000000\npgfaultx 3\n");
        let mut table = Table::default();
        let mut memory = Memory::new(&mut table);
        let mut files = host.files();
        memory.sample(0.0, &mut files, &mut table);
        host.proc("vmstat", "pgpgin 300\npgfault 5\n");
        memory.sample(2.0, &mut files, &mut table);
        for (name, value) in [
            ("mem_total_kb", Some(24_684_084.0)),
            ("mem_cached_kb", Some(7.0)),
            ("mem_free_kb", None),
            ("swap_used_kb", Some(6.0)),
            ("page_in_kb_s", Some(100.0)),
            ("page_faults_s", None), // The counter has decreased.
            ("numa_miss_pages_s", None),
        ] {
            assert_eq!(host.cell(&table, name), value, "{name}");
        }
    }
}
