//! Every file of the corpus, unchanged and in some thousand deterministic mutations, on stable.

use std::path::{Path, PathBuf};

use duplexer_fuzz_checks::{Check, TARGETS};

/// Mutations per file.
const MUTATIONS: usize = 1000;
/// Fragments with a meaning for the readers.
const PIECES: [&[u8]; 24] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\n",
    b" ",
    b"null",
    b"1e999",
    b"-0",
    b"\\u0000",
    b"\\ud800",
    b"\"method\":",
    b"\"id\":",
    b"\"_meta\":{}",
    b"=?base64?",
    b"?=",
    b"x-mcp-header",
    b"properties",
    b"\xff",
    b"2.0",
];

/// Xorshift generator of Marsaglia: small and deterministic.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).unwrap_or_default()
    }

    fn mutate(&mut self, data: &mut Vec<u8>, donor: &[u8]) {
        for _ in 0..=self.below(3) {
            let at = self.below(data.len() + 1);
            let end = (at + self.below(8)).min(data.len());
            match self.below(6) {
                0 => drop(data.drain(at..end)),
                1 => drop(data.splice(at..at, PIECES[self.below(PIECES.len())].iter().copied())),
                2 => drop(data.splice(at..end, PIECES[self.below(PIECES.len())].iter().copied())),
                3 => data.extend_from_within(at..end),
                4 => {
                    let from = self.below(donor.len() + 1);
                    let piece = &donor[from..(from + self.below(40)).min(donor.len())];
                    data.splice(at..at, piece.iter().copied());
                }
                _ => {
                    if let Some(byte) = data.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
            }
        }
    }
}

fn corpus(target: &str) -> std::io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let data = std::fs::read(&path)?;
        files.push((path, data));
    }
    files.sort();
    Ok(files)
}

fn run(check: Check, data: &[u8], from: &Path) {
    let outcome = std::panic::catch_unwind(|| check(data));
    assert!(outcome.is_ok(), "{}: {:?}", from.display(), String::from_utf8_lossy(data));
}

#[test]
fn the_corpus_and_its_mutations_hold() -> std::io::Result<()> {
    for (target, check) in TARGETS {
        let files = corpus(target)?;
        assert!(files.len() >= 8, "the corpus of {target} is there");
        let mut random = Xorshift(0x9E37_79B9_7F4A_7C15);
        for (path, data) in &files {
            run(check, data, path);
            // Nesting files are long; a few of their mutations are enough.
            let mutations = if data.len() > 10_000 { 4 } else { MUTATIONS };
            for _ in 0..mutations {
                let mut mutant = data.clone();
                let donor = &files[random.below(files.len())].1;
                random.mutate(&mut mutant, donor);
                run(check, &mutant, path);
            }
        }
    }
    Ok(())
}
