//! Digests of files: `sha256:` and 64 hexadecimal digits.

use sha2::{Digest as _, Sha256};

const ALGORITHM: &str = "sha256:";

/// Computes the digest of a file from its parts.
#[derive(Default)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> String {
        let mut text = String::with_capacity(ALGORITHM.len() + 64);
        text.push_str(ALGORITHM);
        for byte in self.0.finalize() {
            text.extend(
                [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')),
            );
        }
        text
    }
}

/// Returns the digest of a file.
pub(crate) fn of(bytes: &[u8]) -> String {
    let mut hasher = Hasher::default();
    hasher.update(bytes);
    hasher.finish()
}

/// Whether a text has the form of a digest. Upper-case digits are accepted.
pub(crate) fn is_valid(digest: &str) -> bool {
    digest
        .strip_prefix(ALGORITHM)
        .is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SKL-06, with the digest of no bytes that FIPS 180-4 examples give.
    #[test]
    fn a_digest_names_its_algorithm() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(of(b""), empty);
        assert!(is_valid(empty) && is_valid(&of(b"x")));
        for wrong in [
            "",
            "sha256:",
            &empty[7..],
            &empty[..70],
            &empty.replace("sha256", "sha512"),
            &empty.replace('e', "g"),
        ] {
            assert!(!is_valid(wrong), "{wrong}");
        }
    }
}
