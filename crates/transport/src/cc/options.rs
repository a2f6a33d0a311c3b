//! Parameters of a congestion control, as its user gives them: names and values in text.

use std::ops::RangeInclusive;

use units::{Bytes, Rate, Time};

/// Names and values.
pub type Given = [(String, String)];

/// Reads parameters by name, each once; [`Options::finish`] refuses what is wrong or was not asked for.
#[derive(Debug)]
pub struct Options<'a> {
    given: &'a Given,
    known: Vec<&'static str>,
    wrong: Option<String>,
}

impl<'a> Options<'a> {
    pub fn new(given: &'a Given) -> Options<'a> {
        Options { given, known: Vec::new(), wrong: None }
    }

    fn text(&mut self, name: &'static str) -> Option<&'a str> {
        self.known.push(name);
        self.given.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    fn refuse(&mut self, name: &str, value: &str, wanted: &str) {
        self.wrong.get_or_insert_with(|| format!("{name} is `{value}`; give {wanted}"));
    }

    pub fn time(&mut self, name: &'static str, default: Time) -> Time {
        self.given_time(name).unwrap_or(default)
    }

    /// A time above 0.
    pub fn span(&mut self, name: &'static str, default: Time) -> Time {
        let Some(text) = self.text(name) else { return default };
        text.parse().ok().filter(|time: &Time| !time.is_zero()).unwrap_or_else(|| {
            self.refuse(name, text, "a time above 0, as `1 us`");
            default
        })
    }

    /// A time, if one was given.
    pub fn given_time(&mut self, name: &'static str) -> Option<Time> {
        let text = self.text(name)?;
        let time = text.parse().ok();
        if time.is_none() {
            self.refuse(name, text, "a time, as `50 us`");
        }
        time
    }

    /// A rate above 0.
    pub fn rate(&mut self, name: &'static str, default: Rate) -> Rate {
        self.given_rate(name).unwrap_or(default)
    }

    /// A rate above 0, if one was given.
    pub fn given_rate(&mut self, name: &'static str) -> Option<Rate> {
        let text = self.text(name)?;
        let rate = text.parse().ok().filter(|rate: &Rate| !rate.is_zero());
        if rate.is_none() {
            self.refuse(name, text, "a rate above 0, as `10 Gbit/s`");
        }
        rate
    }

    pub fn size(&mut self, name: &'static str, default: Bytes) -> Bytes {
        let Some(text) = self.text(name) else { return default };
        text.parse().unwrap_or_else(|_| {
            self.refuse(name, text, "a size, as `100 kB`");
            default
        })
    }

    pub fn number(&mut self, name: &'static str, default: f64, range: RangeInclusive<f64>) -> f64 {
        let Some(text) = self.text(name) else { return default };
        text.parse().ok().filter(|number| range.contains(number)).unwrap_or_else(|| {
            self.refuse(name, text, &format!("a number from {} to {}", range.start(), range.end()));
            default
        })
    }

    pub fn count(&mut self, name: &'static str, default: u32, range: RangeInclusive<u32>) -> u32 {
        let Some(text) = self.text(name) else { return default };
        text.parse().ok().filter(|number| range.contains(number)).unwrap_or_else(|| {
            self.refuse(name, text, &format!("a whole number from {} to {}", range.start(), range.end()));
            default
        })
    }

    /// One of some names; the first is the default.
    pub fn one_of<T: Copy>(&mut self, name: &'static str, choices: &[(&'static str, T)]) -> T {
        let default = choices[0].1;
        let Some(text) = self.text(name) else { return default };
        choices.iter().find(|(choice, _)| *choice == text).map_or_else(
            || {
                let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
                self.refuse(name, text, &format!("one of {}", names.join(", ")));
                default
            },
            |(_, value)| *value,
        )
    }

    /// # Errors
    /// The first value that is wrong, or a name that was not asked for.
    pub fn finish(self, control: &str) -> Result<(), String> {
        if let Some(wrong) = self.wrong {
            return Err(format!("{control}: {wrong}"));
        }
        let Some((name, _)) = self.given.iter().find(|(name, _)| !self.known.contains(&name.as_str())) else {
            return Ok(());
        };
        Err(if self.known.is_empty() {
            format!("{control} has no parameters, and `{name}` is given")
        } else {
            format!("{control} has no parameter `{name}`; it has {}", self.known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn values_are_read_and_defaults_kept() {
        let given =
            given(&[("t_low", "50 us"), ("delta", "20 Mbit/s"), ("beta", "0.6"), ("signal", "stamp")]);
        let mut options = Options::new(&given);
        assert_eq!(options.time("t_low", Time::ZERO), Time::from_us(50));
        assert_eq!(options.time("t_high", Time::from_us(7)), Time::from_us(7));
        assert_eq!(options.rate("delta", Rate::ZERO), Rate::from_mbps(20));
        assert_eq!(options.number("beta", 0.8, 0.0..=1.0), 0.6);
        assert_eq!(options.one_of("signal", &[("rtt", 1), ("stamp", 2)]), 2);
        assert_eq!(options.finish("timely"), Ok(()));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_right() {
        type Read = fn(&mut Options);
        let cases: [(&str, Read, &str); 6] = [
            ("t_low", |o| _ = o.time("t_low", Time::ZERO), "t_low is `x`; give a time, as `50 us`"),
            ("unit", |o| _ = o.span("unit", Time::ZERO), "unit is `x`; give a time above 0, as `1 us`"),
            (
                "delta",
                |o| _ = o.rate("delta", Rate::ZERO),
                "delta is `x`; give a rate above 0, as `10 Gbit/s`",
            ),
            ("beta", |o| _ = o.number("beta", 0.8, 0.0..=1.0), "beta is `x`; give a number from 0 to 1"),
            ("hai", |o| _ = o.count("hai", 5, 1..=9), "hai is `x`; give a whole number from 1 to 9"),
            (
                "signal",
                |o| _ = o.one_of("signal", &[("rtt", 1), ("stamp", 2)]),
                "signal is `x`; give one of rtt, stamp",
            ),
        ];
        for (name, read, why) in cases {
            let given = given(&[(name, "x")]);
            let mut options = Options::new(&given);
            read(&mut options);
            assert_eq!(options.finish("timely"), Err(format!("timely: {why}")));
        }
    }

    #[test]
    fn a_span_is_above_0() {
        let given = given(&[("unit", "0 ps")]);
        let mut options = Options::new(&given);
        options.span("unit", Time::from_us(1));
        let why = "timely: unit is `0 ps`; give a time above 0, as `1 us`";
        assert_eq!(options.finish("timely"), Err(why.into()));
    }

    #[test]
    fn a_name_that_is_not_known_is_refused() {
        let given = given(&[("betta", "1")]);
        assert_eq!(
            Options::new(&given).finish("reno"),
            Err("reno has no parameters, and `betta` is given".into())
        );
        let mut options = Options::new(&given);
        options.number("beta", 0.8, 0.0..=1.0);
        options.number("alpha", 0.8, 0.0..=1.0);
        assert_eq!(
            options.finish("timely"),
            Err("timely has no parameter `betta`; it has beta, alpha".into())
        );
    }
}
