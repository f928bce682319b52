//! Load on a pair of pipes: a fixed number of concurrent requests, one line each.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe::{Receiver, Sender};

use super::check::{Flight, Plan, Seen};
use crate::message::{Era, INITIALIZE, INITIALIZED};

/// Both directions with their buffers.
#[derive(Debug)]
pub(super) struct Pipe {
    input: Sender,
    output: Receiver,
    /// Unwritten bytes start at `written`.
    out: Vec<u8>,
    written: usize,
    /// Unconsumed bytes start at `taken`; there is no line end before `searched`.
    held: Vec<u8>,
    taken: usize,
    searched: usize,
    /// Read buffer.
    room: Vec<u8>,
    next_id: u64,
}

impl Pipe {
    pub(super) fn new(input: OwnedFd, output: OwnedFd) -> Result<Self, String> {
        let failed = |error: io::Error| error.to_string();
        Ok(Self {
            input: Sender::from_owned_fd(input).map_err(failed)?,
            output: Receiver::from_owned_fd(output).map_err(failed)?,
            out: Vec::new(),
            written: 0,
            held: Vec::new(),
            taken: 0,
            searched: 0,
            room: vec![0; 64 * 1024],
            next_id: 1,
        })
    }

    /// Performs the handshake, in the handshake era.
    pub(super) async fn open(&mut self, era: Era) -> Result<(), String> {
        if era == Era::Envelope {
            return Ok(());
        }
        self.queue(|out| out.extend_from_slice(INITIALIZE.as_bytes()));
        let (start, end) = self.line().await?;
        let opened =
            self.held.get(start..end).is_some_and(|line| line.windows(8).any(|found| found == b"\"result\""));
        if !opened {
            return Err("the handshake was refused".to_owned());
        }
        self.queue(|out| out.extend_from_slice(INITIALIZED.as_bytes()));
        Ok(())
    }

    /// Sends one request and waits for its response.
    pub(super) async fn once(&mut self, plan: &Plan) -> Result<(), String> {
        let mut flight = Flight::default();
        let id = self.next_id;
        self.next_id += 1;
        self.queue(|out| plan.write(id, out));
        loop {
            let (start, end) = self.line().await?;
            let seen = plan.look(&self.held[start..end], |known| (known == id).then_some(&mut flight))?;
            if seen == Seen::Answer(id) {
                return Ok(());
            }
        }
    }

    /// Keeps `width` requests in flight until the deadline and waits for the last responses. Returns the latencies.
    #[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
    pub(super) async fn load(
        &mut self,
        plan: &Plan,
        width: usize,
        until: Instant,
    ) -> Result<Vec<Duration>, String> {
        let mut in_flight: HashMap<u64, (Instant, Flight)> = HashMap::new();
        let mut latencies = Vec::new();
        loop {
            let now = Instant::now();
            while in_flight.len() < width && now < until {
                let id = self.next_id;
                self.next_id += 1;
                self.queue(|out| plan.write(id, out));
                in_flight.insert(id, (Instant::now(), Flight::default()));
            }
            if in_flight.is_empty() {
                return Ok(latencies);
            }
            // All received lines are checked before new requests are sent.
            let mut next = Some(self.line().await?);
            while let Some((start, end)) = next {
                let line = &self.held[start..end];
                if let Seen::Answer(id) =
                    plan.look(line, |id| in_flight.get_mut(&id).map(|(_, flight)| flight))?
                    && let Some((begun, _)) = in_flight.remove(&id)
                {
                    latencies.push(begun.elapsed());
                }
                next = self.held_line();
            }
        }
    }

    fn queue(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.out.drain(..self.written);
        self.written = 0;
        write(&mut self.out);
        self.out.push(b'\n');
    }

    /// Returns the range of the next line, if it is complete.
    fn held_line(&mut self) -> Option<(usize, usize)> {
        let Some(found) = memchr::memchr(b'\n', &self.held[self.searched..]) else {
            self.searched = self.held.len();
            return None;
        };
        let line = (self.taken, self.searched + found);
        self.taken = line.1 + 1;
        self.searched = self.taken;
        Some(line)
    }

    /// Waits for the next line and returns its range. Writes pending bytes meanwhile.
    async fn line(&mut self) -> Result<(usize, usize), String> {
        loop {
            self.write()?;
            if let Some(line) = self.held_line() {
                return Ok(line);
            }
            if self.read()? {
                continue;
            }
            let is_full = self.written < self.out.len();
            tokio::select! {
                readable = self.output.readable() => readable.map_err(|error| error.to_string())?,
                writable = self.input.writable(), if is_full => writable.map_err(|error| error.to_string())?,
            }
        }
    }

    /// Writes as much as the pipe accepts.
    fn write(&mut self) -> Result<(), String> {
        while self.written < self.out.len() {
            match self.input.try_write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(format!("it does not read: {error}")),
            }
        }
        Ok(())
    }

    /// Reads available bytes. Returns whether there were any.
    fn read(&mut self) -> Result<bool, String> {
        self.held.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        match self.output.try_read(&mut self.room) {
            Ok(0) => Err("it has closed its output".to_owned()),
            Ok(count) => {
                self.held.extend_from_slice(&self.room[..count]);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(format!("it does not write: {error}")),
        }
    }
}
