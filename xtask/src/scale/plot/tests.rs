//! The plot is well-formed and shows every point at its position.

use super::{BOTTOM, HEIGHT, LEFT, PANELS, RIGHT, TOP, WIDTH, escaped, svg};
use crate::scale::figures::Figures;

/// Figures for every series: half of them proportional to the size, half of them hardly growing.
fn figures() -> Figures {
    let mut figures = Figures::default();
    for (index, line) in PANELS.iter().flat_map(|panel| panel.lines).enumerate() {
        for size in [1000, 5000, 10_000] {
            let slope = f64::from(u16::try_from(index + 1).unwrap());
            let cost =
                if index % 2 == 0 { f64::from(size) * slope } else { 500.0 + f64::from(size) / 1000.0 };
            figures.put(line.series, size, cost);
        }
    }
    figures
}

/// Returns the tags of a text without their brackets.
fn tags(text: &str) -> Vec<&str> {
    text.split('<').skip(1).map(|rest| rest.split_once('>').expect("a tag that ends").0).collect()
}

#[test]
fn every_element_that_is_opened_is_closed_in_order() {
    let text = svg(&figures());
    let mut open = Vec::new();
    for tag in tags(&text) {
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(!text.contains("NaN") && !text.contains("inf"));
}

#[test]
fn every_point_is_shown_within_its_diagram() {
    let text = svg(&figures());
    let number = |tag: &str, name: &str| -> f64 {
        let rest = tag.split_once(&format!("{name}=\"")).expect("an attribute").1;
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    let points: Vec<_> =
        tags(&text).into_iter().filter(|tag| tag.starts_with("circle") && !tag.ends_with('/')).collect();
    assert_eq!(points.len(), 3 * PANELS.iter().map(|panel| panel.lines.len()).sum::<usize>());
    for tag in points {
        assert!((LEFT..=WIDTH - RIGHT).contains(&number(tag, "cx")), "{tag}");
        assert!((TOP..=HEIGHT - BOTTOM).contains(&number(tag, "cy")), "{tag}");
    }
    for tag in tags(&text).into_iter().filter(|tag| tag.starts_with("line class=\"guide\"")) {
        assert!((TOP..=HEIGHT - BOTTOM).contains(&number(tag, "y2")), "{tag}");
    }
}

#[test]
fn a_larger_cost_is_higher_up_and_a_larger_size_further_right() {
    let text = svg(&figures());
    let line = text.split_once("<polyline class=\"line l0\" points=\"").unwrap().1;
    let points: Vec<(f64, f64)> = line
        .split_once('"')
        .unwrap()
        .0
        .split(' ')
        .map(|pair| {
            let (x, y) = pair.split_once(',').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        })
        .collect();
    assert!(points.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 > two[1].1), "{points:?}");
    // Half the size is half the way, on both axes.
    let middle = (f64::midpoint(points[2].0, LEFT), f64::midpoint(points[2].1, HEIGHT - BOTTOM));
    assert!((points[1].0 - middle.0).abs() < 0.2 && (points[1].1 - middle.1).abs() < 0.2, "{points:?}");
}

#[test]
fn every_panel_says_what_it_shows_in_both_schemes_of_colour() {
    let text = svg(&figures());
    for panel in PANELS {
        for words in [panel.title, panel.sizes, panel.cost] {
            assert!(text.contains(&format!(">{}</text>", escaped(words))), "{words}");
        }
        for line in panel.lines.iter().filter(|line| !line.label.is_empty()) {
            assert!(text.contains(&format!(">{}</text>", line.label)), "{}", line.label);
        }
    }
    assert!(text.contains("prefers-color-scheme: dark"));
    assert_eq!(escaped("a < b & c > d"), "a &lt; b &amp; c &gt; d");
}

#[test]
fn nothing_measured_is_an_empty_plot_and_no_failure() {
    assert!(!svg(&Figures::default()).contains("NaN"));
}
