//! Tables in the kernel as metrics.

use super::*;
use crate::room::Kind;
use crate::room::Table;

#[test]
fn tables_have_series_and_what_is_not_known_has_none() {
    let mut sums = sums(10, vec![sample(1000, 2)], &fixtures::plan(&[]));
    assert!(!crate::daemon::exposition::prometheus(&sums).contains("pagecache_table_"));
    sums.tables = vec![
        Table { kind: Kind::Threads, room: Some(16384), used: Some(0), bytes: Some(1 << 33) },
        Table { kind: Kind::Direct, room: Some(16384), used: None, bytes: Some(5) },
        Table { kind: Kind::Other, room: None, used: None, bytes: None },
    ];
    let all = parsed(&crate::daemon::exposition::prometheus(&sums));
    let told: HashMap<_, _> = all.iter().filter(|(s, _)| s.starts_with("pagecache_table_")).collect();
    let want = [
        ("pagecache_table_entries{table=\"threads\"}", 0.0),
        ("pagecache_table_capacity{table=\"threads\"}", 16384.0),
        ("pagecache_table_capacity{table=\"requests_direct\"}", 16384.0),
        ("pagecache_table_bytes{table=\"threads\"}", (1_u64 << 33) as f64),
        ("pagecache_table_bytes{table=\"requests_direct\"}", 5.0),
    ];
    assert_eq!(told.len(), want.len(), "{told:?}");
    for (series, n) in want {
        assert!((all[series] - n).abs() < 1e-9, "{series}");
    }
    let (protobuf, _) = of_protobuf(&exposition(&sums, Format::Protobuf));
    assert!(told.keys().all(|series| protobuf.contains_key(*series)), "{protobuf:?}");
    assert!(
        crate::daemon::exposition::open_metrics(&sums).contains("# TYPE pagecache_table_entries gauge\n")
    );
}
