//! What a person sees on a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{Demo, PROGRAM};

/// The program on a terminal of its own.
struct Screen {
    child: Child,
    main: File,
    seen: String,
}

impl Screen {
    fn start(columns: u16, variables: &[(&str, &str)], words: &[&str]) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&main, size).unwrap();
        let path = ptsname(&main, Vec::new()).unwrap();
        let terminal =
            File::from(rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
        let stream = || Stdio::from(terminal.try_clone().unwrap());
        let mut command = Command::new(PROGRAM);
        command.args(words).stdin(stream()).stdout(stream()).stderr(stream());
        for name in ["CI", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM"] {
            command.env_remove(name);
        }
        let child = command.env("TERM", "xterm").envs(variables.iter().copied()).spawn().unwrap();
        Self { child, main: main.into(), seen: String::new() }
    }

    /// Reads until `text` has been shown.
    fn until(&mut self, text: &str) {
        let mut chunk = [0; 4096];
        while !self.seen.contains(text) {
            match self.main.read(&mut chunk) {
                Ok(read) if read > 0 => self.seen.push_str(&String::from_utf8_lossy(&chunk[..read])),
                _ => panic!("{text:?} is not in {:?}", self.seen),
            }
        }
    }

    /// Returns what was shown until the end, and the exit code.
    fn end(mut self) -> (String, Option<i32>) {
        let mut chunk = [0; 4096];
        // The end of a terminal is an error on Linux.
        while let Ok(read @ 1..) = self.main.read(&mut chunk) {
            self.seen.push_str(&String::from_utf8_lossy(&chunk[..read]));
        }
        (self.seen.clone(), self.child.wait().unwrap().code())
    }

    fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn shown(columns: u16, variables: &[(&str, &str)], words: &[&str]) -> String {
    Screen::start(columns, variables, words).end().0
}

const LIST: [&str; 5] = ["list", "tools", "--", PROGRAM, "--stdio"];

#[test]
fn names_are_coloured_on_a_terminal_unless_the_user_says_no() {
    let coloured = shown(80, &[], &LIST);
    assert!(coloured.contains("\x1b[1;36madd\x1b[0m(a: number"), "{coloured:?}");
    for variables in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
        let plain = shown(80, &[variables], &LIST);
        assert!(!plain.contains('\x1b') && plain.contains("  add(a: number"), "{variables:?} {plain:?}");
    }
    let never = shown(80, &[], &[&["list", "--color", "never"], &LIST[1..]].concat());
    assert!(!never.contains('\x1b'), "{never:?}");
}

#[test]
fn a_pipe_gets_colour_only_if_it_is_wanted() {
    let run = |words: &[&str]| crate::support::run(&[&["list"], words, &LIST[1..]].concat()).ok();
    assert!(!run(&[]).contains('\x1b'));
    assert!(run(&["--color", "always"]).contains("\x1b[1;36madd\x1b[0m"));
}

#[test]
fn errors_and_json_are_coloured() {
    let call = |words: &[&str]| shown(80, &[], &[&["call"], words, &["--", PROGRAM, "--stdio"]].concat());
    let failed = call(&["divide", "a:=1", "b:=0"]);
    assert!(failed.contains("\x1b[1;31mduplexer:\x1b[0m the tool"), "{failed:?}");
    let sum = call(&["add", "a:=1", "b:=2", "--trace"]);
    assert!(sum.contains("\x1b[1;36m\"sum\"\x1b[0m: \x1b[33m3.0\x1b[0m"), "{sum:?}");
    assert!(sum.contains("\x1b[1;35m-->\x1b[0m ") && sum.contains("\x1b[1;34m<--\x1b[0m "), "{sum:?}");
}

/// A text of a server cannot imitate a style or command the terminal.
#[test]
fn a_server_gets_no_command_through() {
    let said = shown(80, &[], &["call", "echo", r#"text:="\u001b[31mred\u202e""#, "--", PROGRAM, "--stdio"]);
    assert!(said.contains("\u{fffd}[31mred\u{fffd}") && !said.contains("\x1b[31m"), "{said:?}");
}

#[test]
fn help_and_lists_fit_into_the_terminal() {
    let check = |columns: u16, words: &[&str]| {
        let text = shown(columns, &[("NO_COLOR", "1")], words);
        let widest = text.lines().map(|line| line.trim_end().chars().count()).max().unwrap();
        assert!(widest <= usize::from(columns), "{columns} {words:?}\n{text}");
    };
    for columns in [80, 110] {
        for verb in ["list", "call", "read", "prompt", "complete", "listen", "ping", "demo"] {
            check(columns, &[verb, "--help"]);
        }
        check(columns, &["--help"]);
        check(columns, &LIST);
    }
    check(40, &LIST);
    let narrow = shown(60, &[("NO_COLOR", "1")], &LIST);
    assert!(narrow.replace('\r', "").contains("structured value,\n      models"), "{narrow}");
}

#[test]
fn an_interrupted_question_leaves_a_clean_line() {
    let demo = Demo::start();
    let mut screen = Screen::start(80, &[("NO_COLOR", "1")], &["call", &demo.url, "book", "day=Friday"]);
    screen.until("How many people? (whole number, 1 to 12): ");
    screen.interrupt();
    let (seen, code) = screen.end();
    assert_eq!(code, Some(130));
    assert!(seen.ends_with("(whole number, 1 to 12): \r\n"), "{seen:?}");
}

#[test]
fn an_interrupted_bar_is_cleared() {
    let demo = Demo::start();
    let mut screen = Screen::start(80, &[], &["call", &demo.url, "count", "to:=1000", "pause:=60000"]);
    screen.until("1/1000 counting");
    // The terminal echoes the key behind the cursor, which must still be on the line of the bar.
    screen.main.write_all(b"\x03").unwrap();
    screen.until("^C");
    screen.interrupt();
    let (seen, code) = screen.end();
    assert_eq!(code, Some(130));
    assert!(!seen.contains("counting  "), "spaces fill the line: {seen:?}");
    assert!(seen.ends_with("\r\x1b[2K\r\n"), "{seen:?}");
}

#[test]
fn answers_are_typed_on_the_terminal() {
    let demo = Demo::start();
    let mut screen = Screen::start(80, &[("NO_COLOR", "1")], &["call", &demo.url, "tour"]);
    screen.until("Will you? (y/n): ");
    screen.main.write_all(b"y\n").unwrap();
    let (seen, code) = screen.end();
    assert_eq!(code, Some(0));
    assert!(seen.contains("The user has a look."), "{seen:?}");
}
