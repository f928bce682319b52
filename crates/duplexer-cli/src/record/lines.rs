//! Lines between standard input and output of this program and those of another one.

use std::future::poll_fn;

use duplexer::testing::Sender;
use duplexer::transport::child::Stderr;
use duplexer::transport::stdio::Stdio;
use duplexer::transport::{FrameReader, FrameWriter, Frames, Incoming, Transport as _};

use super::Recorder;
use crate::failure::{Exit, Failure, chain};
use crate::target::Program;

/// Copies lines in both directions until the program ends its output.
pub(super) async fn copy(
    program: &Program,
    env: &[(String, String)],
    recorder: &Recorder,
) -> Result<(), Failure> {
    let broken = |error: &(dyn std::error::Error + 'static)| Failure::new(Exit::Connect, chain(error));
    let terminal = recorder.terminal.clone();
    let command = program.start(env)?.stderr(Stderr::lines(move |line| terminal.note(line)));
    let (transport, child) = command.spawn().map_err(|error| broken(&error))?;
    let (from_program, to_program) = transport.split();
    let (from_client, to_client) = Stdio::claim().map_err(|error| broken(&error))?.split();
    let up = pass(Sender::Client, from_client, to_program, recorder);
    let down = pass(Sender::Server, from_program, to_client, recorder);
    tokio::pin!(up);
    tokio::pin!(down);
    // The end of the client's input ends that of the program, whose last answers still follow.
    tokio::select! {
        () = &mut up => down.await,
        () = &mut down => {}
    }
    child.shutdown().await.map_err(|error| broken(&error))?;
    Ok(())
}

/// Passes lines on until there are no more, or no reader.
async fn pass(
    from: Sender,
    mut reader: Box<dyn FrameReader>,
    mut writer: Box<dyn FrameWriter>,
    recorder: &Recorder,
) {
    while let Some(Ok(incoming)) = poll_fn(|cx| reader.poll_next(cx)).await {
        let text = match incoming {
            Incoming::Message(message) => message.text,
            Incoming::Unreadable(reason) => {
                recorder.terminal.note(&format!("a line was not passed on: {reason}"));
                continue;
            }
            _ => continue,
        };
        recorder.write(from, 1, &text);
        let mut frames = Frames::default();
        frames.push(text.as_bytes(), None);
        if poll_fn(|cx| writer.poll_write(cx, &mut frames)).await.is_err() {
            return;
        }
    }
    // The other side learns that there is no more.
    let _ = poll_fn(|cx| writer.poll_close(cx)).await;
}
