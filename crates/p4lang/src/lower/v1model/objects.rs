//! Extern objects of v1model: counters, meters, registers, action profiles and selectors.

use crate::hir::{Construct, Expr, ExprKind as K, Type};
use crate::ir::{self, CounterUnit, HashAlgorithm, MeterUnit};
use crate::lower::instance::Object;
use crate::lower::{Lowered, Lowerer};
use crate::source::Span;

impl Lowerer<'_> {
    pub(super) fn v1_object(
        &mut self,
        name: &str,
        (construct, ty): (&Construct, &Type),
        info: ir::Info,
    ) -> Lowered<Option<Object>> {
        let span = info.span;
        let types: Vec<Type> = construct.type_args.iter().map(|t| self.ty(t)).collect();
        let type_name = |l: &mut Self, ty: Option<&Type>| ty.and_then(|ty| l.control_type(ty));
        Ok(Some(match name {
            "counter" => {
                let size = self.object_size(construct, 0, span)?;
                let unit = self.counter_unit(construct, 1, span)?;
                let index_type_name = type_name(self, types.first());
                self.program.counters.push(ir::Counter { info, size, unit, index_type_name });
                Object::Counter(ir::CounterId(self.program.counters.len() as u32 - 1))
            }
            "meter" => {
                let size = self.object_size(construct, 0, span)?;
                let unit = self.meter_unit(construct, 1, span)?;
                let index_type_name = type_name(self, types.first());
                self.program.meters.push(ir::Meter { info, size, unit, index_type_name });
                Object::Meter(ir::MeterId(self.program.meters.len() as u32 - 1))
            }
            "direct_counter" => Object::DirectCounter(ir::DirectCounter {
                info,
                unit: self.counter_unit(construct, 0, span)?,
            }),
            "direct_meter" => Object::DirectMeter(
                ir::DirectMeter { info, unit: self.meter_unit(construct, 0, span)?, dst: None },
                Box::new(None),
            ),
            "register" => {
                let size = self.object_size(construct, 0, span)?;
                let element = types.first().cloned().unwrap_or(Type::Unknown);
                let Some(width) = self.scalar_width(&element).filter(|w| *w > 0) else {
                    let shown = crate::check::display(self.hir, ty);
                    return self.fail_help(
                        "unsupported",
                        span,
                        format!("`{shown}`: a register holds numbers"),
                        "use one register per field",
                    );
                };
                let index_type_name = type_name(self, types.get(1));
                let data = self.data_type(&element);
                self.program.registers.push(ir::Register { info, size, width, data, index_type_name });
                Object::Register(ir::RegisterId(self.program.registers.len() as u32 - 1))
            }
            "action_profile" => {
                let size = self.object_size(construct, 0, span)?;
                self.program.profiles.push(ir::ActionProfile { info, size, selector: None });
                Object::Profile(ir::ProfileId(self.program.profiles.len() as u32 - 1))
            }
            "action_selector" => {
                let algorithm = self.object_enum(construct, 0, span)?;
                let size = self.object_size(construct, 1, span)?;
                let width = self.object_size(construct, 2, span)?;
                let Some(algorithm) = algorithm_of(algorithm) else {
                    return self.fail("bad-call", span, "this is not a hash algorithm");
                };
                let max_group_size = info
                    .annotations
                    .iter()
                    .find_map(|a| a.inside("@max_group_size(")?.parse().ok())
                    .unwrap_or(0);
                let selector = Some(ir::Selector { algorithm, output_width: width as u32, max_group_size });
                self.program.profiles.push(ir::ActionProfile { info, size, selector });
                Object::Profile(ir::ProfileId(self.program.profiles.len() as u32 - 1))
            }
            "Checksum16" => Object::Stateless,
            _ => return Ok(None),
        }))
    }

    fn object_arg(&mut self, construct: &Construct, index: usize, span: Span) -> Lowered<Expr> {
        let arg = construct.args.get(index).cloned().flatten();
        match arg.as_ref().and_then(|a| self.constant(a)) {
            Some(value) => Ok(value),
            None => {
                self.fail("not-constant", arg.map_or(span, |a| a.span), "this must be known at compile time")
            }
        }
    }

    fn object_size(&mut self, construct: &Construct, index: usize, span: Span) -> Lowered<u64> {
        let arg = self.object_arg(construct, index, span)?;
        self.const_size(&arg)
    }

    fn object_enum(&mut self, construct: &Construct, index: usize, span: Span) -> Lowered<usize> {
        let arg = self.object_arg(construct, index, span)?;
        match arg.kind {
            K::EnumMember(_, member) => Ok(member),
            _ => self.fail("bad-call", arg.span, "this must be a member of an enum"),
        }
    }

    fn counter_unit(&mut self, construct: &Construct, index: usize, span: Span) -> Lowered<CounterUnit> {
        Ok(match self.object_enum(construct, index, span)? {
            0 => CounterUnit::Packets,
            1 => CounterUnit::Bytes,
            _ => CounterUnit::Both,
        })
    }

    fn meter_unit(&mut self, construct: &Construct, index: usize, span: Span) -> Lowered<MeterUnit> {
        Ok(if self.object_enum(construct, index, span)? == 0 { MeterUnit::Packets } else { MeterUnit::Bytes })
    }
}

/// By position in the enum.
pub(super) fn algorithm_of(member: usize) -> Option<HashAlgorithm> {
    Some(match member {
        0 => HashAlgorithm::Crc32,
        1 => HashAlgorithm::Crc32Custom,
        2 => HashAlgorithm::Crc16,
        3 => HashAlgorithm::Crc16Custom,
        4 => HashAlgorithm::Random,
        5 => HashAlgorithm::Identity,
        6 => HashAlgorithm::Csum16,
        7 => HashAlgorithm::Xor16,
        _ => return None,
    })
}
