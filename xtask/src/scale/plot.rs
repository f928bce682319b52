//! The plot of all panels, as SVG text: points and lines over axes, readable on light and dark pages.
//!
//! A dashed line shows linear growth through the middle point, or a constant cost.

mod axis;

use std::fmt::Write as _;

pub(crate) use self::axis::Axis;
use super::figures::{Figures, grouped};
use super::panels::{Growth, PANELS, Panel, middle};

const COLUMNS: usize = 2;
/// Size of a panel and the margins of its diagram, in pixels.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 72.0;
const BOTTOM: f64 = 50.0;
/// Height of the line below all panels.
const NOTE: &str =
    "dashed: in proportion to the cost at the middle size, or as at the smallest where it is to stay";
const NOTE_HEIGHT: f64 = 30.0;

/// Style sheet of all plots.
pub(crate) const STYLE: &str = "
  svg { font: 12px system-ui, sans-serif }
  .page { fill: #ffffff } .frame { stroke: #888888; fill: none } .grid { stroke: #e4e4e4 }
  text { fill: #222222 } .title { font-size: 14px; font-weight: 600 } .guide { stroke: #999999; stroke-dasharray: 5 4 }
  .line { fill: none; stroke-width: 2 }
  .l0 { stroke: #0b62a8 } .p0 { fill: #0b62a8 } .l1 { stroke: #b4480a } .p1 { fill: #b4480a }
  .l2 { stroke: #2f7d32 } .p2 { fill: #2f7d32 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #14171a } .frame { stroke: #777777 } .grid { stroke: #2c3136 } text { fill: #dddddd }
    .l0 { stroke: #6db3f2 } .p0 { fill: #6db3f2 } .l1 { stroke: #f2a065 } .p1 { fill: #f2a065 }
    .l2 { stroke: #86cf89 } .p2 { fill: #86cf89 }
  }
";

/// Draws every panel.
pub(super) fn svg(figures: &Figures) -> String {
    let (width, height) =
        (WIDTH * pixels(COLUMNS), HEIGHT * pixels(PANELS.len().div_ceil(COLUMNS)) + NOTE_HEIGHT);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\">\n<title>What one process costs, against what it holds</title>\n\
         <style>{STYLE}</style>\n<rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n"
    );
    for (index, panel) in PANELS.iter().enumerate() {
        let (x, y) = (WIDTH * pixels(index % COLUMNS), HEIGHT * pixels(index / COLUMNS));
        let _ = writeln!(text, "<g transform=\"translate({x} {y})\">\n{}</g>", drawn(panel, figures));
    }
    let _ = writeln!(text, "<text x=\"{LEFT}\" y=\"{}\">{NOTE}</text>\n</svg>", height - 12.0);
    text
}

/// Converts a small count to a coordinate.
fn pixels(count: usize) -> f64 {
    u16::try_from(count).map_or(0.0, f64::from)
}

/// Draws one panel: title, axes and lines.
fn drawn(panel: &Panel, figures: &Figures) -> String {
    let lines: Vec<_> = panel.lines.iter().map(|line| (line.label, figures.of(line.series))).collect();
    let all = || lines.iter().flat_map(|(_, points)| points);
    let sizes = Axis::up_to(all().map(|(size, _)| f64::from(*size)), LEFT, WIDTH - RIGHT);
    let costs = Axis::up_to(all().map(|(_, cost)| *cost), HEIGHT - BOTTOM, TOP);
    let mut text = format!("<text class=\"title\" x=\"{LEFT}\" y=\"22\">{}</text>\n", escaped(panel.title));
    text += &axes(panel, &sizes, &costs);
    for (index, (label, points)) in lines.iter().enumerate() {
        text += &guide(panel.growth, points, &sizes, &costs);
        let at: Vec<_> =
            points.iter().map(|(size, cost)| (sizes.at(f64::from(*size)), costs.at(*cost))).collect();
        let path: Vec<_> = at.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(text, "<polyline class=\"line l{index}\" points=\"{}\"/>", path.join(" "));
        for ((x, y), (size, cost)) in at.iter().zip(points) {
            let label = format!("{} {}: {cost} {}", grouped(*size), panel.sizes, panel.cost);
            let _ = writeln!(
                text,
                "<circle class=\"p{index}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{}</title></circle>",
                escaped(&label)
            );
        }
        if !label.is_empty() {
            let (x, name) = (LEFT + 140.0 * pixels(index), escaped(label));
            let _ = writeln!(text, "<circle class=\"p{index}\" cx=\"{}\" cy=\"56\" r=\"4\"/>", x + 4.0);
            let _ = writeln!(text, "<text x=\"{}\" y=\"60\">{name}</text>", x + 13.0);
        }
    }
    text
}

/// Draws the frame, the ticks with their numbers and the axis labels.
fn axes(panel: &Panel, sizes: &Axis, costs: &Axis) -> String {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let mut text = String::new();
    for tick in costs.ticks() {
        let (y, number) = (costs.at(tick), costs.label(tick));
        let _ =
            writeln!(text, "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>");
        let (x, y) = (LEFT - 6.0, y + 4.0);
        let _ = writeln!(text, "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{number}</text>");
    }
    for tick in sizes.ticks() {
        let (x, number) = (sizes.at(tick), sizes.label(tick));
        let (end, y) = (bottom + 5.0, bottom + 19.0);
        let _ = writeln!(
            text,
            "<line class=\"frame\" x1=\"{x:.1}\" y1=\"{bottom}\" x2=\"{x:.1}\" y2=\"{end}\"/>"
        );
        let _ = writeln!(text, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{number}</text>");
    }
    let _ = writeln!(text, "<path class=\"frame\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>");
    let _ = writeln!(text, "<text x=\"{LEFT}\" y=\"40\">{}</text>", escaped(panel.cost));
    let (x, y) = (right, bottom + 37.0);
    let _ = writeln!(text, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{}</text>", escaped(panel.sizes));
    text
}

/// Draws linear growth through the middle point, clipped to the frame, or the constant cost of the smallest size.
fn guide(growth: Growth, points: &[(u32, f64)], sizes: &Axis, costs: &Axis) -> String {
    let (Some(first), Some(middle), Some(last)) = (points.first(), middle(points), points.last()) else {
        return String::new();
    };
    let (slope, start) = match growth {
        Growth::Linear { .. } => (middle.1 / f64::from(middle.0), 0.0),
        Growth::Flat { .. } => (0.0, first.1),
        Growth::Below { .. } | Growth::Any => return String::new(),
    };
    let x1 = f64::from(first.0);
    let x2 = if slope > 0.0 { f64::from(last.0).min(costs.most() / slope) } else { f64::from(last.0) };
    let at = |size: f64| (sizes.at(size), costs.at(start + slope * size));
    let ((x1, y1), (x2, y2)) = (at(x1), at(x2));
    format!("<line class=\"guide\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;
