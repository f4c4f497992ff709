//! TLS connections to a server, by rustls: verification of the certificate, and the handshake.
//!
//! In: a connection on which the server has agreed to TLS. Out: the TLS state of the connection, or
//! an error. A failed handshake ends the log-in; there is no fallback to plain text. Deliberately
//! absent: client certificates, resumption (so that each log-in costs the same), revocation.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};

use super::ConnectError;
use super::stream::is_timeout;
use crate::props::Engine;

/// How connections are encrypted. The CA file is read at the first log-in. All clones share the
/// result.
#[derive(Debug, Clone)]
pub struct Tls {
    demand: Demand,
    client: Arc<OnceLock<Arc<ClientConfig>>>,
}

/// How the server's certificate is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Demand {
    Nothing,
    /// A CA in this PEM file must have signed the certificate.
    Authority(PathBuf),
    /// The same, and the certificate must be valid for the host of the URL.
    AuthorityAndName(PathBuf),
}

impl Tls {
    /// Encrypts without verification. The server may not be the intended server.
    #[must_use]
    pub fn require() -> Self {
        Self::of(Demand::Nothing)
    }

    /// Verifies that a CA in this PEM file has signed the server's certificate.
    #[must_use]
    pub fn verify_ca(ca: PathBuf) -> Self {
        Self::of(Demand::Authority(ca))
    }

    /// The same, and verifies that the certificate is valid for the host of the URL.
    #[must_use]
    pub fn verify_full(ca: PathBuf) -> Self {
        Self::of(Demand::AuthorityAndName(ca))
    }

    fn of(demand: Demand) -> Self {
        Self {
            demand,
            client: Arc::default(),
        }
    }

    /// The configuration of rustls, which the first call creates.
    fn client(&self) -> Result<Arc<ClientConfig>, TlsError> {
        if let Some(known) = self.client.get() {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(config(&self.demand)?);
        Ok(Arc::clone(self.client.get_or_init(|| read)))
    }
}

/// Compares only the demands, not whether files were read.
impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        self.demand == other.demand
    }
}

impl Eq for Tls {}

/// Why a connection is not encrypted.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsError {
    /// The server supports only plain text.
    #[error("the server does not offer it")]
    NotOffered,
    /// The file of the CA cannot be used.
    #[error("{}: {why}", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A certificate cannot contain the host of the URL.
    #[error("{host:?} is not a host name or an address")]
    Host {
        /// Host of the URL.
        host: String,
    },
    /// The two sides have no common settings, or the verification of the certificate failed.
    #[error("{0}")]
    Handshake(#[from] Error),
    /// The connection broke.
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for TlsError {
    fn from(error: io::Error) -> Self {
        let inner = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Error>());
        match inner.cloned() {
            Some(error) => Self::Handshake(error),
            None => Self::Io(error),
        }
    }
}

impl TlsError {
    /// Converts the error into an error of a log-in with this time limit.
    pub(super) fn of_login(self, engine: Engine, address: &str, limit: Duration) -> ConnectError {
        let address = address.to_owned();
        let (said, instead) = (self.to_string(), self.way_out().to_owned());
        let Self::Io(error) = self else {
            return ConnectError::Tls {
                engine,
                address,
                said,
                instead,
            };
        };
        if is_timeout(&error) {
            return ConnectError::Stuck {
                engine,
                address,
                step: "the TLS handshake",
                limit,
            };
        }
        ConnectError::Unreachable {
            engine,
            address,
            error,
        }
    }

    fn way_out(&self) -> &'static str {
        match self {
            Self::NotOffered => "set up TLS at the server, or do not ask for it",
            Self::Authority { .. } => "name a PEM file with the certificate of the server's CA",
            Self::Host { .. } => "name the host as its certificate does",
            Self::Handshake(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
                "name the CA that signed the server's certificate (--tls-ca, serverSslCert=, \
                 sslrootcert=)"
            }
            Self::Handshake(Error::InvalidCertificate(error)) if is_about_name(error) => {
                "use a name that the certificate has, or have only its CA checked (verify-ca)"
            }
            Self::Handshake(Error::InvalidCertificate(error)) if is_about_time(error) => {
                "have a certificate made that is valid today, or set the clock of this host"
            }
            Self::Handshake(error) if says(error, "CaUsedAsEndEntity") => {
                "the server shows the certificate of a CA; have that CA sign one for the server"
            }
            Self::Handshake(error) if says(error, "UnsupportedCertVersion") => {
                "have a certificate of version 3 made (openssl x509 -req -extfile FILE)"
            }
            Self::Handshake(_) | Self::Io(_) => {
                "look at the certificate and the TLS versions (1.2 or 1.3) of the server"
            }
        }
    }
}

/// Performs the handshake over `socket` with the server `host`.
pub(super) fn shake_hands(
    tls: &Tls,
    host: &str,
    socket: &mut (impl Read + Write),
) -> Result<Box<ClientConnection>, TlsError> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Host {
        host: host.to_owned(),
    })?;
    let mut connection = ClientConnection::new(tls.client()?, name)?;
    while connection.is_handshaking() || connection.wants_write() {
        connection.complete_io(socket)?;
    }
    Ok(Box::new(connection))
}

fn config(demand: &Demand) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match demand {
        Demand::Nothing => {
            let algorithms = provider.signature_verification_algorithms;
            Arc::new(AnyCertificate(algorithms.supported_schemes()))
        }
        Demand::Authority(ca) => Arc::new(AnyName(signed_by(ca, &provider)?)),
        Demand::AuthorityAndName(ca) => signed_by(ca, &provider)?,
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// A verifier that accepts certificates that a CA in the PEM file has signed for the host's name.
fn signed_by(
    path: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    let unusable = |why: String| TlsError::Authority {
        path: path.to_owned(),
        why,
    };
    let pem = fs::read(path).map_err(|error| unusable(error.to_string()))?;
    let certificates = CertificateDer::pem_slice_iter(&pem);
    let certificates = certificates
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unusable(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(certificates);
    if usable == 0 {
        return Err(unusable("it holds no certificate in PEM form".to_owned()));
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| unusable(error.to_string()))
}

fn is_about_name(error: &CertificateError) -> bool {
    use CertificateError::{NotValidForName, NotValidForNameContext};
    matches!(error, NotValidForName | NotValidForNameContext { .. })
}

fn is_about_time(error: &CertificateError) -> bool {
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    matches!(
        error,
        Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. }
    )
}

/// Whether the error contains this reason of webpki, for which rustls has no variant.
fn says(error: &Error, reason: &str) -> bool {
    format!("{error:?}").contains(reason)
}

/// Accepts certificates that a CA has signed, for any host name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.0
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is checked after signatures, dates and purpose.
            Err(Error::InvalidCertificate(error)) if is_about_name(&error) => {
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Accepts every certificate, and accepts signatures without a check. A valid signature would only
/// prove that the server has the key of a certificate of unknown origin. A check would only reject
/// certificates of version 1, which `openssl x509 -req` creates by default.
#[derive(Debug)]
struct AnyCertificate(Vec<SignatureScheme>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
