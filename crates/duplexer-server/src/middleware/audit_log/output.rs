//! Where lines go: a file that is rotated, or a stream. A line that cannot be written is counted.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::features::tasks::UnixMillis;

/// Writes lines, one at a time.
pub(super) struct Output {
    state: Mutex<State>,
    lost: AtomicU64,
}

struct State {
    target: Target,
    /// Lines that were lost since the last one that was written.
    unreported: u64,
    /// Whether the last write left the beginning of a line in the file.
    torn: bool,
}

enum Target {
    File { path: PathBuf, file: File, size: u64, rotate_at: u64, keep: usize },
    Stream(Box<dyn Write + Send>),
}

impl Output {
    pub(super) fn file(path: PathBuf, rotate_at: u64, keep: usize) -> io::Result<Self> {
        let (file, size) = open(&path)?;
        let torn = is_torn(&path, size)?;
        Ok(Self::new(Target::File { path, file, size, rotate_at, keep }, torn))
    }

    pub(super) fn stream(stream: impl Write + Send + 'static) -> Self {
        Self::new(Target::Stream(Box::new(stream)), false)
    }

    fn new(target: Target, torn: bool) -> Self {
        Self { state: Mutex::new(State { target, unreported: 0, torn }), lost: AtomicU64::new(0) }
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes one line. If lines before it were lost, first says how many.
    pub(super) fn write(&self, line: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = state.write(line) {
            if state.unreported == 0 {
                tracing::error!(%error, "the audit log cannot be written: lines are lost until it can");
            }
            state.unreported += 1;
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl State {
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.target.rotate() {
            self.torn = false;
        }
        if self.unreported > 0 {
            let (time, lines) = (UnixMillis::from(SystemTime::now()).rfc3339(), self.unreported);
            let report = format!("{{\"time\":\"{time}\",\"event\":\"lost\",\"lines\":{lines}}}\n");
            self.append(report.as_bytes())?;
            self.unreported = 0;
            tracing::warn!(lines, "lines of the audit log were lost");
        }
        self.append(line)
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.torn {
            // Ends the beginning of a line that a failed write has left.
            self.target.write(b"\n")?;
            self.torn = false;
        }
        let mut rest = line;
        while !rest.is_empty() {
            match self.target.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    rest = rest.get(written..).unwrap_or_default();
                    self.torn = !rest.is_empty();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.target.flush()
    }
}

impl Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { file, size, .. } => {
                let written = file.write(bytes)?;
                *size += written as u64;
                Ok(written)
            }
            Self::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            // A file has no buffer in this process.
            Self::File { .. } => Ok(()),
            Self::Stream(stream) => stream.flush(),
        }
    }

    /// Starts a new file when this one is full, and returns whether it did. If that fails, goes on with this one: no line is
    /// lost for it.
    fn rotate(&mut self) -> bool {
        let Self::File { path, file, size, rotate_at, keep } = self else { return false };
        if *size < *rotate_at {
            return false;
        }
        match next_file(path, file, *keep) {
            Ok((next, length)) => {
                (*file, *size) = (next, length);
                true
            }
            Err(error) => {
                tracing::error!(%error, "the audit log cannot be rotated");
                // Tries again after as many bytes.
                *size = 0;
                false
            }
        }
    }
}

/// Moves the current file away and opens the next one. With nothing to keep, the current file is emptied.
fn next_file(path: &Path, current: &File, keep: usize) -> io::Result<(File, u64)> {
    if keep == 0 {
        // Not removed: if no other could be opened then, lines would go to a file without a name.
        current.set_len(0)?;
    } else {
        shift(path, keep)?;
    }
    open(path)
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

/// Returns whether a file ends within a line, as a process can leave it that was killed.
fn is_torn(path: &Path, size: u64) -> io::Result<bool> {
    let Some(last) = size.checked_sub(1) else { return Ok(false) };
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(last))?;
    let mut byte = [0];
    file.read_exact(&mut byte)?;
    Ok(byte != *b"\n")
}

/// Renames each rotated file to the next number and the current file to the first. The oldest is replaced.
fn shift(path: &Path, keep: usize) -> io::Result<()> {
    if !path.try_exists()? {
        // Moved before, by an attempt that could not open the next file, or by another program.
        return Ok(());
    }
    for number in (1..keep).rev() {
        match std::fs::rename(numbered(path, number), numbered(path, number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::rename(path, numbered(path, 1))
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("lost", &self.lost()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A stream that fails while its budget of bytes is used up.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Disk {
        fn grant(&self, bytes: usize) {
            self.0.lock().unwrap().1 = bytes;
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().0.clone()).unwrap()
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (written, budget) = &mut *self.0.lock().unwrap();
            let taken = bytes.len().min(*budget);
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *budget -= taken;
            written.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_were_lost_are_counted_in_the_log_itself() {
        let disk = Disk::default();
        let output = Output::stream(disk.clone());
        disk.grant(8);
        output.write(b"first\n");
        output.write(b"second\n");
        output.write(b"third\n");
        assert_eq!(output.lost(), 2);
        disk.grant(1000);
        output.write(b"fourth\n");
        output.write(b"fifth\n");
        let text = disk.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[1], lines[3], lines[4]), ("first", "se", "fourth", "fifth"), "{text}");
        assert!(lines[2].ends_with(r#""event":"lost","lines":2}"#), "{text}");
        assert_eq!(output.lost(), 2);
    }

    #[test]
    fn files_are_rotated_and_the_oldest_is_replaced() {
        let folder = std::env::temp_dir().join(format!("duplexer-audit-rotation-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("audit.jsonl");
        let read = |suffix: &str| std::fs::read_to_string(folder.join(format!("audit.jsonl{suffix}"))).ok();
        let output = Output::file(path.clone(), 6, 2).unwrap();
        for line in ["1 aaa\n", "2 bbb\n", "3 ccc\n", "4 ddd\n"] {
            output.write(line.as_bytes());
        }
        assert_eq!(read("").as_deref(), Some("4 ddd\n"));
        assert_eq!(read(".1").as_deref(), Some("3 ccc\n"));
        assert_eq!(read(".2").as_deref(), Some("2 bbb\n"));
        assert_eq!(read(".3"), None);
        // A process that starts again appends.
        let again = Output::file(path.clone(), 100, 2).unwrap();
        again.write(b"5 eee\n");
        assert_eq!(read("").as_deref(), Some("4 ddd\n5 eee\n"));
        // What a killed process has left of a line does not spoil the next one.
        std::fs::write(&path, "6 f").unwrap();
        Output::file(path, 100, 2).unwrap().write(b"7 ggg\n");
        assert_eq!(read("").as_deref(), Some("6 f\n7 ggg\n"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Returns a folder for one test, and a function that reads a file of the log in it.
    fn folder(name: &str) -> (PathBuf, impl Fn(&str) -> Option<String>) {
        let folder = std::env::temp_dir().join(format!("duplexer-audit-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("audit.jsonl");
        (folder, move |suffix| std::fs::read_to_string(format!("{}{suffix}", path.display())).ok())
    }

    /// As after an attempt that has renamed the file and could not open the next one.
    #[test]
    fn a_file_that_was_moved_is_followed_by_a_new_one() {
        let (folder, read) = folder("moved");
        let output = Output::file(folder.join("audit.jsonl"), 6, 2).unwrap();
        output.write(b"1 aaa\n");
        std::fs::rename(folder.join("audit.jsonl"), folder.join("audit.jsonl.1")).unwrap();
        output.write(b"2 bbb\n");
        output.write(b"3 ccc\n");
        assert_eq!(read("").as_deref(), Some("3 ccc\n"));
        assert_eq!(read(".1").as_deref(), Some("2 bbb\n"));
        assert_eq!(read(".2").as_deref(), Some("1 aaa\n"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_log_that_keeps_no_rotated_files_empties_its_file() {
        let (folder, read) = folder("emptied");
        let output = Output::file(folder.join("audit.jsonl"), 12, 0).unwrap();
        for line in ["1 aaa\n", "2 bbb\n", "3 ccc\n"] {
            output.write(line.as_bytes());
        }
        assert_eq!((read("").as_deref(), read(".1")), (Some("3 ccc\n"), None));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_end_of_a_torn_line_is_not_the_beginning_of_the_next_file() {
        let (folder, read) = folder("torn");
        std::fs::write(folder.join("audit.jsonl"), "1 aaa").unwrap();
        Output::file(folder.join("audit.jsonl"), 5, 1).unwrap().write(b"2 bbb\n");
        assert_eq!((read(".1").as_deref(), read("").as_deref()), (Some("1 aaa"), Some("2 bbb\n")));
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// All lines of concurrent writers are in the log, each whole.
    #[test]
    fn concurrent_writers_lose_no_line() {
        let disk = Disk::default();
        disk.grant(usize::MAX);
        let output = Arc::new(Output::stream(disk.clone()));
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let output = Arc::clone(&output);
                scope.spawn(move || {
                    for line in 0..500 {
                        output.write(format!("{writer} {line}\n").as_bytes());
                    }
                });
            }
        });
        let text = disk.text();
        let distinct: std::collections::HashSet<&str> = text.lines().collect();
        assert_eq!((distinct.len(), output.lost()), (2000, 0));
    }
}
