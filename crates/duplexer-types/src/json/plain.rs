//! Length of the text without special characters of a JSON string. Scanner and writer share it.

/// Returns the number of bytes before the first quote, backslash or control character.
///
/// Most names and many values end within the first word, so that this case is inlined.
#[inline]
pub(crate) fn plain_prefix(bytes: &[u8]) -> usize {
    let Some((word, rest)) = bytes.split_first_chunk() else { return short_prefix(bytes) };
    match special(*word) {
        0 => WORD + long_prefix(rest),
        special => first_of(special),
    }
}

const WORD: usize = size_of::<u64>();
const BLOCK: usize = 64;

/// Compares the first bytes in words, and the others in blocks that the compiler vectorizes.
fn long_prefix(bytes: &[u8]) -> usize {
    let (near, far) = bytes.split_at(bytes.len().min(BLOCK));
    let found = word_prefix(near);
    if found < near.len() || far.is_empty() {
        return found;
    }
    let (blocks, _) = far.as_chunks::<BLOCK>();
    let plain = BLOCK * blocks.iter().take_while(|block| is_plain(block)).count();
    near.len() + plain + word_prefix(far.get(plain..).unwrap_or_default())
}

/// Has no branch, so that the compiler can vectorize it. In words, because a build for size vectorizes nothing.
fn is_plain(block: &[u8; BLOCK]) -> bool {
    let (words, _) = block.as_chunks();
    words.iter().fold(0, |found, word| found | special(*word)) == 0
}

fn word_prefix(bytes: &[u8]) -> usize {
    let (words, _) = bytes.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let special = special(*word);
        if special != 0 {
            return index * WORD + first_of(special);
        }
    }
    // The last word overlaps bytes that are known to be plain.
    let Some(last) = bytes.last_chunk() else { return short_prefix(bytes) };
    match special(*last) {
        0 => bytes.len(),
        special => bytes.len() - WORD + first_of(special),
    }
}

/// For fewer bytes than a word has.
fn short_prefix(bytes: &[u8]) -> usize {
    // Two halves that can overlap show whether all are plain.
    if let (Some([a, b, c, d]), Some([e, f, g, h])) = (bytes.first_chunk(), bytes.last_chunk())
        && special([*a, *b, *c, *d, *e, *f, *g, *h]) == 0
    {
        return bytes.len();
    }
    bytes.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count()
}

/// Marks the special bytes of a word. The first mark is exact: a borrow can mark only bytes after a marked one.
#[inline]
fn special(word: [u8; WORD]) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; WORD]);
    let word = u64::from_le_bytes(word);
    // Flipping this bit moves the quote directly above the control characters: one comparison covers both.
    let low = word ^ (ONES * 0x02);
    let backslash = word ^ (ONES * u64::from(b'\\'));
    let found = (low.wrapping_sub(ONES * 0x21) & !low) | (backslash.wrapping_sub(ONES) & !backslash);
    found & (ONES << 7)
}

/// Returns the position of the first marked byte.
#[inline]
fn first_of(special: u64) -> usize {
    (special.trailing_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_recognized_at_every_position() {
        for byte in 0..=0xFF_u8 {
            let ends = matches!(byte, b'"' | b'\\' | 0..0x20);
            for length in (1..=24).chain([63, 64, 65, 71, 72, 73, 80, 136, 137, 200]) {
                for position in 0..length {
                    let mut bytes = vec![b'x'; length];
                    bytes[position] = byte;
                    let expected = if ends { position } else { length };
                    assert_eq!(plain_prefix(&bytes), expected, "{byte:#x} at {position} of {length}");
                }
            }
        }
        assert_eq!(plain_prefix(b""), 0);
    }

    /// The first of several counts, whatever follows it.
    #[test]
    fn bytes_after_a_special_one_do_not_count() {
        for length in 2..=24 {
            for position in 0..length {
                for special in [b'"', b'\\', 0x1F] {
                    let mut bytes = vec![b'"'; length];
                    bytes[..position].fill(b'!');
                    bytes[position] = special;
                    assert_eq!(plain_prefix(&bytes), position, "{special:#x} at {position} of {length}");
                }
            }
        }
    }
}
