//! CPU time of one request, by the number of tools and by the size of the request.
//!
//! Requests of all sizes alternate, so that other load of the machine affects all of them alike.

use super::figures::Figures;
use crate::load::{Connection, Fault, Message, Server};

const ROUNDS: u32 = 15;
/// Tools besides the dummies.
const NAMED: u32 = 6;
const TOOLS: [u32; 5] = [10, 100, 250, 500, 1000];
const KIBIBYTES: [u32; 9] = [1, 16, 64, 256, 512, 1024, 1536, 2048, 3072];

/// A request that is sent repeatedly.
struct Course<'a> {
    series: &'static str,
    size: u32,
    server: &'a Server,
    message: Message,
    /// Requests per round.
    times: u32,
    /// Text that identifies the response.
    within: String,
}

pub(super) fn tools(figures: &mut Figures) -> Result<(), Fault> {
    let start = |size: u32| Server::start(&["--dummies", &(size - NAMED).to_string()]);
    let servers: Vec<_> = TOOLS.iter().map(|size| start(*size)).collect::<Result<_, _>>()?;
    let mut courses = Vec::new();
    for (size, server) in TOOLS.into_iter().zip(&servers) {
        let call = Message::call(1, "add", r#"{"a":1,"b":2}"#);
        let within = r#""sum":3"#.to_owned();
        courses.push(Course { series: "tools.call", size, server, message: call, times: 2000, within });
        let list = Message::enveloped(1, "tools/list", "");
        let within = format!("\"dummy_{:02}\"", size - NAMED - 1);
        courses.push(Course { series: "tools.list", size, server, message: list, times: 200, within });
    }
    run(&courses, figures)
}

pub(super) fn payloads(figures: &mut Figures) -> Result<(), Fault> {
    let server = Server::start(&[])?;
    let course = |size: u32| {
        let text = "The quick brown fox. ".chars().cycle().take(size as usize * 1024).collect::<String>();
        let message = Message::call(1, "echo", &format!(r#"{{"text":"{text}"}}"#));
        let times = (8192 / size).clamp(8, 1000);
        Course { series: "payloads.echo", size, server: &server, message, times, within: text }
    };
    run(&KIBIBYTES.map(course), figures)
}

/// Runs all courses in turn and records the CPU time of a request, in µs: the median of the rounds.
fn run(courses: &[Course<'_>], figures: &mut Figures) -> Result<(), Fault> {
    let mut connections = Vec::new();
    for course in courses {
        connections.push((Connection::open(course.server.port)?, Vec::new()));
    }
    // The first round is a warm-up.
    for round in 0..=ROUNDS {
        for (course, (connection, costs)) in courses.iter().zip(&mut connections) {
            let cost = course.once(connection)?;
            if round > 0 {
                costs.push(cost);
            }
        }
    }
    for (course, (_, costs)) in courses.iter().zip(connections) {
        figures.put(course.series, course.size, median(costs));
    }
    Ok(())
}

impl Course<'_> {
    /// Returns the CPU time of one request of a round, in µs.
    fn once(&self, connection: &mut Connection) -> Result<f64, Fault> {
        let before = self.server.process.cpu()?;
        for _ in 0..self.times {
            let reply = connection.post(&self.message)?;
            reply.expect(200)?;
            if !reply.body.contains(&self.within) {
                return Err(Fault(format!("{}: the answer is another one", self.series)));
            }
        }
        let computed = self.server.process.cpu()?.saturating_sub(before);
        Ok(computed.as_secs_f64() * 1_000_000.0 / f64::from(self.times))
    }
}

/// Returns the median; zero for no values.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_the_middle_one() {
        assert!((median(vec![9.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).abs() < f64::EPSILON);
    }
}
