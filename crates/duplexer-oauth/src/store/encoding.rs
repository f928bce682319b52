//! The bytes of a stored record: generation and expiry as hexadecimal digits, then the content.

use std::time::SystemTime;

use duplexer_oauth_base::clock;
use zeroize::Zeroizing;

use super::{Generation, Record};

/// Length of generation and expiry.
pub(super) const PREFIX: usize = 32;

pub(super) fn encode(record: &Record) -> Zeroizing<Vec<u8>> {
    // The length is known, so that no part of the content is left behind in a smaller buffer.
    let mut bytes = Zeroizing::new(Vec::with_capacity(PREFIX + record.content().len()));
    let expiry = record.expires_at().map_or(0, clock::seconds);
    bytes.extend_from_slice(format!("{:016x}{expiry:016x}", record.generation().0).as_bytes());
    bytes.extend_from_slice(record.content());
    bytes
}

/// Returns `None` if the bytes are no record.
pub(super) fn decode(bytes: &[u8]) -> Option<Record> {
    let (generation, expires_at) = prefix(bytes)?;
    let record = Record::restore(generation, bytes.get(PREFIX..)?.to_vec());
    Some(match expires_at {
        None => record,
        Some(time) => record.until(time),
    })
}

/// Reads generation and expiry.
pub(super) fn prefix(bytes: &[u8]) -> Option<(Generation, Option<SystemTime>)> {
    let text = std::str::from_utf8(bytes.get(..PREFIX)?).ok()?;
    let (generation, expiry) = text.split_at_checked(PREFIX / 2)?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    let expiry = Some(number(expiry)?).filter(|expiry| *expiry != 0);
    Some((Generation(number(generation)?), expiry.map(clock::at)))
}
