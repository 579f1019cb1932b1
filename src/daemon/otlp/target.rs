//! Where metrics are sent, as `--otlp` and OpenTelemetry's environment variables have it.

use std::fmt;
use std::time::Duration;

use ureq::http::HeaderName;
use ureq::http::HeaderValue;
use ureq::http::Uri;

use crate::text::foreign::Foreign;

/// Who receives metrics, and how they are sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// All of the address, path included.
    pub url: String,
    /// Sent with each request. Values may be secrets.
    pub headers: Vec<(String, String)>,
    /// How long a request may take.
    pub timeout: Duration,
    /// Requests are compressed.
    pub gzip: bool,
    /// Time between two exports.
    pub every: Duration,
    /// Attributes of the resource that were named, `service.name` among them.
    pub resource: Vec<(String, String)>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Target").field("url", &self.url).field("headers", &names).finish_non_exhaustive()
    }
}

const METRICS: &str = "/v1/metrics";

impl Target {
    /// From what `--otlp` says (`none`: nowhere, whatever the variables say) and the environment, where a variable that is
    /// empty is as one that is not set. `None`: metrics are not sent.
    ///
    /// # Errors
    /// What is wrong, and with which of them.
    pub fn read(
        option: Option<&str>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let of = |name: &str| environment(name).filter(|value| !value.trim().is_empty());
        // What is of metrics alone goes before what is of all signals.
        let either = |end: &str| {
            let names = [format!("OTEL_EXPORTER_OTLP_METRICS_{end}"), format!("OTEL_EXPORTER_OTLP_{end}")];
            names.into_iter().find_map(|name| of(&name).map(|value| (name, value)))
        };
        let disabled = of("OTEL_SDK_DISABLED").is_some_and(|v| v.trim().eq_ignore_ascii_case("true"));
        let url = match option {
            Some("none") => return Ok(None),
            Some(url) => address(url, true).map_err(|e| format!("'--otlp': {e}"))?,
            None if disabled => return Ok(None),
            None => match either("ENDPOINT") {
                // The variable of metrics has the whole path, the other one what stands before it.
                Some((name, url)) => address(url.trim(), !name.contains("METRICS"))
                    .map_err(|e| format!("environment variable {name}: {e}"))?,
                None => return Ok(None),
            },
        };
        if let Some((name, protocol)) = either("PROTOCOL").filter(|(_, p)| p.trim() != "http/protobuf") {
            let protocol = Foreign::from(protocol);
            return Err(format!(
                "environment variable {name}: '{protocol}' is not spoken here: http/protobuf is"
            ));
        }
        let gzip = match either("COMPRESSION") {
            None => false,
            Some((name, how)) => match how.trim() {
                "gzip" => true,
                "none" => false,
                _ => return Err(format!("environment variable {name}: it is gzip or none")),
            },
        };
        let headers = match either("HEADERS") {
            None => Vec::new(),
            Some((name, text)) => headers(&text).map_err(|e| format!("environment variable {name}: {e}"))?,
        };
        let timeout = either("TIMEOUT").map_or(Ok(Duration::from_secs(10)), |(n, t)| milliseconds(&n, &t))?;
        let name = "OTEL_METRIC_EXPORT_INTERVAL";
        let every = of(name).map_or(Ok(Duration::from_secs(60)), |t| milliseconds(name, &t))?;
        let name = "OTEL_RESOURCE_ATTRIBUTES";
        let mut resource = of(name)
            .map_or(Ok(Vec::new()), |t| pairs(&t))
            .map_err(|e| format!("environment variable {name}: {e}"))?;
        if let Some(service) = of("OTEL_SERVICE_NAME") {
            resource.retain(|(key, _)| key != "service.name");
            resource.push(("service.name".into(), service));
        }
        Ok(Some(Self { url, headers, timeout, gzip, every, resource }))
    }

    /// Whether it is this machine that receives.
    #[must_use]
    pub fn is_here(&self) -> bool {
        let Ok(uri) = self.url.parse::<Uri>() else { return false };
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// An address with the path of metrics, which is added to a base.
fn address(url: &str, base: bool) -> Result<String, String> {
    let wrong = || "write an address: http://127.0.0.1:4318".to_owned();
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err("TLS is not spoken here: send to a collector on this machine, which does".into());
        }
        _ => return Err(wrong()),
    }
    let authority = uri.authority().ok_or_else(wrong)?;
    if authority.as_str().contains('@') {
        return Err("a password does not belong into an address: OTEL_EXPORTER_OTLP_HEADERS has it".into());
    }
    if authority.port().is_none() && authority.as_str().rsplit(']').next().is_some_and(|p| p.contains(':')) {
        return Err(wrong());
    }
    let path = uri.path().trim_end_matches('/');
    let path =
        if base && !path.ends_with(METRICS) { format!("{path}{METRICS}") } else { uri.path().to_owned() };
    let query = uri.query().map_or_else(String::new, |q| format!("?{q}"));
    Ok(format!("http://{authority}{path}{query}"))
}

fn milliseconds(name: &str, text: &str) -> Result<Duration, String> {
    match text.trim().parse() {
        Ok(n) if (1..=86_400_000).contains(&n) => Ok(Duration::from_millis(n)),
        _ => Err(format!("environment variable {name}: it is milliseconds, up to a day")),
    }
}

fn headers(text: &str) -> Result<Vec<(String, String)>, String> {
    let all = pairs(text)?;
    for (name, value) in &all {
        // What is wrong with a value is not shown: it may be a secret.
        if HeaderName::try_from(name.as_str()).is_err() || HeaderValue::try_from(value.as_str()).is_err() {
            return Err(format!(
                "'{}' is no header, or its value cannot be sent",
                Foreign::from(name.clone())
            ));
        }
    }
    Ok(all)
}

/// `key=value,key=value`, with `%2C` and the like in values.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let pieces = text.split(',').map(str::trim).filter(|piece| !piece.is_empty());
    let pair = |piece: &str| {
        let (key, value) = piece.split_once('=').filter(|(key, _)| !key.trim().is_empty())?;
        Some((decoded(key.trim())?, decoded(value.trim())?))
    };
    pieces.map(|piece| pair(piece).ok_or_else(|| "write key=value,key=value".to_owned())).collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let code = digit()? * 16 + digit()?;
        out.push(u8::try_from(code).ok()?);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(option: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<Target>, String> {
        let get = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Target::read(option, &get)
    }

    #[track_caller]
    fn url(option: Option<&str>, variables: &[(&str, &str)], expected: &str) {
        assert_eq!(read(option, variables).unwrap().unwrap().url, expected);
    }

    #[test]
    fn addresses_are_bases_or_whole() {
        const ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        const METRICS: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
        url(Some("http://127.0.0.1:4318"), &[], "http://127.0.0.1:4318/v1/metrics");
        url(Some("http://h:1/a/"), &[(ALL, "http://other")], "http://h:1/a/v1/metrics");
        url(Some("http://[::1]:4318/v1/metrics"), &[], "http://[::1]:4318/v1/metrics");
        url(None, &[(ALL, "http://h:1/?k=v")], "http://h:1/v1/metrics?k=v");
        url(None, &[(ALL, "http://h:1"), (METRICS, "http://m:2/write")], "http://m:2/write");
        url(None, &[(ALL, "http://h:1"), (METRICS, " ")], "http://h:1/v1/metrics");
        assert_eq!(read(None, &[]).unwrap(), None);
        assert_eq!(read(Some("none"), &[(ALL, "rubbish")]).unwrap(), None);
        assert_eq!(read(None, &[(ALL, "http://h"), ("OTEL_SDK_DISABLED", "true")]).unwrap(), None);
        for wrong in
            ["", "h:4318", "127.0.0.1:4318", "https://h", "ftp://h", "http://", "http://u:p@h", "http://h:x"]
        {
            let error = read(Some(wrong), &[]).unwrap_err();
            assert!(error.starts_with("'--otlp': ") && !error.contains("u:p"), "{wrong}: {error}");
        }
    }

    #[test]
    fn everything_else_comes_from_the_environment() {
        let at = Some("http://h");
        let target = read(
            at,
            &[
                ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20abc%3D, x-a = b ,"),
                ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "2500"),
                ("OTEL_EXPORTER_OTLP_TIMEOUT", "1"),
                ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
                ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
                (
                    "OTEL_RESOURCE_ATTRIBUTES",
                    "k8s.node.name=n1,service.name=a,deployment.environment.name=%C3%A4",
                ),
                ("OTEL_SERVICE_NAME", "b"),
            ],
        );
        let target = target.unwrap().unwrap();
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        assert_eq!(target.headers, [pair("authorization", "Basic abc="), pair("x-a", "b")]);
        assert_eq!((target.timeout, target.every), (Duration::from_millis(2500), Duration::from_secs(1)));
        assert!(target.gzip && !format!("{target:?}").contains("abc"));
        let named = ["k8s.node.name", "deployment.environment.name", "service.name"].into_iter();
        let named: Vec<_> = named.zip(["n1", "ä", "b"]).map(|(k, v)| pair(k, v)).collect();
        assert_eq!(target.resource, named);
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_HEADERS", "a"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=secret"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=secret%0a"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=secret%f"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "often"),
            ("OTEL_RESOURCE_ATTRIBUTES", "=x"),
        ] {
            let error = read(at, &[(name, value)]).unwrap_err();
            assert!(error.contains(name) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn here_is_loopback() {
        for (address, here) in [
            ("http://127.0.0.1:1", true),
            ("http://[::1]", true),
            ("http://localhost", true),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(read(Some(address), &[]).unwrap().unwrap().is_here(), here, "{address}");
        }
    }
}
