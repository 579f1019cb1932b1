//! Who asks badly, slowly, often, or with wrong passwords gets an answer, or none, and keeps nobody else from theirs.
#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rustls::ClientConfig;
use rustls::ClientConnection;
use rustls::RootCertStore;
use rustls::StreamOwned;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

use super::*;

/// A good one is answered within this, whatever others do, on a machine that is slow and busy.
const SOON: Duration = Duration::from_secs(30);

fn here(name: &str) -> String {
    format!("{}/tests/web/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn serving(rules: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("web.yml");
    std::fs::write(&path, rules).unwrap();
    let web = Web::read(Some(&path)).unwrap();
    let sums = Arc::new(Mutex::new(Sums::new(10, Duration::from_secs(1))));
    std::thread::spawn(move || Server::new(vec![listener.into()], web, &sums).unwrap().serve());
    address
}

fn with_tls(more: &str) -> String {
    format!(
        "tls_server_config: {{cert_file: {}, key_file: {}{more}}}\n",
        here("server.pem"),
        here("server.key")
    )
}

fn connect(address: SocketAddr) -> TcpStream {
    // Where too many wait already, the kernel drops what comes next, and it is tried again.
    let stream = TcpStream::connect_timeout(&address, SOON).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

fn all_of(mut from: impl std::io::Read) -> String {
    let mut out = Vec::new();
    let _ = from.read_to_end(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn ask(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(address);
    let _ = stream.write_all(request);
    all_of(stream)
}

fn get(more: &str) -> Vec<u8> {
    format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{more}\r\n").into_bytes()
}

fn password(user: &str, password: &str) -> String {
    use base64::Engine as _;
    let both = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    format!("Authorization: Basic {both}\r\n")
}

fn client(certificate: Option<&str>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(here("ca.pem")).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    Arc::new(match certificate {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let chain = vec![CertificateDer::from_pem_file(here(&format!("{name}.pem"))).unwrap()];
            let key = PrivateKeyDer::from_pem_file(here(&format!("{name}.key"))).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    })
}

fn ask_tls(address: SocketAddr, config: &Arc<ClientConfig>, request: &[u8]) -> String {
    let connection = ClientConnection::new(Arc::clone(config), "localhost".try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(connection, connect(address));
    let _ = stream.write_all(request);
    all_of(stream)
}

#[track_caller]
fn is(answer: &str, status: &str) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "not {status}: {answer}");
}

#[test]
fn head_is_never_answered_with_a_body() {
    let address = serving("{}");
    for path in ["/metrics", "/", "/healthz", "/no/such", "/etc/passwd"] {
        let [head, get] =
            ["HEAD", "GET"].map(|m| ask(address, format!("{m} {path} HTTP/1.1\r\n\r\n").as_bytes()));
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        assert_eq!(head.lines().next(), get.lines().next());
    }
    let hash = bcrypt::hash("secret", 4).unwrap();
    let address = serving(&format!("basic_auth_users: {{me: '{hash}'}}\n"));
    let out = ask(address, b"HEAD /metrics HTTP/1.1\r\n\r\n");
    is(&out, "401 Unauthorized");
    assert!(out.ends_with("\r\n\r\n"), "{out}");
}

#[test]
fn requests_get_their_answers() {
    let address = serving("http_server_config: {headers: {X-Frame-Options: deny}}");
    for (request, answer) in [
        (&b"GET /metrics?x=1 HTTP/1.0\r\n\r\n"[..], "200 OK"),
        (b"GET / HTTP/1.1\r\n\r\n", "200 OK"),
        (b"GET /healthz HTTP/1.1\r\n\r\n", "503 Service Unavailable"),
        (b"GET /etc/passwd HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"GET http://x:9950/metrics HTTP/1.1\r\n\r\n", "200 OK"),
        (b"GET HTTP://x?a HTTP/1.1\r\n\r\n", "200 OK"),
        (b"GET http://x/metrics/ HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"GET x/metrics HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"GET /metrics HTTP/9\r\n\r\n", "400 Bad Request"),
        (b"\xff\x00\r\n\r\n", "400 Bad Request"),
        // Many at once: the first is answered, and all of the answer comes, whatever else was said.
        (b"GET /metrics HTTP/1.1\r\n\r\nGET /x HTTP/1.1\r\n\r\n".repeat(1000).as_slice(), "200 OK"),
        (
            &[b"GET / HTTP/1.1\r\nX: ".as_slice(), &vec![b'a'; 100_000]].concat(),
            "431 Request Header Fields Too Large",
        ),
    ] {
        let out = ask(address, request);
        is(&out, answer);
        let (head, body) = out.split_once("\r\n\r\n").unwrap();
        assert!(out.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
        assert!(out.contains("\r\nX-Frame-Options: deny\r\n"), "{head}");
    }
    // A byte at a time.
    let mut stream = connect(address);
    for byte in b"GET /metrics HTTP/1.1\r\n\r\n" {
        stream.write_all(&[*byte]).unwrap();
    }
    is(&all_of(stream), "200 OK");
}

#[test]
fn passwords_let_in_whom_they_should() {
    let hash = bcrypt::hash("right", 5).unwrap();
    let address =
        serving(&format!("basic_auth_users: {{me: '{hash}', you: '{}'}}\n", bcrypt::hash("", 4).unwrap()));
    is(&ask(address, &get(&password("me", "right"))), "200 OK");
    is(&ask(address, &get(&password("you", ""))), "200 OK");
    // Known by now; the name of the header and of the scheme are of any case.
    let again = password("me", "right").replace("Authorization: Basic", "aUTHORIZATION:  bASIC");
    is(&ask(address, &get(&again)), "200 OK");
    for wrong in [
        String::new(),
        password("me", "wrong"),
        password("me", ""),
        password("you", "right"),
        password("", ""),
        password("nobody", "right"),
        password("me", "right\0"),
        password("me", &"x".repeat(3000)),
        format!("X: y\r\n\r\n{}", password("me", "right")),
        "Authorization: Basic\r\n".into(),
        "Authorization: Basic !!!\r\n".into(),
        "Authorization: Basic bWU=\r\n".into(),
        "Authorization: Bearer bWU6cmlnaHQ=\r\n".into(),
        password("me", "wrong") + &password("me", "right"),
    ] {
        let out = ask(address, &get(&wrong));
        is(&out, "401 Unauthorized");
        assert!(out.contains("\r\nWWW-Authenticate: Basic realm="), "{out}");
    }
    // All that is there wants it, and what is not there, too.
    for path in ["/", "/healthz", "/nothing"] {
        is(&ask(address, format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()), "401 Unauthorized");
    }
    is(&ask(address, b"POST / HTTP/1.1\r\n\r\n"), "401 Unauthorized");
}

#[test]
fn tls_is_spoken_and_certificates_are_wanted() {
    let address = serving(&with_tls(""));
    is(&ask_tls(address, &client(None), &get("")), "200 OK");
    is(&ask(address, &get("")), "400 Bad Request: this is HTTPS");
    assert!(!ask_tls(address, &client(None), &vec![b'a'; 20_000]).contains("200"));
    let signed =
        format!(", client_auth_type: RequireAndVerifyClientCert, client_ca_file: {}", here("ca.pem"));
    let address = serving(&with_tls(&signed));
    is(&ask_tls(address, &client(Some("client")), &get("")), "200 OK");
    for other in [None, Some("stranger")] {
        assert_eq!(ask_tls(address, &client(other), &get("")), "", "{other:?}");
    }
}

/// All of it at once, while one who has the password asks again and again.
#[test]
fn nobody_keeps_a_good_one_from_its_answer() {
    let hash = bcrypt::hash("right", 8).unwrap();
    let address = serving(&format!("{}basic_auth_users: {{me: '{hash}'}}\n", with_tls("")));
    let (done, tried) = (AtomicBool::new(false), AtomicU64::new(0));
    let config = client(None);
    let good = || {
        let began = Instant::now();
        let mut n = 0;
        // One of so many at once may be the oldest of them: whoever scrapes comes again.
        loop {
            let out = ask_tls(address, &config, &get(&password("me", "right")));
            n += 1;
            if out.starts_with("HTTP/1.1 200 OK\r\n") {
                return (began.elapsed(), n);
            }
            assert!(began.elapsed() < SOON, "{n} times: {out}");
        }
    };
    good();
    let once = |request: &[u8]| {
        let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) else {
            return None;
        };
        stream.write_all(request).ok()?;
        tried.fetch_add(1, Relaxed);
        Some(stream)
    };
    let until_done = |attack: &dyn Fn()| {
        while !done.load(Relaxed) {
            attack();
            // There is one machine for all of them.
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    std::thread::scope(|scope| {
        // Half a handshake, and then nothing.
        scope.spawn(|| {
            let kept = Mutex::new(std::collections::VecDeque::new());
            until_done(&|| {
                let mut kept = kept.lock().unwrap();
                kept.extend(once(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"));
                // They stay, some hundreds of them.
                if kept.len() > 300 {
                    kept.pop_front();
                }
            });
        });
        // Garbage, in records and without.
        scope.spawn(|| until_done(&|| drop(once(&[0x16, 3, 3, 0xff, 0xff].repeat(5000)))));
        scope.spawn(|| until_done(&|| drop(once(&[0xff; 9000]))));
        // Wrong passwords, another each time.
        scope.spawn(|| {
            let n = AtomicU64::new(0);
            until_done(&|| {
                let wrong = password("me", &n.fetch_add(1, Relaxed).to_string());
                let out = ask_tls(address, &config, &get(&wrong));
                assert!(!out.contains("200 OK"), "{out}");
            });
        });
        let idle: Vec<_> = (0..300).filter_map(|_| once(b"\x16")).collect();
        let slow: Vec<_> = (0..5).map(|_| good()).collect();
        drop(idle);
        done.store(true, Relaxed);
        println!("{} attempts; {slow:?}", tried.load(Relaxed));
    });
    good();
}
