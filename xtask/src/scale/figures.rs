//! The measured figures: costs by size, in several series; stored as comma-separated text.

use std::fmt::Write as _;

use super::panels::Panel;
use crate::load::Fault;

const HEAD: &str = "series,size,cost";

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) series: String,
    pub(super) size: u32,
    pub(super) cost: f64,
}

/// All measurements, in the order they were made.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Figures(Vec<Figure>);

impl Figures {
    /// Records a measurement and replaces an earlier one of the same size. Keeps three decimals: more would be noise.
    pub(super) fn put(&mut self, series: &str, size: u32, cost: f64) {
        let cost = (cost * 1000.0).round() / 1000.0;
        match self.0.iter_mut().find(|known| known.series == series && known.size == size) {
            Some(known) => known.cost = cost,
            None => self.0.push(Figure { series: series.to_owned(), size, cost }),
        }
    }

    /// Removes the figures of a part; its series begin with its name.
    pub(super) fn remove(&mut self, part: &str) {
        self.0.retain(|figure| figure.series.split('.').next() != Some(part));
    }

    /// Returns a series: sizes with their costs, in ascending order.
    pub(super) fn of(&self, series: &str) -> Vec<(u32, f64)> {
        let own = self.0.iter().filter(|figure| figure.series == series);
        let mut points: Vec<_> = own.map(|figure| (figure.size, figure.cost)).collect();
        points.sort_by_key(|(size, _)| *size);
        points
    }

    pub(super) fn to_csv(&self) -> String {
        let rows = self.0.iter().map(|Figure { series, size, cost }| format!("{series},{size},{cost}\n"));
        format!("{HEAD}\n{}", rows.collect::<String>())
    }

    pub(super) fn from_csv(text: &str) -> Result<Self, Fault> {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err(Fault(format!("the figures do not begin with `{HEAD}`")));
        }
        let mut figures = Self::default();
        for line in lines {
            let figure = read(line).ok_or_else(|| Fault(format!("not a figure: `{line}`")))?;
            figures.put(&figure.series, figure.size, figure.cost);
        }
        Ok(figures)
    }

    /// Formats a panel as a Markdown table; `None` without figures.
    pub(super) fn table(&self, panel: &Panel) -> Option<String> {
        let sizes = self.sizes(panel);
        if sizes.is_empty() {
            return None;
        }
        let mut text = format!("| {} |", panel.sizes);
        let mut rule = String::from("\n|---:|");
        for line in panel.lines {
            let _ = write!(text, " {} |", if line.label.is_empty() { panel.cost } else { line.label });
            rule += "---:|";
            if let Some(each) = &panel.each {
                let _ = write!(text, " {} |", each.unit);
                rule += "---:|";
            }
        }
        text += &rule;
        for size in sizes {
            let _ = write!(text, "\n| {} |", grouped(size));
            for line in panel.lines {
                let cost = self.of(line.series).into_iter().find(|(known, _)| *known == size);
                text += &cells(cost, panel);
            }
        }
        Some(text)
    }

    fn sizes(&self, panel: &Panel) -> Vec<u32> {
        let points = panel.lines.iter().flat_map(|line| self.of(line.series));
        let mut sizes: Vec<_> = points.map(|(size, _)| size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

fn cells(point: Option<(u32, f64)>, panel: &Panel) -> String {
    match (point, &panel.each) {
        (Some((size, cost)), Some(each)) => {
            format!(" {} | {} |", shown(cost), shown(cost * each.factor / f64::from(size)))
        }
        (Some((_, cost)), None) => format!(" {} |", shown(cost)),
        (None, Some(_)) => "  |  |".to_owned(),
        (None, None) => "  |".to_owned(),
    }
}

fn read(line: &str) -> Option<Figure> {
    let mut fields = line.split(',');
    let (series, size, cost) = (fields.next()?, fields.next()?, fields.next()?);
    let cost = cost.parse().ok().filter(|cost: &f64| cost.is_finite())?;
    let figure = Figure { series: series.to_owned(), size: size.parse().ok()?, cost };
    fields.next().is_none().then_some(figure)
}

/// Formats a cost with its significant digits.
fn shown(cost: f64) -> String {
    match cost.abs() {
        large if large >= 100.0 => format!("{cost:.0}"),
        middle if middle >= 10.0 => format!("{cost:.1}"),
        _ => format!("{cost:.2}"),
    }
}

/// Formats a number with separated thousands.
pub(super) fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Figures, grouped};
    use crate::scale::panels::PANELS;

    #[test]
    fn what_is_written_is_read_again() {
        let mut figures = Figures::default();
        for (size, cost) in [(1000, 1363.0), (10_000, 13_630.123_4), (2500, 0.001)] {
            figures.put("sessions.memory", size, cost);
        }
        figures.put("tools.call", 10, 21.5);
        assert_eq!(Figures::from_csv(&figures.to_csv()).unwrap(), figures);
        assert_eq!(figures.of("sessions.memory"), [(1000, 1363.0), (2500, 0.001), (10_000, 13_630.123)]);
    }

    #[test]
    fn a_second_measurement_of_a_size_replaces_the_first() {
        let mut figures = Figures::default();
        figures.put("tools.call", 10, 1.0);
        figures.put("tools.call", 10, 2.0);
        assert_eq!(figures.of("tools.call"), [(10, 2.0)]);
    }

    #[test]
    fn a_part_that_is_measured_again_begins_anew() {
        let mut figures = Figures::default();
        figures.put("tools.call", 10, 1.0);
        figures.put("toolsmith.call", 10, 1.0);
        figures.remove("tools");
        assert_eq!((figures.of("tools.call"), figures.of("toolsmith.call")), (vec![], vec![(10, 1.0)]));
    }

    #[test]
    fn what_is_not_a_table_of_figures_is_refused() {
        for text in ["", "size,cost\n", "series,size,cost\na,1\n", "series,size,cost\na,-1,2\n"] {
            assert!(Figures::from_csv(text).is_err(), "{text:?}");
        }
        for row in ["a,1,2,3", "a,1,NaN", "a,,2", ""] {
            assert!(Figures::from_csv(&format!("series,size,cost\n{row}\n")).is_err(), "{row:?}");
        }
    }

    #[test]
    fn a_table_shows_the_cost_and_the_share_of_each() {
        let panel = PANELS.iter().find(|panel| panel.each.is_some()).unwrap();
        let mut figures = Figures::default();
        figures.put(panel.lines[0].series, 2500, 5000.0);
        let (table, factor) = (figures.table(panel).unwrap(), panel.each.as_ref().unwrap().factor);
        assert!(table.contains(&format!("| 2 500 | 5000 | {:.0} |", 2.0 * factor)), "{table}");
        assert_eq!(Figures::default().table(panel), None);
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1 000", "1 234 567"]);
    }
}
