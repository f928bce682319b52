//! Length of the text without special characters of a JSON string. Scanner and writer share it.

/// Returns the number of bytes before the first quote, backslash or control character.
///
/// Most strings are short, so the first bytes are compared eight at a time. Longer ones are compared in blocks that the
/// compiler vectorizes.
pub(crate) fn plain_prefix(bytes: &[u8]) -> usize {
    let (near, far) = bytes.split_at(bytes.len().min(BLOCK));
    let found = plain_words(near);
    if found < near.len() || far.is_empty() {
        return found;
    }
    let (blocks, _) = far.as_chunks::<BLOCK>();
    let plain = BLOCK * blocks.iter().take_while(|block| is_plain(block)).count();
    near.len() + plain + plain_words(far.get(plain..).unwrap_or_default())
}

const BLOCK: usize = 64;

/// Has no branch, so that the compiler can vectorize it.
fn is_plain(block: &[u8; BLOCK]) -> bool {
    let special = |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    block.iter().fold(0, |found, byte| found | special(*byte)) == 0
}

fn plain_words(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // Flipping this bit moves the quote directly above the control characters: one comparison covers both.
        let low = word ^ (ONES * 0x02);
        let backslash = word ^ (ONES * u64::from(b'\\'));
        // The lowest marked byte is exact: a borrow can mark only bytes above a marked one.
        let found = (low.wrapping_sub(ONES * 0x21) & !low) | (backslash.wrapping_sub(ONES) & !backslash);
        if found & HIGH != 0 {
            return index * 8 + ((found & HIGH).trailing_zeros() / 8) as usize;
        }
    }
    let tail = words.len() * 8;
    tail + rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_recognized_at_every_position() {
        for byte in 0..=0x7F_u8 {
            for position in 0..200 {
                let mut bytes = [b'x'; 200];
                bytes[position] = byte;
                let ends = matches!(byte, b'"' | b'\\' | 0..0x20);
                assert_eq!(
                    plain_prefix(&bytes),
                    if ends { position } else { 200 },
                    "{byte:#x} at {position}"
                );
            }
        }
    }
}
