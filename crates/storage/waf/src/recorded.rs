//! A drive as a folder of pages, one file each, and how such a folder is written.
//!
//! File names are those of [`Page::file_name`]. A page that the drive did not give has no file. Whoever has a drive
//! that Saiga does not understand can send its folder; with [`Privacy::Hidden`] it does not say which drive it was.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::drive::{Drive, OpenError, ReadError};
use crate::identity::{self, Identity, IdentityError};
use crate::page::Page;

/// No page is longer; what follows in a file is not read.
const LONGEST: u64 = 4096;

/// A recorded drive.
#[derive(Debug)]
pub struct Recorded {
    folder: PathBuf,
}

impl Recorded {
    /// Takes a folder for a drive.
    ///
    /// # Errors
    /// [`OpenError`] when it has no page that says which drive it is.
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

/// As much of a file as a page has. Other things than files are refused: a pipe would keep whoever opens it.
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

/// Whether a recording may say which drive it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privacy {
    /// Pages as they are.
    Named,
    /// Serial number, the unique names of controller, subsystem and namespaces, and what vendors keep beside them are
    /// overwritten.
    Hidden,
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The drive does not say what it is.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A recording is not mixed with other files.
    #[error("{} is not empty: name a folder that does not exist yet", folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// A file could not be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// What became of each page.
pub type Recording = Vec<(Page, Result<usize, ReadError>)>;

/// Writes all pages that the drive gives into a folder of its own.
///
/// # Errors
/// [`RecordError`]; files that were written by then stay.
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
            // Of a namespace, only itself is recorded.
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

/// All pages that any source could want of this drive, usable or not, and those of
/// [`crate::placement`]. A controller's device takes no I/O command for one of several namespaces, so
/// the handles are recorded if a namespace was named.
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
            hide(768..1024, 0); // The subsystem's name, which often ends with it.
            hide(3072..4096, 0); // The vendor's: Intel has a world wide name there.
        }
        (Privacy::Hidden, Page::Namespace(_)) => {
            hide(104..128, 0); // NGUID and EUI64.
            hide(384..4096, 0); // The vendor's.
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

    /// Nobody writes into the pipe.
    #[test]
    fn a_page_that_is_no_file_keeps_nobody_waiting() {
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
