//! The time line of one seed, as SVG text: what clients completed in each second, and the faults as bands.

use std::fmt::Write as _;

use crate::scale::{Axis, STYLE};

const HEAD: &str = "what,from,to,value";
/// Size of the plot and its margins, in pixels.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 48.0;

/// The lines, with their names.
const LINES: [(&str, &str); 3] = [
    ("completed", "completed"),
    ("refused", "503, sent again"),
    ("failed", "failed, explained by the fault"),
];

/// One row of the time line: a fault, or a count of one second.
struct Row<'a> {
    what: &'a str,
    from: f64,
    to: f64,
    value: Option<f64>,
}

/// Draws a time line.
pub(super) fn svg(timeline: &str) -> Result<String, String> {
    let rows = rows(timeline)?;
    let counts = || rows.iter().filter(|row| row.value.is_some());
    let times = Axis::up_to(rows.iter().map(|row| row.to), LEFT, WIDTH - RIGHT);
    let values = Axis::up_to(counts().filter_map(|row| row.value), HEIGHT - BOTTOM, TOP);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" role=\"img\">\n<title>Actions of clients per second, while faults happen</title>\n\
         <style>{STYLE}  .fault {{ fill: #b4480a; fill-opacity: 0.13 }}\n</style>\n\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
         <text class=\"title\" x=\"{LEFT}\" y=\"20\">Actions of clients per second, while faults happen</text>\n"
    );
    for fault in rows.iter().filter(|row| row.value.is_none()) {
        text += &band(fault, &times);
    }
    text += &axes(&times, &values);
    for (index, (what, label)) in LINES.iter().enumerate() {
        let points: Vec<String> = counts()
            .filter(|row| row.what == *what)
            .map(|row| {
                let (x, y) = (times.at(f64::midpoint(row.from, row.to)), values.at(row.value.unwrap_or(0.0)));
                format!("{x:.1},{y:.1}")
            })
            .collect();
        let _ = writeln!(text, "<polyline class=\"line l{index}\" points=\"{}\"/>", points.join(" "));
        let x = LEFT + 170.0 * f64::from(u8::try_from(index).unwrap_or_default());
        let _ = writeln!(text, "<circle class=\"p{index}\" cx=\"{}\" cy=\"37\" r=\"4\"/>", x + 4.0);
        let _ = writeln!(text, "<text x=\"{}\" y=\"41\">{label}</text>", x + 13.0);
    }
    text += "</svg>\n";
    Ok(text)
}

/// Draws a fault: the time from its start to its end, and its name.
fn band(fault: &Row<'_>, times: &Axis) -> String {
    let (from, to) = (times.at(fault.from), times.at(fault.to));
    let (width, height) = ((to - from).max(2.0), HEIGHT - BOTTOM - TOP);
    format!(
        "<rect class=\"fault\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{height}\"/>\n\
         <text x=\"{from:.1}\" y=\"{}\">{}</text>\n",
        TOP - 6.0,
        fault.what
    )
}

fn axes(times: &Axis, values: &Axis) -> String {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let mut text = String::new();
    for tick in values.ticks() {
        let (y, number) = (values.at(tick), values.label(tick));
        let _ =
            writeln!(text, "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>");
        let (x, y) = (LEFT - 6.0, y + 4.0);
        let _ = writeln!(text, "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{number}</text>");
    }
    for tick in times.ticks() {
        let (x, number, y) = (times.at(tick), times.label(tick), bottom + 19.0);
        let _ = writeln!(text, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{number}</text>");
    }
    let _ = writeln!(text, "<path class=\"frame\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>");
    let _ = writeln!(text, "<text x=\"{right}\" y=\"{}\" text-anchor=\"end\">seconds</text>", bottom + 37.0);
    text
}

fn rows(timeline: &str) -> Result<Vec<Row<'_>>, String> {
    let mut lines = timeline.lines();
    if lines.next() != Some(HEAD) {
        return Err(format!("the time line does not begin with `{HEAD}`"));
    }
    lines.map(|line| row(line).ok_or_else(|| format!("not a row of a time line: `{line}`"))).collect()
}

fn row(line: &str) -> Option<Row<'_>> {
    let mut fields = line.split(',');
    let (what, from, to, value) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let value = if value.is_empty() { None } else { Some(number(value)?) };
    let row = Row { what, from: number(from)?, to: number(to)?, value };
    fields.next().is_none().then_some(row)
}

#[cfg(test)]
mod tests {
    use super::svg;

    #[test]
    fn every_fault_and_every_second_is_drawn() {
        let drawn = svg("what,from,to,value\nkill,1.0,2.5,\ncompleted,0,1,40\ncompleted,1,2,20\n").unwrap();
        assert_eq!(drawn.matches("class=\"fault\"").count(), 1);
        assert!(drawn.contains(">kill</text>"), "{drawn}");
        let line = drawn.lines().find(|line| line.contains("line l0")).unwrap();
        assert_eq!(line.matches(',').count(), 2, "{line}");
    }

    #[test]
    fn what_is_not_a_time_line_is_refused() {
        for text in ["", "what,from\n", "what,from,to,value\nkill,1\n", "what,from,to,value\nkill,a,2,\n"] {
            assert!(svg(text).is_err(), "{text:?}");
        }
    }
}
