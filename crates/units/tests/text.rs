//! What people write, what is printed, and that one is the other.

use proptest::prelude::*;
use units::{Bytes, Rate, Time};

#[test]
fn written_and_printed() {
    for (text, ps, shown) in [
        ("20 ms", 20_000_000_000, "20 ms"),
        ("0.1us", 100_000, "100 ns"),
        ("1.5 s", 1_500_000_000_000, "1.5 s"),
        ("1_000 ns", 1_000_000, "1 us"),
        ("1 ps", 1, "1 ps"),
        ("2 min", 120_000_000_000_000, "120 s"),
        ("0 s", 0, "0 s"),
        ("1234567 ps", 1_234_567, "1234.567 ns"),
        // As programs print numbers.
        ("1e-05 ms", 10_000, "10 ns"),
        ("2.50E+3 us", 2_500_000_000, "2.5 ms"),
        ("1e3s", 1_000_000_000_000_000, "1000 s"),
        ("0e999 s", 0, "0 s"),
    ] {
        let time: Time = text.parse().unwrap();
        assert_eq!(time.as_ps(), ps, "{text}");
        assert_eq!(time.to_string(), shown);
    }
    for (text, bps, shown) in [
        ("10 Gbit/s", 10_000_000_000, "10 Gbit/s"),
        ("500 Mbps", 500_000_000, "500 Mbit/s"),
        ("1.25 MB/s", 10_000_000, "10 Mbit/s"),
        ("0 bit/s", 0, "0 bit/s"),
        ("95.6 Mbit/s", 95_600_000, "95.6 Mbit/s"),
    ] {
        let rate: Rate = text.parse().unwrap();
        assert_eq!((rate.as_bps(), rate.to_string().as_str()), (bps, shown), "{text}");
    }
    for (text, bytes, shown) in [
        ("128 KiB", 131_072, "128 KiB"),
        ("100 MB", 100_000_000, "100 MB"),
        ("1500 B", 1500, "1.5 kB"),
        ("0 B", 0, "0 B"),
    ] {
        let size: Bytes = text.parse().unwrap();
        assert_eq!((size.get(), size.to_string().as_str()), (bytes, shown), "{text}");
    }
}

#[test]
fn refused_with_the_reason() {
    for (text, why) in [
        ("20", "the unit is missing (known: ps, ns, us, ms, s"),
        ("-1 ms", "must not be negative"),
        ("ms", "does not start with a number"),
        ("1.2.3 s", "two points"),
        ("0.5 ps", "not a whole number of ps"),
        ("300 days", "no unit `days`"),
        ("99999999999 s", "too large"),
        ("1e-13 s", "not a whole number of ps"),
        ("1e20 s", "too large"),
        ("1e50 s", "too large"),
        ("1e-50 s", "too many digits"),
        ("1e99999999999 s", "too many digits"),
        ("1e s", "no unit `e s`"),
        ("1e+ s", "no unit `e+ s`"),
        ("e3 s", "does not start with a number"),
    ] {
        let error = text.parse::<Time>().unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("20 ms"), "{text}: {error}");
    }
}

#[test]
fn rates_and_sizes_make_times() {
    let rate: Rate = "1 Gbit/s".parse().unwrap();
    assert_eq!(rate.time_for(Bytes::new(1500)), Time::from_us(12));
    assert_eq!(Rate::from_bps(3).time_for(Bytes::new(1)), Time::from_ps(2_666_666_666_667));
    assert_eq!(Rate::ZERO.time_for(Bytes::new(1)), Time::MAX);
    assert_eq!(Rate::of(Bytes::new(1500), Time::from_us(12)), Some(rate));
    assert_eq!(Rate::of(Bytes::new(1500), Time::ZERO), None);
}

proptest! {
    #[test]
    fn what_is_printed_parses(value: u64) {
        prop_assert_eq!(Time::from_ps(value).to_string().parse(), Ok(Time::from_ps(value)));
        prop_assert_eq!(Rate::from_bps(value).to_string().parse(), Ok(Rate::from_bps(value)));
        prop_assert_eq!(Bytes::new(value).to_string().parse(), Ok(Bytes::new(value)));
    }

    #[test]
    fn any_text_is_parsed_or_refused(text: String) {
        let _ = (text.parse::<Time>(), text.parse::<Rate>(), text.parse::<Bytes>());
    }
}
