//! Tables in a document: each is between a comment that names its panel and one that ends it.

use super::figures::Figures;
use super::panels::{PANELS, Panel};

const END: &str = "<!-- end -->";

/// Returns the document with the tables of these figures, where it has markers for them.
pub(super) fn renewed(document: &str, figures: &Figures) -> String {
    let mut text = document.to_owned();
    for panel in PANELS {
        let table = figures.table(panel);
        if let Some(renewed) = table.and_then(|table| with_table(&text, &place(panel), &table)) {
            text = renewed;
        }
    }
    text
}

/// Returns the document with this table after the marker line `begin`. `None` if it has no such marker, or no end after it.
pub(crate) fn with_table(document: &str, begin: &str, table: &str) -> Option<String> {
    let (before, rest) = document.split_once(begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n{table}\n\n{END}{after}"))
}

/// Returns the marker line before the table of a panel.
pub(super) fn place(panel: &Panel) -> String {
    format!("<!-- scale: {} -->\n", panel.title)
}

#[cfg(test)]
mod tests {
    use super::{Figures, PANELS, renewed};

    #[test]
    fn a_table_is_renewed_in_its_place_and_nothing_else_is_touched() {
        let panel = &PANELS[0];
        let mut figures = Figures::default();
        figures.put(panel.lines[0].series, 1000, 2.0);
        let around =
            |table: &str| format!("a\n<!-- scale: {} -->\n{table}<!-- end -->\nb <!-- end -->", panel.title);
        let table = figures.table(panel).unwrap();
        let expected = around(&format!("\n{table}\n\n"));
        assert_eq!(renewed(&around("\n| old |\n\n"), &figures), expected);
        assert_eq!(renewed(&expected, &figures), expected, "and again");
        for other in ["no place for it", "<!-- scale: Idle sessions -->\nno end"] {
            assert_eq!(renewed(other, &figures), other);
        }
    }
}
