//! One and several.

/// So many, as plain digits, with the words that go with one of them, or with several: `1 file`, `3 files`.
#[must_use]
pub fn many(n: u64, one: &str, several: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        assert_eq!(
            [0, 1, 21].map(|n| many(n, "file is", "files are")),
            ["0 files are", "1 file is", "21 files are"]
        );
    }
}
