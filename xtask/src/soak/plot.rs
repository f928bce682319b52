//! The samples of the long soak, as SVG text: a panel each for memory, descriptors and threads.

use std::fmt::Write as _;

use super::hour::Sample;
use crate::scale::{Axis, STYLE};

/// Size of a panel and the margins of its diagram, in pixels.
const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 46.0;

/// A title and the value that a panel shows.
type Panel = (&'static str, fn(&Sample) -> f64);

const PANELS: [Panel; 3] = [
    ("Resident memory, MB", |sample| f64::from(sample.memory) * 1024.0 / 1_000_000.0),
    ("Open descriptors", |sample| f64::from(sample.descriptors)),
    ("Threads", |sample| f64::from(sample.threads)),
];

/// Draws all samples.
pub(super) fn svg(samples: &[Sample]) -> String {
    let width = WIDTH * 3.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {HEIGHT}\" width=\"{width}\" \
         height=\"{HEIGHT}\" role=\"img\">\n<title>A server during the soak, without load at each sample</title>\n\
         <style>{STYLE}</style>\n<rect class=\"page\" width=\"{width}\" height=\"{HEIGHT}\"/>\n"
    );
    for (panel, left) in PANELS.iter().zip([0.0, WIDTH, 2.0 * WIDTH]) {
        let _ = writeln!(text, "<g transform=\"translate({left} 0)\">\n{}</g>", drawn(panel, samples));
    }
    text += "</svg>\n";
    text
}

fn drawn((title, value): &Panel, samples: &[Sample]) -> String {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let times = Axis::up_to(samples.iter().map(|sample| f64::from(sample.minute)), LEFT, right);
    let values = Axis::up_to(samples.iter().map(value), bottom, TOP);
    let mut text = format!("<text class=\"title\" x=\"{LEFT}\" y=\"24\">{title}</text>\n");
    for tick in values.ticks() {
        let (y, x, number) = (values.at(tick), LEFT - 6.0, values.label(tick));
        let _ =
            writeln!(text, "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>");
        let _ = writeln!(text, "<text x=\"{x}\" y=\"{:.1}\" text-anchor=\"end\">{number}</text>", y + 4.0);
    }
    for tick in times.ticks() {
        let (x, y, number) = (times.at(tick), bottom + 18.0, times.label(tick));
        let _ = writeln!(text, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{number}</text>");
    }
    let at = |sample: &Sample| {
        format!("{:.1},{:.1}", times.at(f64::from(sample.minute)), values.at(value(sample)))
    };
    let points: Vec<String> = samples.iter().map(at).collect();
    let _ = writeln!(text, "<path class=\"frame\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>");
    let _ = writeln!(text, "<polyline class=\"line l0\" points=\"{}\"/>", points.join(" "));
    let _ = writeln!(text, "<text x=\"{right}\" y=\"{}\" text-anchor=\"end\">minutes</text>", bottom + 36.0);
    text
}

#[cfg(test)]
mod tests {
    use super::{Sample, svg};

    #[test]
    fn every_sample_is_in_every_panel() {
        let sample = |minute| Sample { minute, actions: 9, memory: 20_000, descriptors: 12, threads: 4 };
        let drawn = svg(&[sample(1), sample(2), sample(3)]);
        let lines: Vec<&str> = drawn.lines().filter(|line| line.contains("polyline")).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.matches(',').count() == 3), "{lines:?}");
    }
}
