//! The web configuration file: YAML, of which every key is heeded or refused.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;

use bcrypt::HashParts;
use saphyr::LoadableYamlNode as _;
use saphyr::Yaml;

use super::Rules;
use super::tls;
use super::tls::Clients;
use super::tls::Versions;
use crate::text::foreign::Foreign;
use crate::text::infile;

/// Bytes of the file at most.
const SIZE: u64 = 1 << 18;
/// A password is not to cost more than this (as an exponent of two): at 15 it is seconds, for each that is tried.
const COST: u32 = 14;
/// Headers that may be set, as Prometheus' exporters have it.
const HEADERS: &[&str] = &[
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "X-XSS-Protection",
    "Content-Security-Policy",
];

/// Reads it, and the files that it names: those relative to it stand beside it.
///
/// # Errors
/// What is wrong, and at which key. Never a password, nor what it was made into.
pub(super) fn read(path: &Path) -> Result<Rules, String> {
    let named = |e: String| format!("{}: {e}", Foreign::from(path));
    let mut text = String::new();
    let file = infile::regular(path).map_err(|e| named(e.to_string()))?;
    file.take(SIZE + 1).read_to_string(&mut text).map_err(|e| named(e.to_string()))?;
    if text.len() as u64 > SIZE {
        return Err(named("it is longer than 256 KiB".into()));
    }
    let mut files = vec![path.to_owned()];
    let mut rules =
        rules(&text, path.parent().unwrap_or_else(|| Path::new("")), &mut files).map_err(named)?;
    rules.files = files;
    Ok(rules)
}

/// The keys of a mapping, each taken once; what nobody has taken is refused.
struct Keys<'a> {
    at: &'static str,
    left: BTreeMap<&'a str, &'a Yaml<'a>>,
}

impl<'a> Keys<'a> {
    fn from(at: &'static str, node: &'a Yaml<'a>) -> Result<Self, String> {
        if node.is_null() {
            return Ok(Self { at, left: BTreeMap::new() });
        }
        let map = node.as_mapping().ok_or_else(|| format!("{}: 'key: value' is wanted there", place(at)))?;
        let pair = |(key, value): (&'a Yaml<'a>, &'a Yaml<'a>)| key.as_str().map(|key| (key, value));
        let left = map
            .iter()
            .map(pair)
            .collect::<Option<_>>()
            .ok_or_else(|| format!("{}: a key is no text (numbers are written in quotes)", place(at)))?;
        Ok(Self { at, left })
    }

    fn name(&self, key: &str) -> String {
        if self.at.is_empty() { key.to_owned() } else { format!("{}.{key}", self.at) }
    }

    fn take(&mut self, key: &str) -> Option<&'a Yaml<'a>> {
        self.left.remove(key).filter(|node| !node.is_null())
    }

    /// A text, and not an empty one, which stands for none.
    fn text(&mut self, key: &str) -> Result<Option<&'a str>, String> {
        let Some(node) = self.take(key) else { return Ok(None) };
        let text = node.as_str().ok_or_else(|| format!("{}: it is a text", self.name(key)))?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// Nothing may be left.
    fn end(self, known: &[&str]) -> Result<(), String> {
        let Some(key) = self.left.keys().next() else { return Ok(()) };
        let name = Foreign::from(self.name(key));
        Err(if known.contains(key) {
            format!("{name}: this is not done here; leave it out")
        } else {
            format!("{name}: there is no such key")
        })
    }
}

fn place(at: &str) -> &str {
    if at.is_empty() { "the file" } else { at }
}

fn rules(text: &str, beside: &Path, files: &mut Vec<PathBuf>) -> Result<Rules, String> {
    let all = Yaml::load_from_str(text).map_err(|e| {
        let at = e.marker();
        // What it says may quote the file.
        format!("line {}, column {}: {}", at.line(), at.col() + 1, Foreign::from(e.info()))
    })?;
    let nothing = Yaml::Value(saphyr::Scalar::Null);
    let document = match all.as_slice() {
        [] => &nothing,
        [one] => one,
        _ => return Err("it has more than one document".into()),
    };
    let mut keys = Keys::from("", document)?;
    let mut rules = Rules::default();
    if let Some(node) = keys.take("tls_server_config") {
        let mut own = Keys::from("tls_server_config", node)?;
        encryption(&mut own, beside, files, &mut rules)?;
        own.end(&[
            "cert",
            "key",
            "client_ca",
            "client_allowed_sans",
            "cipher_suites",
            "curve_preferences",
            "prefer_server_cipher_suites",
        ])?;
    }
    if let Some(node) = keys.take("http_server_config") {
        let mut own = Keys::from("http_server_config", node)?;
        match own.take("http2").map(|node| node.as_bool()) {
            None | Some(Some(false)) => {}
            _ => return Err("http_server_config.http2: HTTP/1.1 is spoken here: it is false".into()),
        }
        if let Some(node) = own.take("headers") {
            rules.headers = headers(Keys::from("http_server_config.headers", node)?)?;
        }
        own.end(&[])?;
    }
    if let Some(node) = keys.take("basic_auth_users") {
        rules.users = users(Keys::from("basic_auth_users", node)?)?;
    }
    keys.end(&["rate_limit"])?;
    Ok(rules)
}

fn encryption(
    keys: &mut Keys<'_>,
    beside: &Path,
    files: &mut Vec<PathBuf>,
    rules: &mut Rules,
) -> Result<(), String> {
    let name = |key: &str| format!("tls_server_config.{key}");
    let mut path = |keys: &mut Keys<'_>, key: &str| -> Result<Option<PathBuf>, String> {
        let path = keys.text(key)?.map(|text| beside.join(text));
        files.extend(path.clone());
        Ok(path)
    };
    let (certificate, key, authority) =
        (path(keys, "cert_file")?, path(keys, "key_file")?, path(keys, "client_ca_file")?);
    let clients = match (keys.text("client_auth_type")?.unwrap_or("NoClientCert"), authority) {
        ("NoClientCert", None) => Clients::Any,
        ("NoClientCert", Some(_)) => {
            return Err(format!(
                "{}: it needs client_auth_type: RequireAndVerifyClientCert",
                name("client_ca_file")
            ));
        }
        ("VerifyClientCertIfGiven", Some(authority)) => Clients::IfGiven(authority),
        ("RequireAndVerifyClientCert", Some(authority)) => Clients::Signed(authority),
        ("VerifyClientCertIfGiven" | "RequireAndVerifyClientCert", None) => {
            return Err(format!("{}: it needs client_ca_file", name("client_auth_type")));
        }
        ("RequestClientCert" | "RequireAnyClientCert", _) => {
            return Err(format!(
                "{}: a certificate that nobody verifies is not asked for here: RequireAndVerifyClientCert, \
                 VerifyClientCertIfGiven or NoClientCert",
                name("client_auth_type")
            ));
        }
        (other, _) => {
            return Err(format!(
                "{}: there is no '{}': RequireAndVerifyClientCert, VerifyClientCertIfGiven or NoClientCert",
                name("client_auth_type"),
                Foreign::from(other)
            ));
        }
    };
    let version = |keys: &mut Keys<'_>, key: &str| match keys.text(key)? {
        None => Ok(None),
        Some("TLS12") => Ok(Some(12)),
        Some("TLS13") => Ok(Some(13)),
        Some(_) => Err(format!("{}: it is TLS12 or TLS13", name(key))),
    };
    let versions = match (version(keys, "min_version")?, version(keys, "max_version")?) {
        (Some(13), Some(12)) => {
            return Err(format!("{}: it is below min_version", name("max_version")));
        }
        (Some(13), _) => Versions::OnlyThirteen,
        (_, Some(12)) => Versions::OnlyTwelve,
        _ => Versions::Both,
    };
    let (Some(certificate), Some(key)) = (certificate, key) else {
        return Err("tls_server_config: it needs cert_file and key_file".into());
    };
    rules.certificates = matches!(clients, Clients::Signed(_));
    rules.tls = Some(Arc::new(tls::server(&certificate, &key, &clients, versions)?));
    Ok(())
}

fn users(mut keys: Keys<'_>) -> Result<BTreeMap<String, String>, String> {
    let mut users = BTreeMap::new();
    let names: Vec<&str> = keys.left.keys().copied().collect();
    for name in names {
        let shown = Foreign::from(name);
        if name.contains(':') {
            return Err(format!("basic_auth_users: '{shown}': a name has no colon"));
        }
        let hash = keys.text(name)?.unwrap_or_default();
        let parts = HashParts::from_str(hash).map_err(|_| {
            format!("basic_auth_users: '{shown}': it is no bcrypt (made by 'htpasswd -nBC 10 {shown}')")
        })?;
        if !(4..=COST).contains(&parts.get_cost()) {
            return Err(format!(
                "basic_auth_users: '{shown}': a cost of {} is not taken: 4 to {COST}",
                parts.get_cost()
            ));
        }
        users.insert(name.to_owned(), hash.to_owned());
    }
    if users.is_empty() {
        return Err("basic_auth_users: it names nobody".into());
    }
    Ok(users)
}

fn headers(mut keys: Keys<'_>) -> Result<String, String> {
    let mut lines = String::new();
    for name in HEADERS {
        let Some(value) = keys.text(name)? else { continue };
        if !value.bytes().all(|b| matches!(b, b' '..=b'~')) {
            return Err(format!("http_server_config.headers.{name}: it is no value of a header"));
        }
        lines.push_str(&format!("{name}: {value}\r\n"));
    }
    keys.end(&[])?;
    Ok(lines)
}
