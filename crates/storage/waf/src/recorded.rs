//! Recorded drives: directories with a file for each page.
//!
//! File names are those of [`Page::file_name`]. A page that the drive lacks has no file. The owner
//! of an unsupported drive can send such a directory to the developers; with [`Privacy::Hidden`],
//! it does not identify the drive.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::drive::{Drive, OpenError, ReadError};
use crate::identity::{self, Identity, IdentityError};
use crate::page::Page;

/// Most bytes that are read of a file; no page is longer.
const LONGEST: u64 = 4096;

/// A recorded drive.
#[derive(Debug)]
pub struct Recorded {
    folder: PathBuf,
}

impl Recorded {
    /// Opens a recording.
    ///
    /// # Errors
    /// The directory has no page of the controller, or cannot be read.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let first = folder.join(Page::Controller.file_name());
        match first.metadata() {
            Ok(_) => Ok(Self {
                folder: folder.to_owned(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(OpenError::NoRecording {
                path: folder.to_owned(),
            }),
            Err(error) => Err(OpenError::new(&first, error)),
        }
    }
}

impl Drive for Recorded {
    fn read(&mut self, page: Page) -> Result<Vec<u8>, ReadError> {
        let path = self.folder.join(page.file_name());
        match beginning(&path) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(ReadError::NotRecorded { page })
            }
            Err(error) => Err(ReadError::Failed { page, path, error }),
        }
    }

    fn namespace(&self) -> Option<u32> {
        None
    }
}

/// Reads a page from a file. Other file types are refused: the open of a pipe could block.
fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a recording identifies its drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privacy {
    /// Pages are recorded unchanged.
    Named,
    /// Serial number, unique names of controller, subsystem and namespaces, and the vendor's fields
    /// in these pages are overwritten.
    Hidden,
}

/// An error of recording a drive.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("{} is not empty: name a folder that does not exist yet", folder.display())]
    NotEmpty { folder: PathBuf },
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// The size of each recorded page in bytes, or the error of reading it.
pub type Recording = Vec<(Page, Result<usize, ReadError>)>;

/// Writes all pages that the drive returns to files in the new or empty directory `folder`.
///
/// # Errors
/// The drive cannot be identified, or a file cannot be written. Files written before stay.
pub fn record(
    drive: &mut dyn Drive,
    folder: &Path,
    privacy: Privacy,
) -> Result<Recording, RecordError> {
    let identity = identity::identify(drive)?;
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| RecordError::Write { path, error }
    };
    fs::create_dir_all(folder).map_err(at(folder))?;
    if fs::read_dir(folder).map_err(at(folder))?.next().is_some() {
        return Err(RecordError::NotEmpty {
            folder: folder.to_owned(),
        });
    }
    let mut outcomes = Vec::new();
    for page in pages(&identity, drive.namespace()) {
        let read = drive.read(page).map(|bytes| hidden(page, bytes, privacy));
        let outcome = match read {
            // The list only has the recorded namespaces.
            Ok(_) if page == Page::Namespaces => Ok(listed(&identity.namespaces)),
            other => other,
        };
        if let Ok(bytes) = &outcome {
            let path = folder.join(page.file_name());
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).mode(0o600).open(&path);
            file.and_then(|mut file| file.write_all(bytes))
                .map_err(at(&path))?;
        }
        outcomes.push((page, outcome.map(|bytes| bytes.len())));
    }
    Ok(outcomes)
}

/// Returns all pages that sources and [`crate::placement`] may read from this drive. The device of
/// a controller accepts no I/O command for one of several namespaces, so the handles are only
/// recorded for a named namespace.
fn pages(identity: &Identity, named: Option<u32>) -> Vec<Page> {
    let mut pages = vec![Page::Controller, Page::Namespaces];
    pages.extend(
        identity
            .namespaces
            .iter()
            .map(|nsid| Page::Namespace(*nsid)),
    );
    pages.extend(identity.namespaces.first().map(|nsid| Page::Streams(*nsid)));
    pages.extend([Page::Uuids, Page::Smart]);
    for group in identity.group.all() {
        pages.extend([Page::Endurance(group), Page::Fdp(group)]);
        if identity.fdp {
            pages.extend([
                Page::FdpMode(group),
                Page::FdpConfigurations(group),
                Page::FdpUsage(group),
            ]);
            pages.extend(named.map(Page::Handles));
        }
    }
    pages.push(Page::VendorC0 { uuid: 0 });
    pages.extend(identity.ocp_uuid.map(|uuid| Page::VendorC0 { uuid }));
    pages.push(Page::VendorCa);
    pages
}

fn listed(namespaces: &[u32]) -> Vec<u8> {
    let mut page: Vec<u8> = namespaces
        .iter()
        .flat_map(|nsid| nsid.to_le_bytes())
        .collect();
    page.resize(Page::Namespaces.length(), 0);
    page
}

fn hidden(page: Page, mut bytes: Vec<u8>, privacy: Privacy) -> Vec<u8> {
    let mut hide = |field: std::ops::Range<usize>, with| {
        if let Some(field) = bytes.get_mut(field) {
            field.fill(with);
        }
    };
    match (privacy, page) {
        (Privacy::Hidden, Page::Controller) => {
            hide(4..24, b'X'); // The serial number.
            hide(112..128, 0); // FGUID.
            hide(768..1024, 0); // The subsystem's name, which often ends with the serial number.
            hide(3072..4096, 0); // The vendor's part: Intel has a world wide name there.
        }
        (Privacy::Hidden, Page::Namespace(_)) => {
            hide(104..128, 0); // NGUID and EUI64.
            hide(384..4096, 0); // The vendor's part.
        }
        _ => {}
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_recording_keeps_everything_but_names() {
        let page: Vec<u8> = (0..4096_u16).map(|at| (at % 251) as u8 + 1).collect();
        let controller = hidden(Page::Controller, page.clone(), Privacy::Hidden);
        for (at, (before, after)) in page.iter().zip(&controller).enumerate() {
            match at {
                4..24 => assert_eq!(*after, b'X'),
                112..128 | 768..1024 | 3072.. => assert_eq!(*after, 0, "{at}"),
                _ => assert_eq!(before, after, "{at}"),
            }
        }
        let namespace = hidden(Page::Namespace(1), page.clone(), Privacy::Hidden);
        assert_eq!(namespace[..104], page[..104]);
        assert_eq!(namespace[104..128], [0; 24]);
        assert_eq!(namespace[128..384], page[128..384]);
        assert_eq!(namespace[384..], [0; 3712]);
        assert_eq!(hidden(Page::Smart, page.clone(), Privacy::Hidden), page);
        assert_eq!(hidden(Page::Controller, page.clone(), Privacy::Named), page);
    }

    /// No process has the other end of the pipe open.
    #[test]
    fn a_pipe_or_directory_instead_of_a_page_is_refused_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("identify-controller.bin"), [0; 9]).unwrap();
        let pipe = dir.path().join("log-02.bin");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        fs::create_dir(dir.path().join("log-ca.bin")).unwrap();
        let mut drive = Recorded::open(dir.path()).unwrap();
        for page in [Page::Smart, Page::VendorCa] {
            let error = drive.read(page).unwrap_err();
            assert!(matches!(error, ReadError::Failed { .. }), "{error}");
            assert!(error.to_string().ends_with("it is not a file"), "{error}");
        }
        assert_eq!(drive.read(Page::Controller).unwrap(), [0; 9]);
    }
}
