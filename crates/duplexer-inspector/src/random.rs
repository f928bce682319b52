//! Names that cannot be guessed.

use std::fmt::Write as _;

/// Returns 256 random bits as hexadecimal digits.
pub(crate) fn name() -> Result<String, getrandom::Error> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits)?;
    let mut text = String::with_capacity(64);
    for byte in bits {
        // Writing into memory cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
