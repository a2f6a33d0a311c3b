//! What switches have stamped on a packet, as a congestion control reads it: a value folded over the hops of a path, or one for
//! each hop, in bins of a known size.
//!
//! The field is the value in network order, then a byte with the version (2 bits, 0) and the number of switches that stamped
//! (6 bits). No switch: there is no value, which is not the same as a value of 0.

use units::Time;

use super::Options;

/// How the fields of several hops, or of the way there and the way back, become one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fold {
    Max,
    Sum,
    /// Root of the sum of squares; a folded field is the sum.
    SumOfSquares,
}

/// Reads stamps, and keeps the last one until it is taken.
#[derive(Debug, Clone)]
pub struct StampField {
    /// Picoseconds that a step of the code stands for.
    unit: f64,
    /// Bins are as numbers with a mantissa of so many bits; 0: they are equal.
    mantissa: u32,
    fold: Fold,
    /// Bytes of each hop's value, where a field has one for each; 0: it has one in all.
    entry: usize,
    /// Option that brings the echo of the way there, and the one that ACKs are stamped in, if it counts (0: it does not).
    kind: u16,
    back_kind: u16,
    there: Option<f64>,
    back: Option<f64>,
}

impl StampField {
    pub fn new(options: &mut Options) -> StampField {
        let folds = [("max", Fold::Max), ("sum", Fold::Sum), ("sum_squ", Fold::SumOfSquares)];
        StampField {
            unit: unit(options),
            mantissa: options.count("stamp_mantissa", 0, 0..=16),
            fold: options.one_of("stamp_fold", &folds),
            entry: options.count("stamp_entry", 0, 0..=4) as usize,
            kind: options.count("stamp_kind", 253, 1..=0xffff) as u16,
            back_kind: options.count("stamp_back_kind", 0, 0..=0xffff) as u16,
            there: None,
            back: None,
        }
    }

    /// An option has come.
    pub fn note(&mut self, kind: u16, data: &[u8]) {
        if kind == self.kind {
            self.there = self.read(data);
        } else if kind == self.back_kind {
            self.back = self.read(data);
        }
    }

    /// Picoseconds that the field of the ACK that is processed stands for, once.
    pub fn take(&mut self) -> Option<f64> {
        match (self.there.take(), self.back.take()) {
            (Some(there), Some(back)) => Some(self.folded([there, back])),
            (there, _) => there,
        }
    }

    fn read(&self, data: &[u8]) -> Option<f64> {
        let (state, value) = data.split_last()?;
        let hops = usize::from(state & 63);
        if state >> 6 != 0 || hops == 0 || value.is_empty() {
            return None;
        }
        if self.entry == 0 {
            let steps = self.steps(value)?;
            let root = self.fold == Fold::SumOfSquares;
            return Some(self.unit * if root { steps.sqrt() } else { steps });
        }
        let entries = value.chunks_exact(self.entry).take(hops);
        Some(self.folded(entries.filter_map(|entry| Some(self.unit * self.steps(entry)?))))
    }

    /// Steps that a code stands for: the lower edge of its bin.
    fn steps(&self, bytes: &[u8]) -> Option<f64> {
        if bytes.len() > 4 {
            return None;
        }
        let code = bytes.iter().fold(0u64, |code, byte| code << 8 | u64::from(*byte));
        let exponent = (code >> self.mantissa).saturating_sub(1);
        if self.mantissa == 0 || exponent == 0 {
            return Some(code as f64);
        }
        let low = (code & ((1 << self.mantissa) - 1)) | 1 << self.mantissa;
        Some(low as f64 * 2f64.powi(exponent.min(200) as i32))
    }

    fn folded(&self, values: impl IntoIterator<Item = f64>) -> f64 {
        let values = values.into_iter();
        match self.fold {
            Fold::Max => values.fold(0.0, f64::max),
            Fold::Sum => values.sum(),
            Fold::SumOfSquares => values.map(|value| value * value).sum::<f64>().sqrt(),
        }
    }
}

/// A step may be a part of a picosecond: `stamp_unit` / 2^`stamp_shift`.
fn unit(options: &mut Options) -> f64 {
    let unit = options.span("stamp_unit", Time::from_us(1)).as_ps() as f64;
    unit / 2f64.powi(options.count("stamp_shift", 0, 0..=32) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(pairs: &[(&str, &str)]) -> StampField {
        let given: Vec<_> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut options = Options::new(&given);
        let field = StampField::new(&mut options);
        assert_eq!(options.finish("test"), Ok(()));
        field
    }

    fn taken(field: &mut StampField, data: &[u8]) -> Option<f64> {
        field.note(253, data);
        field.take()
    }

    #[test]
    fn a_value_counts_in_its_units_once() {
        let mut field = field(&[("stamp_unit", "2 us")]);
        assert_eq!(taken(&mut field, &[5, 1]), Some(10e6));
        assert_eq!(field.take(), None);
        assert_eq!(taken(&mut field, &[1, 0, 3]), Some(512e6));
        // Idle is a value.
        assert_eq!(taken(&mut field, &[0, 2]), Some(0.0));
    }

    #[test]
    fn a_step_may_be_a_part_of_a_picosecond() {
        let mut field = field(&[("stamp_unit", "580 ps"), ("stamp_shift", "13")]);
        assert_eq!(taken(&mut field, &[255, 255, 255, 255, 1]), Some(580.0 * 4_294_967_295.0 / 8192.0));
    }

    #[test]
    fn a_unit_of_0_is_refused() {
        let given = [("stamp_unit".to_owned(), "0 ps".to_owned())];
        let mut options = Options::new(&given);
        StampField::new(&mut options);
        let why = "test: stamp_unit is `0 ps`; give a time above 0, as `1 us`";
        assert_eq!(options.finish("test"), Err(why.to_owned()));
    }

    #[test]
    fn no_stamp_another_version_and_other_options_give_nothing() {
        let mut field = field(&[]);
        for data in [&[5, 0][..], &[5, 0x41], &[1], &[], &[1, 2, 3, 4, 5, 1]] {
            assert_eq!(taken(&mut field, data), None, "{data:?}");
        }
        field.note(254, &[5, 1]);
        assert_eq!(field.take(), None);
    }

    #[test]
    fn bins_with_a_mantissa_start_at_their_lower_edges() {
        let mut field = field(&[("stamp_mantissa", "1"), ("stamp_unit", "1 us")]);
        let steps: Vec<_> = (0..16).map(|code| taken(&mut field, &[code, 1]).map(|ps| ps / 1e6)).collect();
        let expected = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192];
        assert_eq!(steps, expected.map(|step| Some(f64::from(step))));
    }

    #[test]
    fn vectors_and_the_way_back_are_folded_alike() {
        for (fold, expected, with_back) in [("max", 4.0, 12.0), ("sum", 7.0, 19.0), ("sum_squ", 5.0, 13.0)] {
            let mut field = field(&[("stamp_fold", fold), ("stamp_entry", "1"), ("stamp_back_kind", "30")]);
            // The third entry is not filled.
            assert_eq!(taken(&mut field, &[3, 4, 9, 2]), Some(expected * 1e6));
            field.note(30, &[12, 0, 0, 1]);
            assert_eq!(taken(&mut field, &[3, 4, 9, 2]), Some(with_back * 1e6), "{fold}");
        }
        let mut folded = field(&[("stamp_fold", "sum_squ")]);
        assert_eq!(taken(&mut folded, &[25, 2]), Some(5e6));
    }
}
