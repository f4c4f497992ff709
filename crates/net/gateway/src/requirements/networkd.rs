//! Whether systemd-networkd removes rules and routes that are not its own.
//!
//! Source: networkd.conf(5). It does so when it starts, and when a link that it manages is
//! configured anew, unless two keys forbid it. The last value of a key counts: that of
//! `networkd.conf`, then those of the drop-ins in the order of their names.

use std::collections::BTreeMap;
use std::path::PathBuf;

use saiga_process::root::Root;

const KEYS: [&str; 2] = ["ManageForeignRoutingPolicyRules", "ManageForeignRoutes"];
/// The folders with settings, the strongest first.
const FOLDERS: [&str; 4] = [
    "/etc/systemd",
    "/run/systemd",
    "/usr/local/lib/systemd",
    "/usr/lib/systemd",
];

/// What to write, if networkd runs and removes rules or routes of others.
pub(super) fn warning(root: &Root) -> Option<String> {
    // Debian makes the folder at each start of the host.
    if !root.exists("/run/systemd/netif/state") {
        return None;
    }
    let lacking = lacking(&settings(root));
    if lacking.is_empty() {
        return None;
    }
    Some(format!(
        "systemd-networkd removes the gateway's rules and routes when it is started again, and \
         connections wait until the gateway has put them back: write these lines to \
         /etc/systemd/networkd.conf.d/saiga.conf, then `systemctl restart systemd-networkd`\n\
         [Network]\n{}",
        lacking.join("\n")
    ))
}

/// The texts of all files that count, the strongest last. What cannot be read does not count.
fn settings(root: &Root) -> Vec<String> {
    let text = |path: &PathBuf| root.text(path).ok().flatten();
    let path = |folder: &str| PathBuf::from(folder).join("networkd.conf");
    let main = FOLDERS.iter().find_map(|folder| text(&path(folder)));
    // A drop-in hides those of the same name in weaker folders.
    let mut drop_ins = BTreeMap::new();
    for folder in FOLDERS.iter().rev() {
        let folder = format!("{folder}/networkd.conf.d");
        let names = root.names(&folder).unwrap_or_default();
        for name in names.into_iter().filter(|name| name.ends_with(".conf")) {
            let path = PathBuf::from(&folder).join(&name);
            drop_ins.insert(name, path);
        }
    }
    let drop_ins = drop_ins.values().filter_map(text);
    main.into_iter().chain(drop_ins).collect()
}

/// The lines that are missing.
fn lacking(texts: &[String]) -> Vec<String> {
    let lines = texts.iter().flat_map(|text| text.lines());
    let values: BTreeMap<&str, &str> = lines
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect();
    // The words of systemd for a Boolean that is false.
    let is_off = |value: &&str| {
        let words = ["0", "no", "n", "false", "f", "off"];
        words.iter().any(|word| word.eq_ignore_ascii_case(value))
    };
    let keys = KEYS.iter();
    keys.filter(|key| !values.get(*key).is_some_and(is_off))
        .map(|key| format!("{key}=no"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn networkd_is_told_to_leave_rules_and_routes() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let lines = || {
            let warning = warning(&Root::at(folder.path()))?;
            let (text, lines) = warning.split_once("\n[Network]\n").unwrap();
            assert!(text.contains("/etc/systemd/networkd.conf.d/saiga.conf"));
            Some(lines.to_owned())
        };
        let (rules, routes) = (
            "ManageForeignRoutingPolicyRules=no",
            "ManageForeignRoutes=no",
        );
        write("etc/systemd/networkd.conf", "#ManageForeignRoutes=no\n");
        assert_eq!(lines(), None, "networkd does not run");
        write("run/systemd/netif/state", "");
        assert_eq!(lines().unwrap(), format!("{rules}\n{routes}"));
        let file = "usr/lib/systemd/networkd.conf.d/50-a.conf";
        write(file, "[Network]\n ManageForeignRoutes = False\n");
        assert_eq!(lines().unwrap(), rules);
        write("run/systemd/networkd.conf.d/60-b.conf", rules);
        assert_eq!(lines(), None);
        // The same name hides the weaker file, and a later name has the last word.
        write("etc/systemd/networkd.conf.d/50-a.conf", "");
        assert_eq!(lines().unwrap(), routes);
        write("etc/systemd/networkd.conf.d/70-c.conf", routes);
        assert_eq!(lines(), None);
        write(
            "etc/systemd/networkd.conf.d/80-d.conf",
            "ManageForeignRoutes=yes",
        );
        assert_eq!(lines().unwrap(), routes);
    }
}
