//! How values of a kernel depend on each other: the traps that a fake host has.

use std::collections::BTreeMap;
use std::io;

use saiga_tune::form::cpus;

pub(crate) type Values = BTreeMap<String, String>;

pub(crate) fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

const COUPLED: [(&str, &str); 4] = [
    ("dirty_bytes", "dirty_ratio"),
    ("dirty_ratio", "dirty_bytes"),
    ("dirty_background_bytes", "dirty_background_ratio"),
    ("dirty_background_ratio", "dirty_background_bytes"),
];

/// Writes a file as a kernel does, with what else changes.
pub(crate) fn write_file(values: &mut Values, path: &str, text: &str) -> io::Result<()> {
    if !values.contains_key(path) {
        return Err(errno(libc::ENOENT));
    }
    let (folder, name) = path.rsplit_once('/').unwrap();
    let set = |values: &mut Values, path: String, text: String| {
        if let Some(value) = values.get_mut(&path) {
            *value = format!("{text}\n");
        }
    };
    if let Some((_, other)) = COUPLED.iter().find(|(one, _)| *one == name) {
        if text.parse::<u64>().map_err(|_| errno(libc::EINVAL))? == 0 {
            return Err(errno(libc::EINVAL));
        }
        set(values, format!("{folder}/{other}"), "0".to_owned());
        set(values, path.to_owned(), text.to_owned());
        return Ok(());
    }
    match name {
        "scheduler" | "enabled" | "defrag" if values[path].contains('[') => {
            let mut list = choose(&values[path], text)?;
            if name == "scheduler" {
                // As the kernel prints it.
                list.push(' ');
                let (requests, latency) = match text {
                    "none" => ("1023", "2000"),
                    "bfq" => ("256", "0"),
                    _ => ("256", "2000"),
                };
                set(values, format!("{folder}/nr_requests"), requests.to_owned());
                set(values, format!("{folder}/wbt_lat_usec"), latency.to_owned());
            }
            set(values, path.to_owned(), list);
        }
        "features" | "sched_features" => {
            let other = text
                .strip_prefix("NO_")
                .map_or(format!("NO_{text}"), str::to_owned);
            let words = values[path].split_whitespace();
            let words = words.map(|word| if word == other { text } else { word });
            let list = words.collect::<Vec<_>>().join(" ");
            if !list.split(' ').any(|word| word == text) {
                return Err(errno(libc::EINVAL));
            }
            set(values, path.to_owned(), list);
        }
        "nr_hugepages" => hugepages(values, path, text)?,
        "rps_sock_flow_entries" | "rps_flow_cnt" => {
            let number: u64 = text.parse().map_err(|_| errno(libc::EINVAL))?;
            let rounded = if number == 0 {
                0
            } else {
                number.next_power_of_two()
            };
            set(values, path.to_owned(), rounded.to_string());
        }
        "read_ahead_kb" => {
            let number: u64 = text.parse().map_err(|_| errno(libc::EINVAL))?;
            set(values, path.to_owned(), (number - number % 4).to_string());
        }
        "smp_affinity_list" => {
            cpus(text).ok_or_else(|| errno(libc::EINVAL))?;
            set(values, path.to_owned(), text.to_owned());
        }
        _ => {
            let words: Vec<&str> = text.split_whitespace().collect();
            set(values, path.to_owned(), words.join("\t"));
        }
    }
    Ok(())
}

/// A list with another word in brackets.
fn choose(list: &str, word: &str) -> io::Result<String> {
    let words: Vec<&str> = list
        .split_whitespace()
        .map(|word| word.trim_matches(['[', ']']))
        .collect();
    if !words.contains(&word) {
        return Err(errno(libc::EINVAL));
    }
    let shown = words.iter().map(|other| {
        if *other == word {
            format!("[{other}]")
        } else {
            (*other).to_owned()
        }
    });
    Ok(shown.collect::<Vec<_>>().join(" "))
}

/// Pages of a node that a process uses, as a value of the host.
pub(crate) const PAGES_IN_USE: &str = "pages in use";

/// Pages that one node can give.
pub(crate) const NODE_PAGES: u64 = 6000;

/// The total is the sum of the nodes. A node gives at most [`NODE_PAGES`].
fn hugepages(values: &mut Values, path: &str, text: &str) -> io::Result<()> {
    let asked: u64 = text.parse().map_err(|_| errno(libc::EINVAL))?;
    let name = path.split('/').rev().nth(1).unwrap().to_owned();
    let nodes: Vec<String> = values
        .keys()
        .filter(|key| key.starts_with("/sys/devices/system/node/") && key.contains(&name))
        .cloned()
        .collect();
    let total = format!("/sys/kernel/mm/hugepages/{name}/nr_hugepages");
    if path == total {
        let count = nodes.len() as u64;
        for (at, node) in (0..).zip(&nodes) {
            let share = asked / count + u64::from(at < asked % count);
            values.insert(node.clone(), format!("{}\n", share.min(NODE_PAGES)));
        }
    } else {
        let used = values
            .get(PAGES_IN_USE)
            .map_or(0, |text| text.parse().unwrap());
        let given = asked.clamp(used, NODE_PAGES);
        values.insert(path.to_owned(), format!("{given}\n"));
    }
    let sum: u64 = nodes
        .iter()
        .map(|node| values[node].trim().parse::<u64>().unwrap())
        .sum();
    values.insert(total, format!("{sum}\n"));
    Ok(())
}
