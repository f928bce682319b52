//! Numbers as mathematics has them: `1.0` is `1`, and no comparison rounds.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde_json::Number;

/// Doubles of at least this magnitude do not fit into an `i128`.
const INTEGER_LIMIT: f64 = 1.0e38;

/// The value of a JSON number.
#[derive(Clone, Copy)]
pub(crate) enum Num {
    Integer(i128),
    /// Has a fraction, or lies beyond the limit of integers.
    Double(f64),
}

impl Num {
    pub(crate) fn of(number: &Number) -> Self {
        if let Some(integer) = number.as_i64() {
            return Self::Integer(integer.into());
        }
        if let Some(integer) = number.as_u64() {
            return Self::Integer(integer.into());
        }
        // Without `arbitrary_precision` every other number is a finite double.
        let double = number.as_f64().unwrap_or_default();
        if double.fract() == 0.0 && double.abs() < INTEGER_LIMIT {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "it has no fraction and is below the limit"
            )]
            return Self::Integer(double as i128);
        }
        Self::Double(double)
    }

    pub(crate) fn is_integer(self) -> bool {
        match self {
            Self::Integer(_) => true,
            Self::Double(double) => double.fract() == 0.0,
        }
    }

    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(one), Self::Integer(two)) => one.cmp(&two),
            (Self::Double(one), Self::Double(two)) => one.partial_cmp(&two).unwrap_or(Ordering::Equal),
            (Self::Integer(one), Self::Double(two)) => compare_mixed(one, two),
            (Self::Double(one), Self::Integer(two)) => compare_mixed(two, one).reverse(),
        }
    }

    pub(crate) fn hash(self, hasher: &mut impl Hasher) {
        match self {
            Self::Integer(integer) => integer.hash(hasher),
            Self::Double(double) => double.to_bits().hash(hasher),
        }
    }
}

/// Compares an integer with a double that is none, or is too large to be one.
fn compare_mixed(integer: i128, double: f64) -> Ordering {
    if double >= INTEGER_LIMIT {
        return Ordering::Less;
    }
    if double <= -INTEGER_LIMIT {
        return Ordering::Greater;
    }
    #[expect(clippy::cast_possible_truncation, reason = "its magnitude is below the limit")]
    let floor = double.floor() as i128;
    if integer <= floor { Ordering::Less } else { Ordering::Greater }
}

/// A number as `digits * 10^exponent`, the shortest decimal text that reads back as the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    /// The magnitude of a number; its sign does not matter to divisibility.
    pub(crate) fn of(number: &Number) -> Self {
        if let Some(integer) = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs)) {
            return Self { digits: integer.into(), exponent: 0 };
        }
        let text = format!("{:e}", number.as_f64().unwrap_or_default().abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let shift = i32::try_from(fraction.len()).unwrap_or_default();
        Self {
            digits: format!("{whole}{fraction}").parse().unwrap_or_default(),
            exponent: exponent.parse::<i32>().unwrap_or_default() - shift,
        }
    }

    /// Whether this number is an integer times `divisor`.
    pub(crate) fn is_multiple_of(self, divisor: Self) -> bool {
        if self.digits == 0 {
            return true;
        }
        if divisor.digits == 0 {
            return false;
        }
        let shift = self.exponent - divisor.exponent;
        let Ok(up) = u32::try_from(shift) else {
            // Digits are at most 20 long: a divisor that overflows is larger than they are.
            let scaled =
                10_u128.checked_pow(shift.unsigned_abs()).and_then(|power| power.checked_mul(divisor.digits));
            return scaled.is_some_and(|scaled| self.digits.is_multiple_of(scaled));
        };
        // Digits are below 2^64, so the products fit.
        let modulus = divisor.digits;
        let mut rest = self.digits % modulus;
        for _ in 0..up {
            rest = rest * 10 % modulus;
            if rest == 0 {
                return true;
            }
        }
        rest == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn numbers_are_compared_without_rounding() {
        let check = |one: &str, two: &str, expected: Ordering| {
            let (one_num, two_num) = (Num::of(&number(one)), Num::of(&number(two)));
            assert_eq!(one_num.compare(two_num), expected, "{one} and {two}");
            assert_eq!(two_num.compare(one_num), expected.reverse(), "{two} and {one}");
        };
        check("1", "1.0", Ordering::Equal);
        check("9007199254740993", "9007199254740992.0", Ordering::Greater);
        check("18446744073709551615", "18446744073709551616", Ordering::Less);
        check("-1", "-1.5", Ordering::Greater);
        check("1", "1.5", Ordering::Less);
        check("1e300", "5", Ordering::Greater);
        check("-1e300", "-5", Ordering::Less);
        check("1e300", "1e301", Ordering::Less);
    }

    #[test]
    fn divisibility_is_decimal() {
        let check = |one: &str, two: &str, expected: bool| {
            let divides = Decimal::of(&number(one)).is_multiple_of(Decimal::of(&number(two)));
            assert_eq!(divides, expected, "{one} by {two}");
        };
        check("0.3", "0.1", true);
        check("4.35", "0.01", true);
        check("0.0075", "0.0001", true);
        check("0.00751", "0.0001", false);
        check("12391239123", "1e-8", true);
        check("1e308", "0.5", true);
        check("1e308", "0.123456789", false);
        check("7", "2", false);
        check("-10", "5", true);
        check("4.5", "1.5", true);
        check("1e-300", "1e300", false);
        check("0", "3", true);
        check("18446744073709551615", "5", true);
        check("1.7976931348623157e308", "18446744073709551615", false);
    }
}
