//! [`ArmKind`]: the transport between a client and a server.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::result::AGAIN;

/// The transport of an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArmKind {
    /// TCP on 127.0.0.1, nothing preloaded.
    Kernel,
    Unix,
    /// TCP on 127.0.0.1, both processes with this library preloaded.
    Saiga(PathBuf),
    /// TCP from another host, where nothing is preloaded, to a gateway; the server with this
    /// library preloaded.
    Gateway(PathBuf),
}

impl ArmKind {
    /// The name on the command line. A library with another file name than `libsaiga.so` is named
    /// by its file name without extension.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Kernel => "kernel".into(),
            Self::Unix => "unix".into(),
            Self::Gateway(_) => "gateway".into(),
            Self::Saiga(library) => match library.file_stem() {
                None => "saiga".into(),
                Some(stem) if stem == "libsaiga" => "saiga".into(),
                Some(stem) => stem.to_string_lossy(),
            },
        }
    }

    /// A sentence for reports.
    #[must_use]
    pub fn description(&self) -> &'static str {
        match self {
            Self::Kernel => "kernel TCP on 127.0.0.1, nothing preloaded",
            Self::Unix => "AF_UNIX socket, for applications that can be configured for it",
            Self::Saiga(_) => "the same TCP connections with both processes under Saiga",
            Self::Gateway(_) => "TCP from another host to saiga gateway, the server under Saiga",
        }
    }

    #[must_use]
    pub fn library(&self) -> Option<&Path> {
        match self {
            Self::Kernel | Self::Unix => None,
            Self::Saiga(library) | Self::Gateway(library) => Some(library),
        }
    }

    /// Environment variables for the server.
    #[must_use]
    pub fn env(&self) -> BTreeMap<String, String> {
        let preload = |library: &Path| ("LD_PRELOAD".to_owned(), library.display().to_string());
        self.library().map(preload).into_iter().collect()
    }

    /// Environment variables for the client.
    #[must_use]
    pub fn client_env(&self) -> BTreeMap<String, String> {
        match self {
            Self::Gateway(_) => BTreeMap::new(),
            Self::Kernel | Self::Unix | Self::Saiga(_) => self.env(),
        }
    }
}

/// A unique name for each arm; an arm that occurs again, to be compared with itself, gets the
/// suffix `(again)`.
#[must_use]
pub fn names(kinds: &[ArmKind]) -> Vec<String> {
    let nth = |index: usize| {
        kinds[..index]
            .iter()
            .filter(|k| **k == kinds[index])
            .count()
            + 1
    };
    let name = |(index, kind): (usize, &ArmKind)| match nth(index) {
        1 => kind.name().into_owned(),
        2 => format!("{}{AGAIN})", kind.name()),
        n => format!("{}{AGAIN}, {n})", kind.name()),
    };
    kinds.iter().enumerate().map(name).collect()
}
