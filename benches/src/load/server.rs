//! A server as a child process, and its CPU time.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::pipe::Pipe;

/// The process. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
}

impl Server {
    /// Starts a server on pipes.
    pub(super) fn on_pipes(command: &str) -> Result<(Self, Pipe), String> {
        let (server, input, output) = Self::on_streams(command)?;
        let pipe = Pipe::new(OwnedFd::from(input), OwnedFd::from(output))?;
        Ok((server, pipe))
    }

    /// Starts a program with blocking streams.
    pub(super) fn on_streams(command: &str) -> Result<(Self, ChildStdin, ChildStdout), String> {
        let mut server = Self::start(command, Stdio::piped)?;
        let taken = server.child.stdin.take().zip(server.child.stdout.take());
        let (input, output) = taken.ok_or("it has no pipes")?;
        Ok((server, input, output))
    }

    /// Starts a server on a given port.
    pub(super) fn on_port(command: &str) -> Result<(Self, u16), String> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(|error| error.to_string())?.port();
        let server = Self::start(&command.replace("{port}", &port.to_string()), Stdio::null)?;
        Ok((server, port))
    }

    fn start(command: &str, stream: fn() -> Stdio) -> Result<Self, String> {
        let mut process = process(command);
        process.stdin(stream()).stdout(stream());
        let child = process.spawn().map_err(|error| format!("`{command}` could not be started: {error}"))?;
        Ok(Self { child })
    }

    /// Returns whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Returns the CPU time of all its threads, including ended ones.
    pub(super) fn cpu(&self) -> Result<Duration, String> {
        let gone = || "its CPU clock cannot be read: has it ended?".to_owned();
        let process = libc::pid_t::try_from(self.child.id()).map_err(|_| gone())?;
        let mut clock: libc::clockid_t = 0;
        // SAFETY: it writes a clock id into a variable of its size.
        if unsafe { libc::clock_getcpuclockid(process, &raw mut clock) } != 0 {
            return Err(gone());
        }
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: it writes a time into a variable of its size.
        if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
            return Err(gone());
        }
        let seconds = u64::try_from(time.tv_sec).map_err(|_| gone())?;
        let nanoseconds = u32::try_from(time.tv_nsec).map_err(|_| gone())?;
        Ok(Duration::new(seconds, nanoseconds))
    }
}

/// Returns the process of a command line. A line of plain words and one quoted path needs no shell, whose own start would
/// be part of the figures. Any other line is left to the shell, which then execs the server.
fn process(command: &str) -> Command {
    let quoted = command.strip_prefix('\'').and_then(|quoted| quoted.split_once('\''));
    let (program, rest) =
        quoted.unwrap_or_else(|| command.split_at(command.find(' ').unwrap_or(command.len())));
    let is_plain = |text: &str| {
        text.chars()
            .all(|char| char.is_ascii_alphanumeric() || matches!(char, ' ' | '-' | '_' | '.' | '/' | ','))
    };
    if !program.is_empty() && (quoted.is_some() || is_plain(program)) && is_plain(rest) {
        let mut process = Command::new(program);
        process.args(rest.split_ascii_whitespace());
        return process;
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec {command}")]);
    shell
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
    use super::{Server, process};

    #[test]
    fn a_shell_starts_only_what_has_to_be_read_by_one() {
        let check = |command: &str, expected: &[&str]| {
            let process = process(command);
            let words = std::iter::once(process.get_program()).chain(process.get_args());
            assert_eq!(words.collect::<Vec<_>>(), expected, "{command}");
        };
        check("'/a b/server' http 80", &["/a b/server", "http", "80"]);
        check("/a/server stdio --dummies 5", &["/a/server", "stdio", "--dummies", "5"]);
        check("server", &["server"]);
        check("A=1 server", &["sh", "-c", "exec A=1 server"]);
        check("server 'a b'", &["sh", "-c", "exec server 'a b'"]);
        check("'open", &["sh", "-c", "exec 'open"]);
    }

    #[test]
    fn the_clock_is_that_of_the_process_and_ends_with_it() {
        let busy = "sh -c 'while :; do :; done'";
        let (mut server, _port) = Server::on_port(busy).unwrap();
        while server.cpu().unwrap().is_zero() {
            std::thread::yield_now();
        }
        assert!(!server.has_ended());
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        assert!(server.has_ended());
        assert!(server.cpu().is_err());
    }
}
