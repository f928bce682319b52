//! A configuration file: read within a limit, changed as a whole or not at all, with a copy of what it was.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::Host;
use super::data::{Data, Fault};

/// Maximum size of a file. Hosts that store their history in it get far.
const MAX_BYTES: u64 = 32 << 20;
/// What is added to the name of the copy.
const BACKUP: &str = ".duplexer-backup";

/// A file of a host, as it was read.
#[derive(Debug)]
pub(crate) struct ConfigurationFile {
    host: Host,
    /// As it was given.
    path: PathBuf,
    /// `None` if there is no file.
    text: Option<String>,
}

/// A file cannot be used.
#[derive(Debug)]
pub(crate) struct FileError {
    path: PathBuf,
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    Invalid(Fault),
    Read(io::Error),
    Write(io::Error),
    TooLarge,
    NotText(usize),
    ReadOnly,
    Changed,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.reason {
            Reason::Invalid(fault) => {
                write!(f, "{path}:{}: {}; the file was not changed", fault.line, fault.reason)
            }
            Reason::Read(error) => write!(f, "{path} cannot be read: {error}"),
            Reason::Write(error) => write!(f, "{path} cannot be written: {error}"),
            Reason::TooLarge => write!(f, "{path} is larger than {} MiB; it was not read", MAX_BYTES >> 20),
            Reason::NotText(line) => write!(f, "{path}:{line}: not UTF-8; the file was not changed"),
            Reason::ReadOnly => write!(f, "{path} is read-only; it was not changed"),
            Reason::Changed => {
                write!(f, "{path} was changed by another program meanwhile; nothing was written")
            }
        }
    }
}

impl ConfigurationFile {
    /// Reads the file. One that does not exist has no servers.
    pub(crate) fn read(host: Host, path: &Path) -> Result<Self, FileError> {
        let text = read(path)?;
        Ok(Self { host, path: path.to_owned(), text })
    }

    pub(crate) fn exists(&self) -> bool {
        self.text.is_some()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    fn invalid(&self, fault: Fault) -> FileError {
        FileError { path: self.path.clone(), reason: Reason::Invalid(fault) }
    }

    /// Returns the entries by name, in the order of the file.
    pub(crate) fn entries(&self) -> Result<Vec<(String, Data)>, FileError> {
        let data = self.host.format().parse(self.text()).map_err(|fault| self.invalid(fault))?;
        Ok(data.member(&[self.host.container()]).map_or_else(Vec::new, |servers| servers.members().to_vec()))
    }

    /// Returns the text with an entry.
    pub(crate) fn with(&self, name: &str, entry: &Data) -> Result<String, FileError> {
        let (format, container) = (self.host.format(), self.host.container());
        format.insert(self.text(), container, (name, entry)).map_err(|fault| self.invalid(fault))
    }

    /// Returns what the file is without an entry: a text, or no file. `None` if there is no such entry.
    ///
    /// If the copy shows that the entry is the only change since it was made, the file becomes what it was, byte for byte.
    pub(crate) fn without(&self, name: &str) -> Result<Option<Option<String>>, FileError> {
        let Some((_, entry)) = self.entries()?.into_iter().find(|(other, _)| other == name) else {
            return Ok(None);
        };
        let (format, container) = (self.host.format(), self.host.container());
        let earlier = read(&backup_of(&self.real_path()))?;
        let again = format.insert(earlier.as_deref().unwrap_or_default(), container, (name, &entry));
        let had_none = earlier.as_deref().is_none_or(|earlier| {
            format.parse(earlier).is_ok_and(|data| {
                data.member(&[container]).and_then(|servers| servers.member(&[name])).is_none()
            })
        });
        if had_none && again.is_ok_and(|again| again == self.text()) {
            return Ok(Some(earlier));
        }
        let text = format.remove(self.text(), container, name).map_err(|fault| self.invalid(fault))?;
        Ok(text.map(Some))
    }

    /// Returns the file that a symbolic link leads to.
    fn real_path(&self) -> PathBuf {
        if let Ok(real) = fs::canonicalize(&self.path) {
            return real;
        }
        // A link to a file that does not exist yet.
        match fs::read_link(&self.path) {
            Ok(target) => self.path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => self.path.clone(),
        }
    }

    /// Replaces the file, after a copy of it was made. Without a text it is removed.
    pub(crate) fn replace(&self, text: Option<&str>) -> Result<(), FileError> {
        let fail = |reason: Reason| FileError { path: self.path.clone(), reason };
        if read(&self.path)? != self.text {
            return Err(fail(Reason::Changed));
        }
        let path = self.real_path();
        let metadata = fs::metadata(&path).ok();
        if metadata.as_ref().is_some_and(|metadata| metadata.permissions().readonly()) {
            return Err(fail(Reason::ReadOnly));
        }
        let permissions = metadata.map(|metadata| metadata.permissions());
        let write = || -> io::Result<()> {
            let backup = backup_of(&path);
            match (&self.text, text) {
                (Some(old), Some(_)) => put(&backup, old, permissions.clone())?,
                // What this command has created leaves nothing behind.
                (Some(_), None) | (None, _) => remove(&backup)?,
            }
            match text {
                Some(text) => put(&path, text, permissions.clone()),
                None => remove(&path),
            }
        };
        write().map_err(|error| fail(Reason::Write(error)))
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(BACKUP);
    path.with_file_name(name)
}

/// Reads a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<String>, FileError> {
    let fail = |reason: Reason| FileError { path: path.to_owned(), reason };
    let bytes = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(Reason::Read(error))),
        Ok(file) => {
            let mut bytes = Vec::new();
            file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| fail(Reason::Read(error)))?;
            bytes
        }
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(fail(Reason::TooLarge));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        fail(Reason::NotText(valid.iter().filter(|byte| **byte == b'\n').count() + 1))
    })
}

/// Writes a file as a whole: next to it first, then in its place. A new one is readable by its owner only, because entries
/// can hold secrets.
fn put(path: &Path, text: &str, permissions: Option<fs::Permissions>) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let new = path.with_file_name(name);
    let written = create(&new).and_then(|mut file| {
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
