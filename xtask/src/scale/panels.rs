//! The panels: one per kind of cost, with its unit and its permitted growth.

use super::figures::{Figures, grouped};

/// One diagram and one table.
pub(super) struct Panel {
    pub(super) title: &'static str,
    /// The quantity on the horizontal axis.
    pub(super) sizes: &'static str,
    /// The cost, with its unit.
    pub(super) cost: &'static str,
    /// The cost per unit, where it is meaningful.
    pub(super) each: Option<Each>,
    pub(super) growth: Growth,
    pub(super) lines: &'static [Line],
}

/// Cost per unit: the total times the factor, divided by the size.
pub(super) struct Each {
    pub(super) unit: &'static str,
    pub(super) factor: f64,
}

/// A series, and its name where a panel has several.
pub(super) struct Line {
    pub(super) series: &'static str,
    pub(super) label: &'static str,
}

/// Permitted growth of a cost. The slack, in the unit of the cost, allows for noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Growth {
    /// At most linear: the cost per unit at the largest size is at most this multiple of that at the middle size.
    Linear { times: f64, slack: f64 },
    /// Constant: the cost at the largest size is at most this multiple of that at the smallest.
    Flat { times: f64, slack: f64 },
    /// Below this cost at the largest size.
    Below { most: f64 },
    /// Not judged, because more is better.
    Any,
}

impl Growth {
    /// Returns the maximum cost at the largest size, for points in ascending order.
    pub(super) fn limit(self, points: &[(u32, f64)]) -> Option<f64> {
        let (smallest, middle, largest) = (points.first()?, middle(points)?, points.last()?);
        match self {
            Self::Linear { times, slack } => {
                Some(times * middle.1 / f64::from(middle.0) * f64::from(largest.0) + slack)
            }
            Self::Flat { times, slack } => Some(times * smallest.1 + slack),
            Self::Below { most } => Some(most),
            Self::Any => None,
        }
    }
}

/// Returns the point of the middle size, the lower one of two.
pub(super) fn middle(points: &[(u32, f64)]) -> Option<&(u32, f64)> {
    points.get(points.len().saturating_sub(1) / 2)
}

impl Panel {
    /// Returns the series of this panel that grow too fast.
    pub(super) fn faults(&self, figures: &Figures) -> Vec<String> {
        let judge = |line: &Line| {
            let points = figures.of(line.series);
            let ((size, cost), limit) = (*points.last()?, self.growth.limit(&points)?);
            (cost > limit).then(|| {
                let (size, what) = (grouped(size), self.sizes);
                format!("{}: {cost} {} at {size} {what}, and not {limit:.1}", line.series, self.cost)
            })
        };
        self.lines.iter().filter_map(judge).collect()
    }
}

const ONE_LINE: &str = "";

pub(super) const PANELS: &[Panel] = &[
    Panel {
        title: "Idle sessions",
        sizes: "sessions",
        cost: "MB of memory",
        each: Some(Each { unit: "bytes per session", factor: 1_000_000.0 }),
        growth: Growth::Linear { times: 1.5, slack: 1.0 },
        lines: &[Line { series: "sessions.memory", label: ONE_LINE }],
    },
    Panel {
        title: "Idle streams of sessions, connections included",
        sizes: "streams",
        cost: "MB of memory",
        each: Some(Each { unit: "bytes per stream", factor: 1_000_000.0 }),
        growth: Growth::Linear { times: 1.5, slack: 4.0 },
        lines: &[Line { series: "streams.memory", label: ONE_LINE }],
    },
    Panel {
        title: "Idle streams, pings included",
        sizes: "streams",
        cost: "ms of CPU per second",
        each: Some(Each { unit: "µs per second and stream", factor: 1000.0 }),
        growth: Growth::Linear { times: 1.5, slack: 5.0 },
        lines: &[Line { series: "streams.cpu", label: ONE_LINE }],
    },
    Panel {
        title: "Listeners on one change",
        sizes: "listeners",
        cost: "ms of CPU per change",
        each: Some(Each { unit: "µs per listener", factor: 1000.0 }),
        growth: Growth::Linear { times: 1.5, slack: 3.0 },
        lines: &[
            Line { series: "listeners.envelope.cpu", label: "2026-07-28" },
            Line { series: "listeners.sessions.cpu", label: "sessions" },
        ],
    },
    Panel {
        title: "Until the last listener has heard",
        sizes: "listeners",
        cost: "ms per change",
        each: Some(Each { unit: "µs per listener", factor: 1000.0 }),
        growth: Growth::Linear { times: 1.5, slack: 50.0 },
        lines: &[
            Line { series: "listeners.envelope.time", label: "2026-07-28" },
            Line { series: "listeners.sessions.time", label: "sessions" },
        ],
    },
    Panel {
        title: "A call of one of many tools",
        sizes: "tools",
        cost: "µs of CPU per call",
        each: None,
        growth: Growth::Flat { times: 1.25, slack: 5.0 },
        lines: &[Line { series: "tools.call", label: ONE_LINE }],
    },
    Panel {
        title: "The list of many tools",
        sizes: "tools",
        cost: "µs of CPU per list",
        each: Some(Each { unit: "ns per tool", factor: 1000.0 }),
        growth: Growth::Linear { times: 1.5, slack: 30.0 },
        lines: &[Line { series: "tools.list", label: ONE_LINE }],
    },
    Panel {
        title: "An echo of a large text over HTTP",
        sizes: "KiB",
        cost: "µs of CPU per call",
        each: Some(Each { unit: "µs per KiB", factor: 1.0 }),
        // Above some size the allocator returns blocks to the system and maps them again: a step, not a slope.
        growth: Growth::Linear { times: 2.0, slack: 30.0 },
        lines: &[Line { series: "payloads.echo", label: ONE_LINE }],
    },
    Panel {
        title: "Throughput of an echo over HTTP",
        sizes: "connections",
        cost: "thousand requests per second",
        each: None,
        growth: Growth::Any,
        lines: &[
            Line { series: "connections.duplexer.rate", label: "duplexer" },
            Line { series: "connections.floor.rate", label: "floor" },
        ],
    },
    Panel {
        title: "Latency of an echo over HTTP",
        sizes: "connections",
        cost: "ms at the 99th percentile",
        each: None,
        growth: Growth::Linear { times: 2.0, slack: 100.0 },
        lines: &[
            Line { series: "connections.duplexer.p99", label: "duplexer" },
            Line { series: "connections.floor.p99", label: "floor" },
        ],
    },
    Panel {
        title: "Memory after calls that were cancelled",
        sizes: "cancelled calls",
        cost: "MB of memory",
        each: None,
        // At most 350 bytes per call; the memory that the allocator keeps of a wave varies by a few MB.
        growth: Growth::Flat { times: 1.1, slack: 8.0 },
        lines: &[
            Line { series: "storm.envelope", label: "closed connections" },
            Line { series: "storm.sessions", label: "in a session" },
            Line { series: "storm.stdio", label: "stdio" },
        ],
    },
    Panel {
        title: "Memory after calls that were cancelled, all at once",
        sizes: "cancelled calls",
        cost: "MB of memory",
        each: None,
        growth: Growth::Below { most: 80.0 },
        lines: &[Line { series: "at_once.memory", label: ONE_LINE }],
    },
];

#[cfg(test)]
mod tests {
    use super::{Figures, Growth, PANELS};

    /// Builds points whose cost is this function of their size.
    fn points(cost: impl Fn(f64) -> f64) -> Vec<(u32, f64)> {
        [1000, 2500, 5000, 7500, 10_000].map(|size| (size, cost(f64::from(size)))).to_vec()
    }

    fn exceeds(growth: Growth, cost: impl Fn(f64) -> f64) -> bool {
        let points = points(cost);
        points.last().unwrap().1 > growth.limit(&points).unwrap()
    }

    #[test]
    fn a_cost_in_proportion_passes_and_a_quadratic_one_does_not() {
        let growth = Growth::Linear { times: 1.5, slack: 0.0 };
        assert!(!exceeds(growth, |size| 1.3 * size));
        assert!(!exceeds(growth, |size| 40.0 + 1.3 * size), "what is there at any size is no growth");
        assert!(!exceeds(growth, |_| 7.0));
        assert!(!exceeds(growth, |size| size * size.log2()), "a search tree is as good as linear");
        assert!(exceeds(growth, |size| 0.001 * size * size));
    }

    #[test]
    fn a_cost_that_is_to_stay_passes_only_if_it_does() {
        let growth = Growth::Flat { times: 1.25, slack: 5.0 };
        assert!(!exceeds(growth, |size| 20.0 + 0.000_5 * size));
        assert!(exceeds(growth, |size| 20.0 + 0.002 * size));
    }

    #[test]
    fn slack_is_what_noise_may_add() {
        let noisy = |size| if size > 9000.0 { 4.0 } else { 0.001 * size / 5.0 };
        assert!(exceeds(Growth::Linear { times: 1.5, slack: 0.0 }, noisy));
        assert!(!exceeds(Growth::Linear { times: 1.5, slack: 2.0 }, noisy));
    }

    #[test]
    fn few_points_are_judged_too() {
        let growth = Growth::Linear { times: 1.5, slack: 0.0 };
        assert_eq!(growth.limit(&[]), None);
        assert_eq!(growth.limit(&[(10, 2.0)]), Some(3.0));
        assert_eq!(growth.limit(&[(10, 2.0), (20, 100.0)]), Some(6.0));
    }

    #[test]
    fn a_fault_names_the_series_its_cost_and_what_it_may_cost() {
        let panel = &PANELS[0];
        let mut figures = Figures::default();
        for (size, cost) in points(|size| size * size) {
            figures.put(panel.lines[0].series, size, cost);
        }
        let faults = panel.faults(&figures);
        let named = |text: &String| text.contains("sessions.memory") && text.contains("10 000 sessions");
        assert!(faults.len() == 1 && faults.iter().all(named), "{faults:?}");
    }
}
