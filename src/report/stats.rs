//! Statistics of repeated measurements: mean and spread, outliers, and how many times as fast one is as another.

use serde::Serialize;

/// The modified Z-score from which on a measurement is an outlier: ten standard deviations, where 1.4826 makes the median
/// absolute deviation of a normal distribution its standard deviation. It is hyperfine's threshold.
pub const OUTLIER: f64 = 1.4826 * 10.0;

/// How far values lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the sample; unknown of one value.
    pub deviation: Option<f64>,
    /// Median.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Spread {
    /// Of some values; `None` of none.
    #[must_use]
    pub fn measure(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let (least, most) =
            (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let deviation = (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
        Some(Self { mean, deviation, median: median(values)?, least, most })
    }
}

/// The one in the middle, or the mean of the two that are; `None` of nothing.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// Modified Z-scores, `(x - median) / MAD`, as hyperfine has them (Iglewicz and Hoaglin 1993). Where more than half of the
/// values are the same, any other lies infinitely far away: 2^-52 stands for their deviation.
#[must_use]
pub fn scores(values: &[f64]) -> Vec<f64> {
    let Some(middle) = median(values) else { return Vec::new() };
    let apart: Vec<f64> = values.iter().map(|x| (x - middle).abs()).collect();
    let deviation = median(&apart).filter(|mad| *mad > 0.0).unwrap_or(f64::EPSILON);
    values.iter().map(|x| (x - middle) / deviation).collect()
}

/// A ratio and its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The ratio of the means.
    pub factor: f64,
    /// Its error; `None` where one of the two was measured once.
    pub error: Option<f64>,
}

impl Ratio {
    /// How many times as fast `now` was as `then`. The errors of both are independent, so that relative ones add up in
    /// quadrature; they are the standard deviations of single runs, as hyperfine takes them.
    #[must_use]
    pub fn between(then: &Spread, now: &Spread) -> Option<Self> {
        if then.mean <= 0.0 || now.mean <= 0.0 {
            return None;
        }
        let factor = then.mean / now.mean;
        let error = then.deviation.zip(now.deviation);
        let error = error.map(|(a, b)| factor * ((a / then.mean).powi(2) + (b / now.mean).powi(2)).sqrt());
        Some(Self { factor, error })
    }

    /// The other way round.
    #[must_use]
    pub fn inverse(self) -> Self {
        let factor = 1.0 / self.factor;
        Self { factor, error: self.error.map(|e| e / self.factor * factor) }
    }

    /// `15.9 ± 0.3`: with as many digits as it takes for the error not to look like none.
    #[must_use]
    pub fn words(self) -> String {
        let mut digits = if self.factor < 1.995 { 2 } else { 1 };
        let error = self.error.map_or_else(String::new, |e| {
            while digits < 4 && e > 0.0 && e < 0.5 * 10_f64.powi(-digits) {
                digits += 1;
            }
            format!(" ± {e:.*}", usize::try_from(digits).unwrap_or(1))
        });
        format!("{:.*}{error}", usize::try_from(digits).unwrap_or(1), self.factor)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn outliers(values: &[f64]) -> usize {
        scores(values).iter().filter(|s| s.abs() > OUTLIER).count()
    }

    #[test]
    fn spread_by_hand() {
        let s = Spread::measure(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((s.mean, s.deviation, s.median, s.least, s.most), (2.0, Some(1.0), 2.0, 1.0, 3.0));
        // Squares 9, 1, 1, 1, 0, 0, 4, 16: 32 / 7.
        let s = Spread::measure(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((s.mean, s.median), (5.0, 4.5));
        assert!((s.deviation.unwrap() - 2.138_089_935).abs() < 1e-9);
        let one = Spread::measure(&[4.0]).unwrap();
        assert_eq!((one.deviation, one.median), (None, 4.0), "of one value it is not known, and not 0");
        assert_eq!(Spread::measure(&[]), None);
    }

    /// The figures of hyperfine's own tests.
    #[test]
    fn outliers_as_hyperfine_has_them() {
        let normal = [
            2.332_694_88,
            1.421_959_07,
            -0.575_277_0,
            -0.312_934_37,
            2.294_815_8,
            0.758_132_73,
            -1.071_238_8,
            -0.963_947_41,
            -1.158_974_46,
            1.109_762_85,
        ];
        assert_eq!(outliers(&normal), 0);
        assert_eq!(outliers(&[&normal[..], &[20.0, -500.0]].concat()), 2);
        for (values, n) in [
            (&[][..], 0),
            (&[50.0], 0),
            (&[1000.0, 0.0], 0),
            (&[-0.2, 0.0, 0.2], 0),
            (&[-0.2, 0.0, 0.2, 4.0], 1),
            (&[0.5, 0.30, 0.29, 0.31, 0.30], 1),
            (&[10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 100.0], 1),
        ] {
            assert_eq!(outliers(values), n, "{values:?}");
        }
        // Median 3, deviations 2 1 0 1 97: MAD 1.
        assert_eq!(scores(&[1.0, 2.0, 3.0, 4.0, 100.0]), [-2.0, -1.0, 0.0, 1.0, 97.0]);
    }

    #[test]
    fn a_ratio_carries_the_error_of_both() {
        let s = |mean, deviation| Spread { mean, deviation, median: mean, least: mean, most: mean };
        // 10 ± 1 by 4 ± 0.3: 2.5 × √(0.1² + 0.075²) = 2.5 × 0.125.
        let r = Ratio::between(&s(10.0, Some(1.0)), &s(4.0, Some(0.3))).unwrap();
        assert_eq!(r.factor, 2.5);
        assert!((r.error.unwrap() - 0.3125).abs() < 1e-12);
        assert_eq!(r.words(), "2.5 ± 0.3");
        let back = r.inverse();
        assert!((back.factor - 0.4).abs() < 1e-12 && (back.error.unwrap() - 0.05).abs() < 1e-12);
        assert_eq!(back.words(), "0.40 ± 0.05");
        assert_eq!(Ratio { factor: 15.93, error: Some(0.004) }.words(), "15.930 ± 0.004");
        assert_eq!(Ratio::between(&s(10.0, Some(1.0)), &s(4.0, None)).unwrap().words(), "2.5");
        assert_eq!(Ratio::between(&s(0.0, None), &s(4.0, None)), None);
    }
}
