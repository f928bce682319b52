//! Path safety: keeps values that become paths below their base directory.

use std::io;
use std::path::{Path, PathBuf};

/// How a value would leave its base directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// `..` above the base.
    Upwards,
    /// An absolute path or a drive letter.
    Absolute,
    /// A NUL byte, which truncates the path for the operating system.
    Nul,
}

/// Returns how a value, used as a path, would leave its base directory. The rules are the same on every platform.
pub(crate) fn escape(value: &str) -> Option<Escape> {
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

/// Resolves `relative` below `base` and follows links. A path that is outside or does not exist is not found.
pub(crate) async fn join(base: &Path, relative: &str) -> io::Result<PathBuf> {
    let not_found = || io::Error::from(io::ErrorKind::NotFound);
    if escape(relative).is_some() {
        return Err(not_found());
    }
    let base = tokio::fs::canonicalize(base).await?;
    let path = tokio::fs::canonicalize(base.join(relative)).await?;
    if path.starts_with(&base) { Ok(path) } else { Err(not_found()) }
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
    #[tokio::test]
    async fn links_are_followed_but_not_out_of_the_base() {
        let outside = std::env::temp_dir().join(format!("duplexer-path-{}", std::process::id()));
        let base = outside.join("base");
        std::fs::create_dir_all(&base).unwrap();
        std::fs::write(base.join("inside"), "1").unwrap();
        std::fs::write(outside.join("secret"), "2").unwrap();
        let _ = std::os::unix::fs::symlink(outside.join("secret"), base.join("link"));
        let _ = std::os::unix::fs::symlink("inside", base.join("near"));
        assert!(join(&base, "inside").await.is_ok());
        assert!(join(&base, "near").await.is_ok());
        for outside in ["link", "../secret", "/etc/passwd", "missing", "in\0side"] {
            assert!(join(&base, outside).await.is_err(), "{outside}");
        }
        std::fs::remove_dir_all(&outside).unwrap();
    }
}
