//! A server as a child process, which ends with the command that started it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::process::root;

/// A server that listens. Dropping it ends it.
pub(crate) struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts it and waits for the first line of its output, which is its address.
    pub(crate) fn start(program: &Path, arguments: &[&str]) -> Result<Self, String> {
        let failed = |error| format!("{}: {error}", program.display());
        let mut command = Command::new(program);
        command.args(arguments).current_dir(root()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut server = Self { child: command.spawn().map_err(failed)?, url: String::new() };
        let output = server.child.stdout.take().ok_or("its output is not ours")?;
        BufReader::new(output).read_line(&mut server.url).map_err(failed)?;
        if server.url().is_empty() {
            return Err(format!("{} ended before it listened", program.display()));
        }
        Ok(server)
    }

    pub(crate) fn url(&self) -> &str {
        self.url.trim_end()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Server;

    #[test]
    fn a_server_that_ends_before_it_listens_is_an_error() {
        let started = Server::start(Path::new("/bin/true"), &[]);
        assert!(started.is_err_and(|reason| reason.contains("before it listened")));
    }

    #[test]
    fn the_first_line_says_where_it_listens() {
        let started = Server::start(Path::new("/bin/sh"), &["-c", "echo http://there; exec sleep 60"]);
        assert_eq!(started.map(|server| server.url().to_owned()), Ok("http://there".to_owned()));
    }
}
