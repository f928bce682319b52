//! What the clients of the long soak do, in both eras: calls, and the ways in which clients fail.

use crate::load::{Connection, Fault, Message};

/// The resource that `touch` changes.
const LISTEN: &str = r#""notifications":{"resourceSubscriptions":["bench://touched"]}"#;
/// A call that is not finished when its client leaves or cancels it.
const LONG: &str = r#"{"ms":400}"#;

/// One kind of action. A fault is what a client must not do to a server, and does.
pub(super) struct Action {
    pub(super) name: &'static str,
    pub(super) is_fault: bool,
    pub(super) run: fn(u16, u32) -> Result<(), Fault>,
}

pub(super) const ACTIONS: &[Action] = &[
    Action { name: "calls, envelope", is_fault: false, run: calls },
    Action { name: "calls in a session", is_fault: false, run: session },
    Action { name: "change heard, envelope", is_fault: false, run: change },
    Action { name: "tool errors and panics", is_fault: true, run: failures },
    Action { name: "connection cut during a call, envelope", is_fault: true, run: cut },
    Action { name: "connection cut during a call of a session", is_fault: true, run: cut_in_session },
    Action { name: "stream cut, envelope", is_fault: true, run: cut_stream },
    Action { name: "stream of a session cut", is_fault: true, run: cut_session_stream },
    Action { name: "call cancelled", is_fault: true, run: cancelled },
    Action { name: "session ended during a call", is_fault: true, run: killed },
    Action { name: "session abandoned", is_fault: true, run: abandoned },
    Action { name: "request cut in its middle", is_fault: true, run: half },
    Action { name: "body that is no message", is_fault: true, run: garbage },
];

fn echoed(connection: &mut Connection, message: &Message, text: &str) -> Result<(), Fault> {
    let reply = connection.post(message)?;
    reply.expect(200)?;
    if reply.body.contains(text) {
        return Ok(());
    }
    Err(Fault(format!("`{text}` was sent, and another response came: {}", reply.body)))
}

fn echo_in(connection: &mut Connection, session: &str, number: u32) -> Result<(), Fault> {
    let text = format!("soak-{number}");
    let call = Message::call_in(session, number, "echo", &format!(r#"{{"text":"{text}"}}"#));
    echoed(connection, &call, &text)
}

fn calls(port: u16, number: u32) -> Result<(), Fault> {
    let mut connection = Connection::open(port)?;
    for step in 0..8 {
        let text = format!("soak-{number}-{step}");
        let call = Message::call(step, "echo", &format!(r#"{{"text":"{text}"}}"#));
        echoed(&mut connection, &call, &text)?;
    }
    Ok(())
}

fn session(port: u16, number: u32) -> Result<(), Fault> {
    let mut connection = Connection::open(port)?;
    let session = connection.open_session()?;
    for step in 0..8 {
        echo_in(&mut connection, &session, number.wrapping_mul(8).wrapping_add(step))?;
    }
    connection.end_session(&session)?.expect(200)
}

fn listener(port: u16, number: u32) -> Result<Connection, Fault> {
    let mut stream = Connection::open(port)?;
    stream.send("POST", &Message::enveloped(number, "subscriptions/listen", LISTEN))?;
    stream.streaming()?;
    stream.hear("notifications/subscriptions/acknowledged")?;
    Ok(stream)
}

fn change(port: u16, number: u32) -> Result<(), Fault> {
    let mut stream = listener(port, number)?;
    Connection::open(port)?.post(&Message::call(number, "touch", "{}"))?.expect(200)?;
    stream.hear("notifications/resources/updated")
}

fn failures(port: u16, number: u32) -> Result<(), Fault> {
    let mut connection = Connection::open(port)?;
    echoed(&mut connection, &Message::call(number, "fail", "{}"), "this tool always fails")?;
    let panicked = connection.post(&Message::call(number, "panic", "{}"))?;
    if panicked.body.contains("-32603") && !panicked.body.contains("secret") {
        return Ok(());
    }
    Err(Fault(format!("a panic was answered with {}", panicked.body)))
}

fn cut(port: u16, number: u32) -> Result<(), Fault> {
    Connection::open(port)?.send("POST", &Message::call(number, "sleep", LONG))
}

fn cut_in_session(port: u16, number: u32) -> Result<(), Fault> {
    let mut connection = Connection::open(port)?;
    let session = connection.open_session()?;
    Connection::open(port)?.send("POST", &Message::call_in(&session, number, "sleep", LONG))?;
    echo_in(&mut connection, &session, number.wrapping_add(1))?;
    connection.end_session(&session)?.expect(200)
}

fn cut_stream(port: u16, number: u32) -> Result<(), Fault> {
    listener(port, number).map(drop)
}

fn cut_session_stream(port: u16, number: u32) -> Result<(), Fault> {
    let mut connection = Connection::open(port)?;
    let session = connection.open_session()?;
    let mut stream = Connection::open(port)?;
    stream.listen_in(&session)?;
    drop(stream);
    echo_in(&mut connection, &session, number)?;
    connection.end_session(&session)?.expect(200)
}

fn cancelled(port: u16, number: u32) -> Result<(), Fault> {
    let mut connection = Connection::open(port)?;
    let session = connection.open_session()?;
    let mut waiting = Connection::open(port)?;
    waiting.send("POST", &Message::call_in(&session, number, "sleep", LONG))?;
    connection.post(&Message::cancelled_in(&session, number))?.expect(202)?;
    echo_in(&mut connection, &session, number.wrapping_add(1))?;
    connection.end_session(&session)?.expect(200)
}

fn killed(port: u16, number: u32) -> Result<(), Fault> {
    let mut connection = Connection::open(port)?;
    let session = connection.open_session()?;
    let mut waiting = Connection::open(port)?;
    waiting.send("POST", &Message::call_in(&session, number, "sleep", LONG))?;
    connection.end_session(&session)?.expect(200)?;
    let gone = connection.post(&Message::call_in(&session, number, "echo", r#"{"text":"x"}"#))?;
    gone.expect(404)
}

fn abandoned(port: u16, number: u32) -> Result<(), Fault> {
    let mut connection = Connection::open(port)?;
    let session = connection.open_session()?;
    echo_in(&mut connection, &session, number)
}

fn half(port: u16, number: u32) -> Result<(), Fault> {
    Connection::open(port)?.send_part("POST", &Message::call(number, "echo", r#"{"text":"x"}"#), 40)
}

fn garbage(port: u16, _: u32) -> Result<(), Fault> {
    let message = Message { headers: String::new(), body: "{\"jsonrpc\":\"2.0\",".to_owned() };
    Connection::open(port)?.post(&message)?.expect(400)
}
