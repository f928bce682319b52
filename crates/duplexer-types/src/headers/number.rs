//! Exact comparison of numerals by value, for any number of digits.

use crate::json::scan::Scanner;

/// Maximum exponent that is written out. Beyond it a numeral is sent verbatim, so that `1e999999999` stays short.
const MAX_EXPANSION: i64 = 400;

/// Value of a JSON numeral: `digits` times ten to the power of `exponent`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    /// Without leading and trailing zeros; empty for zero.
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Reads a JSON numeral. `None` for other text and for exponents beyond 64 bits.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut scanner = Scanner::new(text);
        let is_numeral = text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
            && scanner.value(0).is_ok_and(|value| value == text);
        if !is_numeral {
            return None;
        }
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse().ok()?),
            None => (text, 0_i64),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let negative = whole.starts_with('-');
        let all = format!("{}{fraction}", whole.trim_start_matches('-'));
        let digits = all.trim_start_matches('0');
        let significant = digits.trim_end_matches('0');
        if significant.is_empty() {
            return Some(Self { negative: false, digits: String::new(), exponent: 0 });
        }
        let shift =
            i64::try_from(digits.len() - significant.len()).ok()? - i64::try_from(fraction.len()).ok()?;
        Some(Self { negative, digits: significant.to_owned(), exponent: exponent.checked_add(shift)? })
    }

    /// Reads a numeral without exponent, the form of a header.
    pub(super) fn read_plain(text: &str) -> Option<Self> {
        if text.contains(['e', 'E']) { None } else { Self::read(text) }
    }

    pub(super) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// Returns the integer in plain digits. `None` if it is not an integer, or too long to write out.
    pub(super) fn integer(&self) -> Option<String> {
        if self.digits.is_empty() {
            return Some("0".to_owned());
        }
        if !(0..=MAX_EXPANSION).contains(&self.exponent) {
            return None;
        }
        let sign = if self.negative { "-" } else { "" };
        let zeros = "0".repeat(usize::try_from(self.exponent).ok()?);
        Some(format!("{sign}{}{zeros}", self.digits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HDR-07: `42` = `42.0`, exact big integers.
    #[test]
    fn equal_values_are_equal_however_they_are_written() {
        for (left, right) in [
            ("42", "42.0"),
            ("42", "4.2e1"),
            ("420E-1", "42"),
            ("0", "-0.00"),
            ("0e99", "0"),
            ("-7", "-7.0"),
            ("100", "1e2"),
            ("9007199254740993", "9007199254740993.0"),
            ("123456789012345678901234567890", "123456789012345678901234567890.00"),
        ] {
            assert_eq!(Decimal::read(left), Decimal::read(right), "{left} {right}");
        }
        for (left, right) in
            [("42", "-42"), ("42", "42.5"), ("9007199254740993", "9007199254740992"), ("1", "10")]
        {
            assert_ne!(Decimal::read(left), Decimal::read(right), "{left} {right}");
        }
    }

    #[test]
    fn only_numerals_are_read() {
        for text in [
            "",
            "-",
            "+1",
            "01",
            "1.",
            ".5",
            "0x1",
            " 1",
            "1 ",
            "1_0",
            "true",
            "\"1\"",
            "1e99999999999999999999",
        ] {
            assert_eq!(Decimal::read(text), None, "{text}");
        }
        assert_eq!(Decimal::read_plain("1e2"), None);
    }

    #[test]
    fn integers_are_written_in_plain_digits() {
        let check = |text: &str, written: Option<&str>| {
            let number = Decimal::read(text).unwrap();
            assert_eq!(number.integer().as_deref(), written, "{text}");
            assert_eq!(number.is_integer(), written.is_some(), "{text}");
        };
        check("42.0", Some("42"));
        check("-1.5e3", Some("-1500"));
        check("-0", Some("0"));
        check("1.5", None);
        assert_eq!(Decimal::read("1e-400").unwrap().integer(), None);
    }
}
