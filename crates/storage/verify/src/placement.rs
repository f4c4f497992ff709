//! Which reclaim unit handle each part of a server is written through. The drives are queried.

use std::collections::BTreeMap;
use std::path::PathBuf;

use saiga_document::table::Table;
use saiga_streams::route::{self, Answer, Answers, Layout, Namespace, Reach, Report, System};
use saiga_waf::placement::{Placement, placement};
use serde_json::{Value, json};

use crate::VerifyError;

/// A server whose parts are on several disks.
#[derive(Debug)]
pub struct PartPlacement {
    pub layout: Layout,
    /// The placement of each namespace, by the kernel's name of its disk.
    pub known: BTreeMap<String, Placement>,
}

/// Completes reports with the handles of namespaces.
///
/// Drives are queried only if no route of hints is certain and a server has parts on several disks.
///
/// # Errors
/// The disks of a server cannot be found in sysfs. A drive that cannot be queried makes the verdict
/// unknown.
pub fn complete(
    system: &System,
    reports: Vec<Report>,
) -> Result<Vec<(Report, Option<PartPlacement>)>, VerifyError> {
    let dirs: Vec<PathBuf> = reports.iter().map(|report| report.dir.clone()).collect();
    let mut all = Vec::new();
    for report in reports {
        let layout = if report.reach == Reach::Yes {
            None
        } else {
            route::layout(system, &report.dir, &dirs)?
        };
        all.push(match layout {
            None => (report, None),
            Some(layout) => {
                let (answers, known) = query(system, &layout);
                let report = report.with_verdict(layout.verdict(&answers));
                (report, Some(PartPlacement { layout, known }))
            }
        });
    }
    adopt(&mut all);
    Ok(all)
}

/// Gives a directory that holds a part of another directory's server the verdict of that server.
fn adopt(all: &mut [(Report, Option<PartPlacement>)]) {
    let mut held: BTreeMap<PathBuf, (Reach, String)> = BTreeMap::new();
    for (report, spread) in &*all {
        let parts = spread.iter().flat_map(|spread| &spread.layout.parts);
        for part in parts {
            let why = format!("it holds {} of {}", part.name, report.dir.display());
            for place in &part.places {
                held.insert(place.point.clone(), (report.reach, why.clone()));
            }
        }
    }
    for (report, _) in all.iter_mut().filter(|(_, spread)| spread.is_none()) {
        if let Some(verdict) = held.get(&report.mount.point) {
            *report = report.clone().with_verdict(verdict.clone());
        }
    }
}

fn query(system: &System, layout: &Layout) -> (Answers, BTreeMap<String, Placement>) {
    let (mut answers, mut known) = (Answers::new(), BTreeMap::new());
    for namespace in &layout.namespaces {
        let disk = namespace.disk.clone();
        let answer = match read(system, namespace) {
            Ok(placement) => {
                let answer = Answer::Handles {
                    group: placement.group,
                    default: placement.handle,
                    is_specified: placement.is_specified,
                    all: placement.units.iter().map(|unit| unit.handle).collect(),
                };
                known.insert(disk.clone(), placement);
                answer
            }
            Err(answer) => answer,
        };
        answers.insert(disk, answer);
    }
    (answers, known)
}

fn read(system: &System, namespace: &Namespace) -> Result<Placement, Answer> {
    let disk = &namespace.disk;
    let drive = saiga_waf::open(&system.device(disk));
    let mut drive = drive.map_err(|error| Answer::Unknown(error.to_string()))?;
    placement(drive.as_mut(), namespace.id).map_err(|why| {
        if why.is_absence() {
            Answer::None(why.to_string())
        } else {
            Answer::Unknown(format!("{disk}: {why}"))
        }
    })
}

impl PartPlacement {
    #[must_use]
    pub fn to_text(&self) -> String {
        let or_unknown = |number: Option<String>| number.unwrap_or_else(|| "?".to_owned());
        let mut table = Table::new(["part", "on", "disk", "namespace", "handle"]);
        for part in &self.layout.parts {
            if part.places.is_empty() {
                table.row([part.name, "?", "?", "?", "?"].map(str::to_owned));
            }
            for place in &part.places {
                let disk = place.disk.as_deref().unwrap_or_default();
                let namespace = self.namespace(disk).map(|found| found.id.to_string());
                let handle = self.known.get(disk).map(|known| known.handle.to_string());
                table.row([
                    part.name.to_owned(),
                    place.point.display().to_string(),
                    disk.to_owned(),
                    or_unknown(namespace),
                    or_unknown(handle),
                ]);
            }
        }
        table.to_string()
    }

    #[must_use]
    pub fn as_json(&self) -> Value {
        let parts = self.layout.parts.iter().map(|part| {
            let places = part.places.iter().map(|place| {
                let disk = place.disk.as_deref().unwrap_or_default();
                let known = self.known.get(disk);
                json!({
                    "mount": place.point.display().to_string(),
                    "disk": place.disk,
                    "namespace": self.namespace(disk).map(|namespace| namespace.id),
                    "endurance_group": known.map(|known| known.group),
                    "handle": known.map(|known| known.handle),
                })
            });
            json!({ "name": part.name, "places": places.collect::<Vec<_>>() })
        });
        json!(parts.collect::<Vec<_>>())
    }

    /// The namespace of a disk, by the kernel's name of the disk.
    #[must_use]
    pub fn namespace(&self, disk: &str) -> Option<&Namespace> {
        let mut namespaces = self.layout.namespaces.iter();
        namespaces.find(|namespace| namespace.disk == disk)
    }
}
