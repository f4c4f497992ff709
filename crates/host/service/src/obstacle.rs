//! The reasons for which the library would not be loaded into a service, or for which its
//! connections would stay on TCP, as sentences for the user.

use std::path::PathBuf;

use saiga_program::Obstacle as ProgramObstacle;

use crate::apparmor::Confinement;
use crate::drop_in;
use crate::name::UnitName;

/// One reason not to enable a service, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    #[error("it starts no server itself; enable the units that do")]
    NoServer,
    #[error("it starts no server itself; enable the units of {0}")]
    NoServerButInstances(UnitName),
    #[error(
        "it starts no server itself; enable the units of the PostgreSQL clusters: {}", list(.0)
    )]
    NoServerButClusters(Vec<UnitName>),
    #[error(
        "there is no PostgreSQL cluster {wanted:?}; the units of all clusters: {}",
        list(units)
    )]
    NoCluster {
        wanted: String,
        units: Vec<UnitName>,
    },
    #[error("its program {0} does not exist; install the service first")]
    NoProgram(String),
    #[error(transparent)]
    Program(#[from] ProgramObstacle),
    #[error(
        "the user of the service cannot read {}, because {} denies it; install Saiga where every \
         user can read it",
        library.display(), at.display()
    )]
    Denied { library: PathBuf, at: PathBuf },
    #[error(
        "{setting} hides {} from the service; install Saiga elsewhere, for example \
         by `make install`",
        library.display()
    )]
    Hidden { setting: String, library: PathBuf },
    #[error(
        "it has a network namespace of its own (PrivateNetwork= or NetworkNamespacePath=), so \
         connections from outside stay on TCP"
    )]
    OwnNetwork,
    #[error("UnsetEnvironment= removes LD_PRELOAD; reset that setting in a drop-in")]
    Unset,
    #[error(
        "{0} (EnvironmentFile=) sets LD_PRELOAD and overrides {file}; name Saiga's library in \
         {0} instead",
        file = drop_in::FILE
    )]
    EnvironmentFile(String),
    #[error("Environment= sets another LD_PRELOAD")]
    OtherPreload,
    #[error(
        "RestrictAddressFamilies= lacks {}, which the two ends of a connection need to find each \
         other",
        .0.join(" ")
    )]
    AddressFamilies(Vec<&'static str>),
    #[error(
        "PrivateUsers= hides the users of its clients: only clients of root and of its own user \
         would be accelerated"
    )]
    PrivateUsers,
    #[error("SystemCallFilter= lacks {}, which the library calls", .0.join(" "))]
    SystemCalls(Vec<&'static str>),
    #[error(
        "NoExecPaths= prevents the service from loading {}, and ExecPaths= does not list it",
        library.display()
    )]
    NotExecutable { library: PathBuf },
    #[error(
        "SELinux is enforcing, and services may not map {}, whose type is {kind}; run: semanage \
         fcontext -a -t lib_t '{0}' && restorecon -v '{0}'",
        library.display()
    )]
    Label { library: PathBuf, kind: String },
    #[error(
        "AppArmor's profile {} does not let it map the library; add these rules to {} and run \
         `apparmor_parser -r {}`:\n    {}",
        .0.profile, .0.local.as_ref().unwrap_or(&.0.file).display(), .0.file.display(),
        .0.rules.join("\n    ")
    )]
    AppArmor(Confinement),
    #[error("{0}; a drop-in that systemd reads after Saiga's sets this: remove the line there")]
    Overridden(Box<Obstacle>),
}

fn list(units: &[UnitName]) -> String {
    let names: Vec<&str> = units.iter().map(UnitName::as_str).collect();
    if names.is_empty() {
        return "none is installed".to_owned();
    }
    names.join(", ")
}

impl Obstacle {
    /// Whether rules in a file that its AppArmor profile includes remove the obstacle.
    pub fn has_local_file(&self) -> bool {
        matches!(self, Self::AppArmor(confinement) if confinement.local.is_some())
    }

    /// The line of a drop-in that removes the obstacle and keeps the rest of the sandbox. `None`
    /// if only the user can remove it.
    pub fn relaxation(&self) -> Option<String> {
        match self {
            Self::AddressFamilies(missing) => {
                Some(format!("RestrictAddressFamilies={}", missing.join(" ")))
            }
            Self::PrivateUsers => Some("PrivateUsers=no".to_owned()),
            Self::SystemCalls(missing) => Some(format!("SystemCallFilter={}", missing.join(" "))),
            Self::NotExecutable { library } => {
                let folder = library.parent()?.display().to_string();
                // Without the hyphen the service would not start once Saiga is uninstalled.
                Some(format!("ExecPaths=-{}", folder.replace('%', "%%")))
            }
            Self::NoServer
            | Self::NoServerButInstances(_)
            | Self::NoServerButClusters(_)
            | Self::NoCluster { .. }
            | Self::NoProgram(_)
            | Self::Program(_)
            | Self::Denied { .. }
            | Self::Hidden { .. }
            | Self::OwnNetwork
            | Self::Unset
            | Self::EnvironmentFile(_)
            | Self::OtherPreload
            | Self::Label { .. }
            | Self::AppArmor(_)
            | Self::Overridden(_) => None,
        }
    }
}
