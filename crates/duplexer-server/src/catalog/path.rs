//! Path safety: keeps values that become paths below their base directory.

use std::io;
use std::path::{Path, PathBuf};

/// How a value would leave its base directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// `..` above the base.
    Upwards,
    /// An absolute path or a drive letter.
    Absolute,
    /// A NUL byte, which truncates the path for the operating system.
    Nul,
}

/// Returns how a value, used as a path, would leave its base directory. The rules are the same on every platform.
pub fn escape(value: &str) -> Option<Escape> {
    if value.contains('\0') {
        return Some(Escape::Nul);
    }
    let mut start = value.chars();
    let (first, second) = (start.next(), start.next());
    let drive = first.is_some_and(|letter| letter.is_ascii_alphabetic()) && second == Some(':');
    if matches!(first, Some('/' | '\\')) || drive {
        return Some(Escape::Absolute);
    }
    let mut depth = 0_usize;
    for part in value.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return Some(Escape::Upwards),
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    None
}

/// Returns whether a name is hidden. Hidden files are neither listed nor read. `.` and `..` are not names of files.
pub fn is_hidden(name: &str) -> bool {
    name.starts_with('.') && name != "." && name != ".."
}

/// Resolves `relative` below `base` and follows links. A path that is outside, hidden or does not exist is not found,
/// whether it is named so or a link leads to it.
///
/// # Errors
///
/// Fails if it is not found, or if a part of it cannot be read.
pub fn resolve(base: &Path, relative: &str) -> io::Result<PathBuf> {
    let not_found = || io::Error::from(io::ErrorKind::NotFound);
    if escape(relative).is_some() || relative.split(['/', '\\']).any(is_hidden) {
        return Err(not_found());
    }
    let base = base.canonicalize()?;
    let path = base.join(relative).canonicalize()?;
    let below = path.strip_prefix(&base).map_err(|_| not_found())?;
    if below.iter().any(|part| is_hidden(&part.to_string_lossy())) {
        return Err(not_found());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PATH-01, PATH-02.
    #[test]
    fn a_value_that_leaves_its_place_is_noticed() {
        for fine in ["", "a", "a/b", "a/../b", "./a", "a..b", "...", "a/./../b", "é"] {
            assert_eq!(escape(fine), None, "{fine}");
        }
        for (value, how) in [
            ("..", Escape::Upwards),
            ("a/../../b", Escape::Upwards),
            ("..\\x", Escape::Upwards),
            ("a\\..\\..", Escape::Upwards),
            ("/etc", Escape::Absolute),
            ("\\\\host", Escape::Absolute),
            ("C:x", Escape::Absolute),
            ("a\0b", Escape::Nul),
        ] {
            assert_eq!(escape(value), Some(how), "{value}");
        }
    }

    /// PATH-03.
    #[cfg(unix)]
    #[test]
    fn links_are_followed_but_not_out_of_the_base() {
        let outside = std::env::temp_dir().join(format!("duplexer-path-{}", std::process::id()));
        let base = outside.join("base");
        std::fs::create_dir_all(&base).unwrap();
        std::fs::write(base.join("inside"), "1").unwrap();
        std::fs::write(outside.join("secret"), "2").unwrap();
        let _ = std::os::unix::fs::symlink(outside.join("secret"), base.join("link"));
        let _ = std::os::unix::fs::symlink("inside", base.join("near"));
        std::fs::write(base.join(".env"), "3").unwrap();
        let _ = std::os::unix::fs::symlink(".env", base.join("visible"));
        let _ = std::os::unix::fs::symlink("inside", base.join(".near"));
        assert!(resolve(&base, "inside").is_ok());
        assert!(resolve(&base, "near").is_ok());
        for outside in [
            "link",
            "../secret",
            "/etc/passwd",
            "missing",
            "in\0side",
            ".env",
            "visible",
            ".near",
            "a/../.env",
        ] {
            assert!(resolve(&base, outside).is_err(), "{outside}");
        }
        std::fs::remove_dir_all(&outside).unwrap();
    }
}
