//! A ZIP archive in memory: compressed entries and a directory at the end. Equal files give equal archives.

use miniz_oxide::deflate::compress_to_vec;

/// The time of all entries: 1980-01-01, the first that the format has.
const DATE: u16 = 1 << 5 | 1;
/// Version of the format that is needed: 2.0, for compression. The upper byte of the writer's version is Unix.
const VERSION: u16 = 20;
const WRITER: u16 = 3 << 8 | VERSION;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
const DEFLATE: u16 = 8;
const LEVEL: u8 = 6;

/// Whether a file can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    Program,
}

/// An archive that is being written. The caller bounds the number and the sizes of entries far below the limits of the
/// format: 65 535 entries and 4 GiB.
pub(super) struct Archive {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    entries: u16,
}

impl Archive {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), directory: Vec::new(), entries: 0 }
    }

    /// Adds a file.
    pub(super) fn add(&mut self, name: &str, content: &[u8], mode: Mode) {
        let compressed = compress_to_vec(content, LEVEL);
        let start = size(self.bytes.len());
        let mut common = Vec::new();
        for field in [VERSION, FLAGS, DEFLATE, 0, DATE] {
            common.extend(field.to_le_bytes());
        }
        for field in [crc32fast::hash(content), size(compressed.len()), size(content.len())] {
            common.extend(field.to_le_bytes());
        }
        common.extend(u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
        common.extend(0_u16.to_le_bytes());

        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&common);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(compressed);

        let permissions: u32 = if mode == Mode::Program { 0o100_755 } else { 0o100_644 };
        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(WRITER.to_le_bytes());
        self.directory.extend(&common);
        // No comment, the first disk, no attributes of DOS.
        self.directory.extend([0; 6]);
        self.directory.extend((permissions << 16).to_le_bytes());
        self.directory.extend(start.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.entries += 1;
    }

    /// Returns the archive with its directory.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let start = size(self.bytes.len());
        self.bytes.extend(&self.directory);
        self.bytes.extend(b"PK\x05\x06");
        for field in [0, 0, self.entries, self.entries] {
            self.bytes.extend(field.to_le_bytes());
        }
        for field in [size(self.directory.len()), start] {
            self.bytes.extend(field.to_le_bytes());
        }
        self.bytes.extend(0_u16.to_le_bytes());
        self.bytes
    }
}

fn size(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
