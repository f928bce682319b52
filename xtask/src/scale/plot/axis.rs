//! An axis from zero to a round number, with its ticks.

use crate::scale::figures::grouped;

/// Maximum steps of an axis.
const STEPS: u32 = 5;

/// Maps values from zero on to a range of coordinates.
pub(crate) struct Axis {
    step: f64,
    steps: u32,
    from: f64,
    to: f64,
}

impl Axis {
    /// Creates an axis that covers all values.
    pub(crate) fn up_to(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let most = values.fold(0.0, f64::max);
        let step = round(most / f64::from(STEPS));
        let fits = |steps: &u32| step * f64::from(*steps) >= most * (1.0 - 1e-9);
        Self { step, steps: (1..=STEPS).find(fits).unwrap_or(STEPS), from, to }
    }

    /// Returns the largest covered value.
    pub(crate) fn most(&self) -> f64 {
        self.step * f64::from(self.steps)
    }

    /// Returns the coordinate of a value.
    pub(crate) fn at(&self, value: f64) -> f64 {
        self.from + (self.to - self.from) * value / self.most()
    }

    pub(crate) fn ticks(&self) -> impl Iterator<Item = f64> {
        (0..=self.steps).map(|tick| self.step * f64::from(tick))
    }

    /// Formats the number at a tick, with the decimals of the step.
    pub(crate) fn label(&self, tick: f64) -> String {
        if self.step < 1.0 {
            let decimals = (1..=3).find(|count| self.step * 10_f64.powi(*count) >= 1.0).unwrap_or(4);
            return format!("{tick:.*}", usize::try_from(decimals).unwrap_or_default());
        }
        // A step of 1 or more is a whole number, except for 2.5.
        if self.step < 10.0 && self.step.fract() > 0.0 {
            return format!("{tick:.1}");
        }
        format!("{tick:.0}").parse().map_or_else(|_| format!("{tick:.0}"), grouped)
    }
}

/// Returns the smallest of 1, 2, 2.5, 5 times a power of ten that is not below the value.
fn round(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let of = |factor: &f64| power * factor >= value * (1.0 - 1e-9);
    power * [1.0, 2.0, 2.5, 5.0].into_iter().find(of).unwrap_or(10.0)
}

#[cfg(test)]
mod tests {
    use super::{Axis, round};

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn steps_are_round_numbers_that_are_not_too_small() {
        let cases = [
            (0.0, 1.0),
            (0.03, 0.05),
            (1.0, 1.0),
            (1.3, 2.0),
            (2.2, 2.5),
            (3.0, 5.0),
            (7.0, 10.0),
            (2000.0, 2000.0),
        ];
        for (value, step) in cases {
            assert!(near(round(value), step), "{value}: {}", round(value));
        }
    }

    #[test]
    fn an_axis_has_room_for_its_largest_value_and_begins_with_nothing() {
        for most in [0.004, 0.9, 3.0, 13.6, 999.0, 240_000.0] {
            let axis = Axis::up_to([most / 2.0, most].into_iter(), 70.0, 456.0);
            let ticks: Vec<_> = axis.ticks().collect();
            assert!(
                near(ticks[0], 0.0) && ticks.last().is_some_and(|last| *last >= most),
                "{most}: {ticks:?}"
            );
            assert!(near(axis.at(0.0), 70.0) && axis.at(most) <= 456.0 + 1e-9, "{most}");
            assert!(axis.at(most) > 456.0 / 2.0, "{most} has the better half of it");
        }
    }

    #[test]
    fn an_axis_may_point_upwards() {
        let axis = Axis::up_to([10.0].into_iter(), 200.0, 100.0);
        assert!(near(axis.at(5.0), 150.0) && near(axis.at(10.0), 100.0));
    }

    #[test]
    fn numbers_have_the_decimals_of_their_step() {
        let labels = |most: f64| {
            let axis = Axis::up_to([most].into_iter(), 0.0, 1.0);
            axis.ticks().map(|tick| axis.label(tick)).collect::<Vec<_>>()
        };
        assert_eq!(labels(10_000.0), ["0", "2 000", "4 000", "6 000", "8 000", "10 000"]);
        assert_eq!(labels(1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(12.5), ["0.0", "2.5", "5.0", "7.5", "10.0", "12.5"]);
        assert_eq!(labels(0.0), ["0", "1"]);
    }
}
