//! TLS by rustls, with the cryptography of ring.

use std::io::BufReader;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::SupportedProtocolVersion;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::NoServerSessionStorage;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS12;
use rustls::version::TLS13;

use crate::text::foreign::Foreign;
use crate::text::infile;

/// Whose certificates are wanted of clients.
pub(super) enum Clients {
    /// None.
    Any,
    /// One that is given must be signed by these.
    IfGiven(PathBuf),
    /// There must be one that is signed by these.
    Signed(PathBuf),
}

/// What is spoken.
pub(super) enum Versions {
    Both,
    OnlyTwelve,
    OnlyThirteen,
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |e: &dyn std::fmt::Display| format!("{}: {e}", Foreign::from(path));
    let file = infile::regular(path).map_err(|e| wrong(&e))?;
    let all = CertificateDer::pem_reader_iter(BufReader::new(file));
    let all = all.collect::<Result<Vec<_>, _>>().map_err(|e| wrong(&e))?;
    if all.is_empty() {
        return Err(wrong(&"there is no certificate in it (PEM)"));
    }
    Ok(all)
}

/// What is served with. Nothing is kept of a session: whoever comes again shakes hands again.
///
/// # Errors
/// Which file is not as it should be, and why.
pub(super) fn server(
    certificate: &Path,
    key: &Path,
    clients: &Clients,
    versions: Versions,
) -> Result<ServerConfig, String> {
    let chain = certificates(certificate)?;
    let wrong = |e: &dyn std::fmt::Display| format!("{}: {e}", Foreign::from(key));
    let file = infile::regular(key).map_err(|e| wrong(&e))?;
    let secret = PrivateKeyDer::from_pem_reader(BufReader::new(file)).map_err(|e| wrong(&e))?;
    let provider = Arc::new(default_provider());
    let spoken: &[&SupportedProtocolVersion] = match versions {
        Versions::Both => &[&TLS13, &TLS12],
        Versions::OnlyTwelve => &[&TLS12],
        Versions::OnlyThirteen => &[&TLS13],
    };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(spoken)
        .map_err(|e| e.to_string())?;
    let builder = match clients {
        Clients::Any => builder.with_no_client_auth(),
        Clients::IfGiven(path) | Clients::Signed(path) => {
            let mut roots = RootCertStore::empty();
            for one in certificates(path)? {
                roots.add(one).map_err(|e| format!("{}: {e}", Foreign::from(path.as_path())))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = match clients {
                Clients::IfGiven(_) => verifier.allow_unauthenticated(),
                _ => verifier,
            };
            builder.with_client_cert_verifier(verifier.build().map_err(|e| e.to_string())?)
        }
    };
    let mut server = builder
        .with_single_cert(chain, secret)
        .map_err(|e| format!("{} and its key: {e}", Foreign::from(certificate)))?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    Ok(server)
}
