//! Every key is heeded or refused, nothing secret is told, and what guards less is not taken while it runs.
#![allow(clippy::unwrap_used)]

use std::fs;

use super::*;

fn here(name: &str) -> String {
    format!("{}/tests/web/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn said_by(text: &str) -> Result<Rules, String> {
    let dir = tempfile::tempdir().unwrap();
    for name in ["server.pem", "server.key", "client.key", "ca.pem"] {
        fs::copy(here(name), dir.path().join(name)).unwrap();
    }
    fs::write(dir.path().join("empty.pem"), "").unwrap();
    let path = dir.path().join("web.yml");
    fs::write(&path, text).unwrap();
    config::read(&path)
}

const HASH: &str = "$2y$04$zVHpGRHYgqQm4cPRhTZ2wOpIfXK7hKpNmBsdWbmuMNdUOaFDkzBhC";
const TLS: &str = "tls_server_config: {cert_file: server.pem, key_file: server.key";

#[test]
fn what_is_said_holds() {
    let rules = said_by("").unwrap();
    assert!(rules.tls.is_none() && rules.users.is_empty() && !rules.closed());
    let rules = said_by(&format!("{TLS}}}\n")).unwrap();
    assert!(rules.tls.is_some() && !rules.closed());
    let rules = said_by(&format!("{TLS}}}\nbasic_auth_users: {{a: {HASH}, 'b c': {HASH}}}\n")).unwrap();
    assert!(rules.closed() && rules.users.len() == 2);
    let all = format!(
        "{TLS}, client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem, min_version: TLS13, \
         max_version: TLS13}}\nhttp_server_config:\n  http2: false\n  headers: {{X-Frame-Options: deny}}\n"
    );
    let rules = said_by(&all).unwrap();
    assert!(rules.closed() && rules.certificates);
    assert_eq!((rules.headers.as_str(), rules.files.len()), ("X-Frame-Options: deny\r\n", 4));
    let given =
        said_by(&format!("{TLS}, client_auth_type: VerifyClientCertIfGiven, client_ca_file: ca.pem}}"))
            .unwrap();
    assert!(!given.certificates && !given.closed());
}

#[test]
fn what_is_not_heeded_is_refused_and_named() {
    for (text, said) in [
        ("tls_server_config: {}", "cert_file and key_file"),
        ("tls_server_config: {cert_file: server.pem}", "cert_file and key_file"),
        ("tls_server_config: 7", "tls_server_config: 'key: value'"),
        ("tls_server_conf: {}", "tls_server_conf: there is no such key"),
        ("rate_limit: {}\n", ""),
        ("rate_limit: {burst: 2}\n", "rate_limit: this is not done here"),
        ("basic_auth_users: {}", "it names nobody"),
        ("basic_auth_users: {a: secret}", "'a': it is no bcrypt"),
        ("basic_auth_users: {\"a\\e[2J\": secret}", "'a\\x1b[2J'"),
        ("basic_auth_users: {'a:b': secret}", "no colon"),
        ("basic_auth_users: {1: secret}", "a key is no text"),
        ("http_server_config: {http2: true}", "HTTP/1.1"),
        ("http_server_config: {headers: {Server: x}}", "headers.Server: there is no such key"),
        ("http_server_config: {headers: {X-Frame-Options: \"a\\r\\nb\"}}", "no value of a header"),
        ("a: 1\na: 1\n", "duplicated key"),
        ("a: [", "line 2, column 1: "),
        ("---\n{}\n---\n{}\n", "more than one document"),
    ] {
        match said_by(text) {
            Ok(_) => assert_eq!(said, "", "{text}"),
            Err(e) => {
                assert!(e.contains(said) && e.contains("web.yml: ") && !e.contains("secret"), "{text}: {e}")
            }
        }
    }
    for (keys, said) in [
        ("cipher_suites: [x]", "tls_server_config.cipher_suites: this is not done here"),
        ("client_allowed_sans: [x]", "client_allowed_sans: this is not done here"),
        ("ciphers: x", "ciphers: there is no such key"),
        ("min_version: TLS10", "min_version: it is TLS12 or TLS13"),
        ("min_version: 1.2", "min_version: it is a text"),
        ("min_version: TLS13, max_version: TLS12", "below min_version"),
        ("client_ca_file: ca.pem", "it needs client_auth_type"),
        ("client_auth_type: RequireAndVerifyClientCert", "it needs client_ca_file"),
        ("client_auth_type: RequireAnyClientCert", "nobody verifies"),
        ("client_auth_type: Yes", "there is no 'Yes'"),
        ("client_auth_type: RequireAndVerifyClientCert, client_ca_file: not-there.pem", "not-there.pem"),
        ("client_auth_type: RequireAndVerifyClientCert, client_ca_file: empty.pem", "no certificate in it"),
    ] {
        let e = said_by(&format!("{TLS}, {keys}}}\n")).unwrap_err();
        assert!(e.contains(said), "{keys}: {e}");
    }
    let e = said_by("tls_server_config: {cert_file: server.pem, key_file: client.key}").unwrap_err();
    assert!(e.contains("server.pem and its key"), "{e}");
    let e = said_by("tls_server_config: {cert_file: server.key, key_file: server.pem}").unwrap_err();
    assert!(e.contains("server.key"), "{e}");
    // A hash that would take a day.
    let e = said_by(&format!("basic_auth_users: {{a: {}}}", HASH.replace("$04$", "$31$"))).unwrap_err();
    assert!(e.contains("a cost of 31") && !e.contains("zVHp"), "{e}");
    assert!(config::read(Path::new("/dev/zero")).is_err_and(|e| e.contains("/dev/zero")));
    assert!(config::read(Path::new("/proc/self")).is_err());
}

fn fifo(path: &Path) {
    let _ = fs::remove_file(path);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
}

/// Nobody writes to any of them: what waited would wait for ever.
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let path = at("web.yml");
    let good = || {
        for name in ["server.pem", "server.key", "ca.pem"] {
            let _ = fs::remove_file(at(name));
            fs::copy(here(name), at(name)).unwrap();
        }
        let _ = fs::remove_file(&path);
        let clients = "client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem";
        fs::write(&path, format!("{TLS}, {clients}}}\n")).unwrap();
    };
    good();
    let mut web = Web::read(Some(&path)).unwrap();
    let mut now = || {
        web.looked = Instant::now().checked_sub(LOOK).unwrap();
        Arc::clone(web.now())
    };
    for name in ["web.yml", "server.pem", "server.key", "ca.pem"] {
        let before = now();
        fifo(&at(name));
        let e = config::read(&path).unwrap_err();
        assert!(e.contains(name) && e.ends_with("it is no regular file"), "{e}");
        // What runs goes on as it was, and takes what is put right.
        assert!(Arc::ptr_eq(&before, &now()), "{name}");
        good();
        assert!(!Arc::ptr_eq(&before, &now()), "{name}");
    }
}

#[test]
fn files_that_have_changed_hold_unless_they_guard_less() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("web.yml");
    for name in ["server.pem", "server.key"] {
        fs::copy(here(name), dir.path().join(name)).unwrap();
    }
    let both = format!("{TLS}}}\nbasic_auth_users: {{a: {HASH}}}\n");
    fs::write(&path, &both).unwrap();
    let mut web = Web::read(Some(&path)).unwrap();
    let mut now = || {
        web.looked = Instant::now().checked_sub(LOOK).unwrap();
        Arc::clone(web.now())
    };
    let first = now();
    assert!(Arc::ptr_eq(&first, &now()));
    // As it is while somebody writes it, and what somebody may wish.
    for less in
        ["", "basic_auth_users: {", &format!("{TLS}}}\n"), &format!("basic_auth_users: {{a: {HASH}}}\n")]
    {
        fs::write(&path, less).unwrap();
        assert!(Arc::ptr_eq(&first, &now()), "{less}");
    }
    fs::remove_file(&path).unwrap();
    assert!(Arc::ptr_eq(&first, &now()));
    fs::write(&path, both.replace("{a:", "{b:")).unwrap();
    let second = now();
    assert!(second.users.contains_key("b") && second.closed());
    // A certificate without its key, for a moment; then both.
    fs::copy(here("client.pem"), dir.path().join("server.pem")).unwrap();
    assert!(Arc::ptr_eq(&second, &now()));
    fs::copy(here("client.key"), dir.path().join("server.key")).unwrap();
    assert!(!Arc::ptr_eq(&second, &now()));
}
