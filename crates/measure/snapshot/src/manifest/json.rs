//! `manifest.json`, format 1. Paths are in the text form of `name.rs`.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::check::ManifestError;
use super::{Contents, Entry, Kind, Manifest, Metadata, Part};
use crate::hash::{self, Hash};
use crate::name;
use crate::stat::Time;

const FORMAT_VERSION: u64 = 1;

/// The only field that every format has.
#[derive(Deserialize)]
struct Version {
    format_version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format_version: u64,
    /// Name and version of the writing program.
    tool: String,
    taken: String,
    fingerprint: String,
    id: String,
    piece_bytes: u64,
    bytes: u64,
    notes: Vec<String>,
    parts: Vec<PartText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartText {
    path: String,
    mount_point: bool,
    entries: Vec<EntryText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryText {
    path: String,
    kind: KindText,
    /// Permissions in octal, as for chmod(1).
    mode: String,
    uid: u32,
    gid: u32,
    /// Seconds and nanoseconds since 1970.
    mtime: (i64, u32),
    /// Values in hexadecimal form.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target_part: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allocated: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stored: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pieces: Vec<String>,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum KindText {
    Directory,
    Symlink,
    File,
    HardLink,
}

impl Manifest {
    /// The content of `manifest.json`.
    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&Document {
            format_version: FORMAT_VERSION,
            tool: concat!("saiga ", env!("CARGO_PKG_VERSION")).to_owned(),
            taken: self.taken.clone(),
            fingerprint: self.fingerprint().to_string(),
            id: self.id().to_string(),
            piece_bytes: hash::PIECE,
            bytes: self.bytes(),
            notes: self.notes.clone(),
            parts: self.parts.iter().map(part_text).collect(),
        })
    }

    /// Parses `manifest.json` and checks its hashes and fields.
    pub(crate) fn from_json(json: &[u8]) -> Result<Self, ManifestError> {
        let version: Version = serde_json::from_slice(json)?;
        if version.format_version != FORMAT_VERSION {
            let found = version.format_version;
            return Err(ManifestError::Version {
                found,
                known: FORMAT_VERSION,
            });
        }
        let document: Document = serde_json::from_slice(json)?;
        if document.piece_bytes != hash::PIECE {
            return Err(ManifestError::Field("piece_bytes"));
        }
        let parts: Result<_, _> = document.parts.into_iter().map(part).collect();
        let manifest = Self {
            taken: document.taken,
            notes: document.notes,
            parts: parts?,
        };
        manifest.check()?;
        let is_whole = manifest.id().to_string() == document.id
            && manifest.fingerprint().to_string() == document.fingerprint
            && manifest.bytes() == document.bytes;
        if is_whole {
            Ok(manifest)
        } else {
            Err(ManifestError::Altered)
        }
    }
}

fn path_text(path: &Path) -> String {
    name::shown(path)
}

fn part_text(part: &Part) -> PartText {
    PartText {
        path: path_text(&part.path),
        mount_point: part.is_mount_point,
        entries: part.entries.iter().map(entry_text).collect(),
    }
}

fn entry_text(entry: &Entry) -> EntryText {
    let Entry {
        path,
        metadata,
        kind,
    } = entry;
    let attributes = metadata.attributes.iter();
    let attributes = attributes.map(|(name, value)| (name::escape(name), to_hex(value)));
    let mut text = EntryText {
        path: path_text(path),
        kind: KindText::Directory,
        mode: format!("{:04o}", metadata.mode),
        uid: metadata.uid,
        gid: metadata.gid,
        mtime: (metadata.mtime.seconds, metadata.mtime.nanos),
        attributes: attributes.collect(),
        target: None,
        target_part: None,
        size: None,
        allocated: None,
        stored: None,
        pieces: Vec::new(),
    };
    match kind {
        Kind::Directory => {}
        Kind::Symlink(target) => {
            text.kind = KindText::Symlink;
            text.target = Some(path_text(target));
        }
        Kind::HardLink { part, path } => {
            text.kind = KindText::HardLink;
            text.target = Some(path_text(path));
            text.target_part = Some(*part);
        }
        Kind::File(contents) => {
            text.kind = KindText::File;
            text.size = Some(contents.size);
            text.allocated = Some(contents.allocated);
            text.stored = contents.stored;
            text.pieces = contents.pieces.iter().map(Hash::to_string).collect();
        }
    }
    text
}

fn part(text: PartText) -> Result<Part, ManifestError> {
    let entries: Result<_, _> = text.entries.into_iter().map(entry).collect();
    Ok(Part {
        path: path(&text.path, "path")?,
        is_mount_point: text.mount_point,
        entries: entries?,
    })
}

fn entry(text: EntryText) -> Result<Entry, ManifestError> {
    let mut attributes = BTreeMap::new();
    for (name, value) in &text.attributes {
        let name = name::unescape(name);
        let pair = name.zip(from_hex(value));
        let (name, value) = pair.ok_or(ManifestError::Field("attributes"))?;
        attributes.insert(name, value);
    }
    let metadata = Metadata {
        mode: u32::from_str_radix(&text.mode, 8).map_err(|_| ManifestError::Field("mode"))?,
        uid: text.uid,
        gid: text.gid,
        mtime: Time {
            seconds: text.mtime.0,
            nanos: text.mtime.1,
        },
        attributes,
    };
    let target = || {
        let target = text.target.as_deref();
        path(target.ok_or(ManifestError::Field("target"))?, "target")
    };
    let kind = match text.kind {
        KindText::Directory => Kind::Directory,
        KindText::Symlink => Kind::Symlink(target()?),
        KindText::HardLink => Kind::HardLink {
            part: text
                .target_part
                .ok_or(ManifestError::Field("target_part"))?,
            path: target()?,
        },
        KindText::File => Kind::File(Contents {
            size: text.size.ok_or(ManifestError::Field("size"))?,
            allocated: text.allocated.ok_or(ManifestError::Field("allocated"))?,
            stored: text.stored,
            pieces: hashes(&text.pieces)?,
        }),
    };
    Ok(Entry {
        path: path(&text.path, "path")?,
        metadata,
        kind,
    })
}

fn hashes(texts: &[String]) -> Result<Vec<Hash>, ManifestError> {
    let hashes = texts.iter().map(|text| text.parse());
    let hashes: Result<_, _> = hashes.collect();
    hashes.map_err(|_| ManifestError::Field("pieces"))
}

fn path(text: &str, field: &'static str) -> Result<PathBuf, ManifestError> {
    let path = name::path(text).ok_or(ManifestError::Field(field))?;
    // No file name on Linux contains a zero byte.
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(ManifestError::Field(field));
    }
    Ok(path)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = (0..text.len()).step_by(2);
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    pairs.map(byte).collect()
}
