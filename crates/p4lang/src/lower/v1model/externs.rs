//! Extern functions and methods of v1model.

use super::objects::algorithm_of;
use super::{EGRESS, INGRESS};
use crate::diag::Diagnostic;
use crate::hir::{Call, Expr, ExprKind as K};
use crate::ir::{self, CloneKind, ExternCall, HashAlgorithm, HeaderRef, Place, Stmt};
use crate::lower::expr::Value;
use crate::lower::instance::{InstanceId, Object};
use crate::lower::store::Store;
use crate::lower::{Lowered, Lowerer, build};

/// v1model's port that drops.
const DROP_PORT: u32 = 511;

impl Lowerer<'_> {
    pub(super) fn v1_function(&mut self, name: &str, call: &Call) -> Lowered<Option<Value>> {
        let ext = |l: &mut Self, e: ExternCall| {
            l.emit(Stmt::Extern(e));
            Ok(Value::Unit)
        };
        let value = match name {
            "mark_to_drop" => self.mark_to_drop(call),
            "random" => {
                let (bounds, (dst, width, back)) = self.arg_values_out(call, [1, 2], 0)?;
                if width > 64 {
                    let message = format!("random numbers have 64 bits at most, not {width}");
                    let help = "draw several, and put them together with `++`";
                    return self.fail_help("unsupported", call.span, message, help);
                }
                let [lo, hi] = bounds.map(|bound| build::resize(self.number(bound), width, false));
                self.emit(Stmt::Extern(ExternCall::Random { dst, lo, hi }));
                self.finish_out(back);
                Ok(Value::Unit)
            }
            "hash" => {
                let algorithm = self.algorithm(call, 1)?;
                let ([base, data, max], (dst, _, back)) = self.arg_values_out(call, [2, 3, 4], 0)?;
                let (base, data, max) = (self.number(base), self.list(call, 3, data), self.number(max));
                self.emit(Stmt::Extern(ExternCall::Hash { dst, algorithm, base, data, max }));
                self.finish_out(back);
                Ok(Value::Unit)
            }
            "verify_checksum" | "verify_checksum_with_payload" => {
                let [cond, data, checksum] = self.arg_values(call, [0, 1, 2])?;
                let data = self.list(call, 1, data);
                let (cond, checksum) = (self.number(cond), self.number(checksum));
                let algorithm = self.algorithm(call, 3)?;
                let flag = self.program.package.field("standard_metadata.checksum_error");
                ext(
                    self,
                    ExternCall::VerifyChecksum {
                        flag,
                        cond,
                        data,
                        checksum,
                        algorithm,
                        payload: name.ends_with("payload"),
                    },
                )
            }
            "update_checksum" | "update_checksum_with_payload" => {
                let algorithm = self.algorithm(call, 3)?;
                let ([cond, data], (dst, _, back)) = self.arg_values_out(call, [0, 1], 2)?;
                let (cond, data) = (self.number(cond), self.list(call, 1, data));
                self.emit(Stmt::Extern(ExternCall::UpdateChecksum {
                    cond,
                    data,
                    dst,
                    algorithm,
                    payload: name.ends_with("payload"),
                }));
                self.finish_out(back);
                Ok(Value::Unit)
            }
            "digest" => self.digest(call),
            "clone" | "clone3" | "clone_preserving_field_list" => {
                let kind = self.clone_kind(call)?;
                match kind {
                    CloneKind::IngressToEgress => self.effect_in(INGRESS, "a clone of type I2E", call),
                    CloneKind::EgressToEgress => self.effect_in(EGRESS, "a clone of type E2E", call),
                }
                let session = self.arg_scalar(call, 1)?;
                let field_list = match name {
                    "clone" => None,
                    "clone3" => self.explicit_list(call, 2)?,
                    _ => Some(self.list_index(call, 2)?),
                };
                ext(self, ExternCall::Clone { kind, session, field_list })
            }
            "resubmit" => {
                self.effect_in(INGRESS, "`resubmit`", call);
                let field_list = self.explicit_list(call, 0)?;
                ext(self, ExternCall::Resubmit { field_list })
            }
            "resubmit_preserving_field_list" => {
                self.effect_in(INGRESS, "`resubmit`", call);
                let field_list = Some(self.list_index(call, 0)?);
                ext(self, ExternCall::Resubmit { field_list })
            }
            "recirculate" => {
                self.effect_in(EGRESS, "`recirculate`", call);
                let field_list = self.explicit_list(call, 0)?;
                ext(self, ExternCall::Recirculate { field_list })
            }
            "recirculate_preserving_field_list" => {
                self.effect_in(EGRESS, "`recirculate`", call);
                let field_list = Some(self.list_index(call, 0)?);
                ext(self, ExternCall::Recirculate { field_list })
            }
            "truncate" => {
                let bytes = self.arg_scalar(call, 0)?;
                ext(self, ExternCall::Truncate { bytes })
            }
            "assert" | "assume" => {
                let cond = self.arg_scalar(call, 0)?;
                let text = self.sources.text(call.span).to_owned();
                let span = call.span;
                ext(
                    self,
                    if name == "assert" {
                        ExternCall::Assert { cond, text, span }
                    } else {
                        ExternCall::Assume { cond, text, span }
                    },
                )
            }
            "log_msg" => {
                let K::Str(format) = self.const_arg(call, 0)?.kind else {
                    return self.fail("bad-call", call.span, "the message must be a string");
                };
                let args = self.arg_list(call, 1)?;
                let ty = self.arg_type(call, 1);
                let (format, args) = self.log_format(&format, &ty, args);
                ext(self, ExternCall::LogMsg { format, args })
            }
            _ => return Ok(None),
        }?;
        Ok(Some(value))
    }

    fn mark_to_drop(&mut self, call: &Call) -> Lowered<Value> {
        let targets = match call.args.first() {
            // The form with an argument: the standard metadata that it names.
            Some(Some(arg)) => {
                let store = self.place(arg, true)?;
                let fields = self.fields(&self.ty(&arg.ty));
                let find = |name: &str| {
                    let index = fields.iter().position(|(f, _)| &*f.name == name)?;
                    match &store {
                        Store::Struct(items) => match &items[index] {
                            Store::Scalar(place, width) => Some((place.clone(), *width)),
                            _ => None,
                        },
                        _ => None,
                    }
                };
                (find("egress_spec"), find("mcast_grp"))
            }
            _ => {
                let place = |name: &str| {
                    let var = self.program.package.field(name)?;
                    Some((Place::Var(var), self.program[var].width))
                };
                (place("standard_metadata.egress_spec"), place("standard_metadata.mcast_grp"))
            }
        };
        if let (Some((place, width)), _) = &targets {
            self.emit(Stmt::Assign { dst: place.clone(), src: build::constant(DROP_PORT, *width) });
        }
        if let (_, Some((place, width))) = targets {
            self.emit(Stmt::Assign { dst: place, src: build::constant(0u8, width) });
        }
        Ok(Value::Unit)
    }

    fn algorithm(&mut self, call: &Call, index: usize) -> Lowered<HashAlgorithm> {
        let arg = self.const_arg(call, index)?;
        match arg.kind {
            K::EnumMember(_, member) => match algorithm_of(member) {
                Some(algorithm) => Ok(algorithm),
                None => self.fail("bad-call", arg.span, "this is not a hash algorithm"),
            },
            _ => self.fail("bad-call", arg.span, "this is not a hash algorithm"),
        }
    }

    /// Warns of a call that stands elsewhere than in the control in which it has an effect.
    fn effect_in(&mut self, control: &str, what: &str, call: &Call) {
        // Blocks are lowered in the order of their roles.
        let role = self.arch.roles().get(self.program.package.blocks.len());
        if role.is_some_and(|role| role.name != control) && self.warned.insert(call.span) {
            let message = format!("{what} has no effect here");
            let help = format!("call it in the {control} control");
            self.diagnostics.push(Diagnostic::warning("no-effect", call.span, message).help(help));
        }
    }

    fn clone_kind(&mut self, call: &Call) -> Lowered<CloneKind> {
        match self.const_arg(call, 0)?.kind {
            K::EnumMember(_, 0) => Ok(CloneKind::IngressToEgress),
            K::EnumMember(_, 1) => Ok(CloneKind::EgressToEgress),
            _ => {
                self.fail("bad-call", call.span, "the first argument must be CloneType.I2E or CloneType.E2E")
            }
        }
    }

    fn list_index(&mut self, call: &Call, index: usize) -> Lowered<u32> {
        let arg = self.const_arg(call, index)?;
        let value = self.const_int(&arg)?;
        let number = u32::try_from(&value).unwrap_or(u32::MAX);
        // An index that no field names keeps nothing.
        self.field_lists
            .entry(number)
            .or_insert_with(|| ir::FieldList { index: number, ..Default::default() });
        Ok(number)
    }

    /// The old forms name their fields; they get a list of their own, numbered past those of `@field_list`.
    fn explicit_list(&mut self, call: &Call, index: usize) -> Lowered<Option<u32>> {
        let Some(Some(arg)) = call.args.get(index) else { return Ok(None) };
        let mut list = ir::FieldList::default();
        self.listed(arg, &mut list)?;
        if list.vars.is_empty() && list.headers.is_empty() {
            return Ok(None);
        }
        let number = self.field_lists.keys().next_back().map_or(256, |n| (n + 1).max(256));
        list.index = number;
        self.field_lists.insert(number, list);
        Ok(Some(number))
    }

    fn listed(&mut self, e: &Expr, list: &mut ir::FieldList) -> Lowered<()> {
        match &e.kind {
            K::List(items) | K::Struct(items, _) => {
                items.iter().flatten().try_for_each(|e| self.listed(e, list))
            }
            _ => {
                if let Value::Store(store) = self.value(e)? {
                    collect(&store, list);
                }
                Ok(())
            }
        }
    }

    pub(super) fn v1_method(
        &mut self,
        instance: InstanceId,
        name: &str,
        call: &Call,
    ) -> Lowered<Option<Value>> {
        match (self.instances[instance.0].object.clone(), name) {
            (Object::Counter(counter), "count") => {
                let index = self.arg_scalar(call, 0)?;
                self.emit(Stmt::Extern(ExternCall::CounterCount { counter, index }));
            }
            // The table counts by itself.
            (Object::DirectCounter(counter), "count") => {
                self.direct_uses.push((counter.info.name, "counters", call.span));
            }
            (Object::Meter(meter), "execute_meter") => {
                let ([index], (dst, _, back)) = self.arg_values_out(call, [0], 1)?;
                let index = self.number(index);
                self.emit(Stmt::Extern(ExternCall::MeterExecute { meter, index, dst }));
                self.finish_out(back);
            }
            (Object::DirectMeter(meter, _), "read") => {
                self.direct_uses.push((meter.info.name, "meters", call.span));
                let (place, _, back) = self.arg_out(call, 0)?;
                if back.is_some() || !matches!(place, Place::Var(_)) {
                    return self.fail_help(
                        "unsupported",
                        call.span,
                        "the colour of a direct meter goes to a plain variable",
                        "read it into a metadata field",
                    );
                }
                if let Object::DirectMeter(_, read) = &mut self.instances[instance.0].object {
                    if (**read).as_ref().is_some_and(|known| *known != place) {
                        return self.fail_help(
                            "unsupported",
                            call.span,
                            "all reads of a direct meter must go to the same place",
                            "read it into one metadata field",
                        );
                    }
                    **read = Some(place);
                }
            }
            (Object::Register(register), "read") => {
                let ([index], (dst, width, back)) = self.arg_values_out(call, [1], 0)?;
                let index = self.number(index);
                let wanted = self.program[register].width;
                if width != wanted {
                    let place = self.temp(wanted);
                    self.emit(Stmt::Extern(ExternCall::RegisterRead { register, index, dst: place.clone() }));
                    let src = build::resize(build::read(place, wanted), width, false);
                    self.emit(Stmt::Assign { dst, src });
                } else {
                    self.emit(Stmt::Extern(ExternCall::RegisterRead { register, index, dst }));
                }
                self.finish_out(back);
            }
            (Object::Register(register), "write") => {
                let [index, value] = self.arg_scalars(call, [0, 1])?;
                let value = build::resize(value, self.program[register].width, false);
                self.emit(Stmt::Extern(ExternCall::RegisterWrite { register, index, value }));
            }
            (Object::Stateless, "get") => {
                let data = self.arg_list(call, 0)?;
                let dst = self.temp(16);
                let (base, max) = (build::constant(0u8, 32), build::constant(0x1_0000u32, 32));
                self.emit(Stmt::Extern(ExternCall::Hash {
                    dst: dst.clone(),
                    algorithm: HashAlgorithm::Csum16,
                    base,
                    data,
                    max,
                }));
                return Ok(Some(Value::Scalar(build::read(dst, 16))));
            }
            _ => return Ok(None),
        }
        Ok(Some(Value::Unit))
    }
}

fn collect(store: &Store, list: &mut ir::FieldList) {
    match store {
        Store::Scalar(Place::Var(var), _) | Store::Varbit(Place::Var(var)) => list.vars.push(*var),
        Store::Header { header: HeaderRef::Header(id), .. } => list.headers.push(*id),
        Store::Struct(items) | Store::Union(items) | Store::Stack { elements: items, .. } => {
            items.iter().for_each(|s| collect(s, list))
        }
        _ => {}
    }
}
