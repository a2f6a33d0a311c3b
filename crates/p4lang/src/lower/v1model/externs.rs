//! Extern functions and methods of core.p4 and v1model.

use super::objects::algorithm_of;
use crate::hir::{Call, DefId, Expr, ExprKind as K, Type};
use crate::ir::{self, Architecture, CloneKind, ExternCall, HashAlgorithm, HeaderRef, Place, Stmt};
use crate::lower::expr::Value;
use crate::lower::instance::Object;
use crate::lower::store::{Life, Store};
use crate::lower::{Binding, Lowered, Lowerer, build};

/// v1model's port that drops.
const DROP_PORT: u32 = 511;

impl Lowerer<'_> {
    pub(in crate::lower) fn extern_function(&mut self, id: DefId, call: &Call) -> Lowered<Value> {
        let name = self.def(id).name.clone();
        let ext = |l: &mut Self, e: ExternCall| {
            l.emit(Stmt::Extern(e));
            Ok(Value::Unit)
        };
        match &*name {
            "verify" => {
                let cond = self.arg_scalar(call, 0)?;
                let error = self.arg_scalar(call, 1)?;
                self.emit(Stmt::Verify { cond, error });
                Ok(Value::Unit)
            }
            "mark_to_drop" => self.mark_to_drop(call),
            "random" => {
                let lo = self.arg_scalar(call, 1)?;
                let hi = self.arg_scalar(call, 2)?;
                let (dst, width, back) = self.arg_out(call, 0)?;
                let (lo, hi) = (build::resize(lo, width, false), build::resize(hi, width, false));
                self.emit(Stmt::Extern(ExternCall::Random { dst, lo, hi }));
                self.finish_out(back);
                Ok(Value::Unit)
            }
            "hash" => {
                let algorithm = self.algorithm(call, 1)?;
                let base = self.arg_scalar(call, 2)?;
                let data = self.arg_list(call, 3)?;
                let max = self.arg_scalar(call, 4)?;
                let (dst, _, back) = self.arg_out(call, 0)?;
                self.emit(Stmt::Extern(ExternCall::Hash { dst, algorithm, base, data, max }));
                self.finish_out(back);
                Ok(Value::Unit)
            }
            "verify_checksum" | "verify_checksum_with_payload" => {
                let cond = self.arg_scalar(call, 0)?;
                let data = self.arg_list(call, 1)?;
                let checksum = self.arg_scalar(call, 2)?;
                let algorithm = self.algorithm(call, 3)?;
                ext(
                    self,
                    ExternCall::VerifyChecksum {
                        cond,
                        data,
                        checksum,
                        algorithm,
                        payload: name.ends_with("payload"),
                    },
                )
            }
            "update_checksum" | "update_checksum_with_payload" => {
                let cond = self.arg_scalar(call, 0)?;
                let data = self.arg_list(call, 1)?;
                let algorithm = self.algorithm(call, 3)?;
                let (dst, _, back) = self.arg_out(call, 2)?;
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
                let session = self.arg_scalar(call, 1)?;
                let field_list = match &*name {
                    "clone" => None,
                    "clone3" => self.explicit_list(call, 2)?,
                    _ => Some(self.list_index(call, 2)?),
                };
                ext(self, ExternCall::Clone { kind, session, field_list })
            }
            "resubmit" => {
                let field_list = self.explicit_list(call, 0)?;
                ext(self, ExternCall::Resubmit { field_list })
            }
            "resubmit_preserving_field_list" => {
                let field_list = Some(self.list_index(call, 0)?);
                ext(self, ExternCall::Resubmit { field_list })
            }
            "recirculate" => {
                let field_list = self.explicit_list(call, 0)?;
                ext(self, ExternCall::Recirculate { field_list })
            }
            "recirculate_preserving_field_list" => {
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
                    if &*name == "assert" {
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
                let ty = call.args.get(1).and_then(|a| a.as_ref()).map_or(Type::Void, |a| self.ty(&a.ty));
                let (format, args) = self.log_format(&format, &ty, args);
                ext(self, ExternCall::LogMsg { format, args })
            }
            other => {
                let message = format!("v1model has no extern function `{other}`");
                self.fail("unsupported-extern", call.span, message)
            }
        }
    }

    /// A `{}` for a header, struct or the like becomes `(name:{},name:{})`, one for each of its numbers.
    fn log_format(&self, format: &str, ty: &Type, args: Vec<ir::Expr>) -> (String, Vec<(ir::Expr, bool)>) {
        let parts = match ty {
            Type::Tuple(types) => types.clone(),
            other => self.fields(other).into_iter().map(|(_, ty)| ty).collect(),
        };
        let mut signs = Vec::new();
        let mut out = String::new();
        let mut rest = format;
        for part in &parts {
            let mut shape = String::new();
            self.log_shape(part, &mut shape, &mut signs);
            if let Some((before, after)) = rest.split_once("{}") {
                out = out + before + &shape;
                rest = after;
            }
        }
        out += rest;
        if signs.len() != args.len() {
            return (format.to_owned(), args.into_iter().map(|arg| (arg, false)).collect());
        }
        (out, args.into_iter().zip(signs).collect())
    }

    fn log_shape(&self, ty: &Type, out: &mut String, signs: &mut Vec<bool>) {
        let parts: Vec<(String, Type)> = match ty {
            Type::Struct(..) | Type::Header(..) | Type::Union(..) => {
                self.fields(ty).into_iter().map(|(field, ty)| (format!("{}:", field.name), ty)).collect()
            }
            Type::Tuple(types) => types.iter().map(|ty| (String::new(), ty.clone())).collect(),
            Type::Stack(element, len) => vec![(String::new(), (**element).clone()); *len as usize],
            _ => {
                out.push_str("{}");
                signs.push(self.is_signed(ty));
                return;
            }
        };
        out.push('(');
        for (index, (name, ty)) in parts.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push_str(name);
            self.log_shape(ty, out, signs);
        }
        out.push(')');
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
                let Architecture::V1Model(v1) = &self.program.arch;
                let place = |var: Option<ir::VarId>| var.map(|v| (Place::Var(v), self.program[v].width));
                (place(v1.standard.egress_spec), place(v1.standard.mcast_grp))
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
            K::List(items) | K::Struct(items) => {
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

    fn digest(&mut self, call: &Call) -> Lowered<Value> {
        let receiver = self.arg_scalar(call, 0)?;
        let fields = self.arg_list(call, 1)?;
        let ty = call.args.get(1).and_then(|a| a.as_ref()).map(|a| self.ty(&a.ty)).unwrap_or(Type::Unknown);
        let type_name = self.type_def(&ty).map(|id| self.def(id).name.to_string());
        let mut names = Vec::new();
        self.digest_names(&ty, "", &mut names);
        if names.len() != fields.len() {
            names = fields.iter().enumerate().map(|(i, f)| (format!("f{i}"), f.width)).collect();
        }
        let name = type_name.clone().unwrap_or_else(|| format!("digest_{}", self.program.digests.len()));
        let known =
            self.program.digests.iter().position(|d| d.type_name.is_some() && d.type_name == type_name);
        let index = match known {
            Some(index) => index,
            None => {
                let info = ir::Info { name, span: call.span, ..Default::default() };
                self.data_type(&ty);
                self.program.digests.push(ir::Digest { info, type_name, fields: names });
                self.program.digests.len() - 1
            }
        };
        self.emit(Stmt::Extern(ExternCall::Digest { digest: ir::DigestId(index as u32), receiver, fields }));
        Ok(Value::Unit)
    }

    /// The type of a digest or of a member of one; structs are noted for P4Info.
    fn data_type(&mut self, ty: &Type) -> ir::DataType {
        self.control_type(ty);
        match ty {
            Type::Bool => ir::DataType::Bool,
            Type::Error => ir::DataType::Error,
            Type::Varbit(width) => ir::DataType::Varbit(*width),
            Type::New(id) => ir::DataType::NewType(self.def(*id).name.to_string()),
            Type::Enum(id) => ir::DataType::SerializableEnum(self.def(*id).name.to_string()),
            Type::Struct(id, _) => {
                let name = self.def(*id).name.to_string();
                let known = |t: &ir::P4Type| matches!(t, ir::P4Type::Struct { name: n, .. } if *n == name);
                if !self.program.p4_types.iter().any(known) {
                    let fields = self.fields(ty);
                    let fields = fields
                        .iter()
                        .map(|(field, ty)| (field.name.to_string(), self.data_type(ty)))
                        .collect();
                    self.program.p4_types.push(ir::P4Type::Struct { name: name.clone(), fields });
                }
                ir::DataType::Struct(name)
            }
            other => ir::DataType::Bits {
                width: self.scalar_width(other).unwrap_or(0),
                signed: self.is_signed(other),
            },
        }
    }

    fn digest_names(&self, ty: &Type, prefix: &str, out: &mut Vec<(String, u32)>) {
        match ty {
            Type::Struct(..) | Type::Header(..) => {
                for (field, ty) in self.fields(ty) {
                    let name = if prefix.is_empty() {
                        field.name.to_string()
                    } else {
                        format!("{prefix}.{}", field.name)
                    };
                    self.digest_names(&ty, &name, out);
                }
            }
            Type::Varbit(width) => out.push((prefix.to_owned(), *width)),
            _ => {
                if let Some(width) = self.scalar_width(ty).filter(|w| *w > 0) {
                    out.push((prefix.to_owned(), width));
                }
            }
        }
    }

    pub(in crate::lower) fn extern_method(
        &mut self,
        object: &Expr,
        method: DefId,
        call: &Call,
    ) -> Lowered<Value> {
        let name = self.def(method).name.clone();
        let binding = match &object.kind {
            K::Ref(id) => match self.env.get(id) {
                Some(binding) => binding.clone(),
                None => Binding::Instance(self.global_instance(*id)?),
            },
            _ => Binding::Instance(self.instance_of(object)?),
        };
        let instance = match binding {
            Binding::Packet => return self.packet_method(&name, call),
            Binding::Instance(id) => id,
            _ => return self.fail("unsupported", call.span, "this is not an object"),
        };
        match (self.instances[instance.0].object.clone(), &*name) {
            (Object::Counter(counter), "count") => {
                let index = self.arg_scalar(call, 0)?;
                self.emit(Stmt::Extern(ExternCall::CounterCount { counter, index }));
            }
            // The table counts by itself.
            (Object::DirectCounter(_), "count") => {}
            (Object::Meter(meter), "execute_meter") => {
                let index = self.arg_scalar(call, 0)?;
                let (dst, _, back) = self.arg_out(call, 1)?;
                self.emit(Stmt::Extern(ExternCall::MeterExecute { meter, index, dst }));
                self.finish_out(back);
            }
            (Object::DirectMeter(..), "read") => {
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
                let index = self.arg_scalar(call, 1)?;
                let (dst, width, back) = self.arg_out(call, 0)?;
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
                let index = self.arg_scalar(call, 0)?;
                let value = self.arg_scalar(call, 1)?;
                let value = build::resize(value, self.program[register].width, false);
                self.emit(Stmt::Extern(ExternCall::RegisterWrite { register, index, value }));
            }
            (Object::Checksum, "get") => {
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
                return Ok(Value::Scalar(build::read(dst, 16)));
            }
            (_, other) => {
                let message = format!("this object has no method `{other}` in v1model");
                return self.fail("unsupported-extern", call.span, message);
            }
        }
        Ok(Value::Unit)
    }

    fn packet_method(&mut self, name: &str, call: &Call) -> Lowered<Value> {
        match name {
            "extract" => self.extract(call),
            "lookahead" => {
                let ty = self.ty(&call.ty);
                let store = self.alloc(&ty, "lookahead", Life::Local);
                let mut into = Vec::new();
                scalars(&store, &mut into);
                self.emit(Stmt::Lookahead { into });
                if let Store::Header { valid, .. } = &store {
                    self.set_valid(valid, &[]);
                }
                Ok(Value::Store(store))
            }
            "advance" => {
                let bits = self.arg_scalar(call, 0)?;
                self.emit(Stmt::Advance { bits });
                Ok(Value::Unit)
            }
            "length" => Ok(Value::Scalar(ir::Expr { width: 32, kind: ir::ExprKind::PacketLength })),
            "emit" => {
                if let Some(Some(arg)) = call.args.first() {
                    let value = self.value(arg)?;
                    self.emit_value(value);
                }
                Ok(Value::Unit)
            }
            other => self.fail("unsupported-extern", call.span, format!("a packet has no method `{other}`")),
        }
    }

    fn extract(&mut self, call: &Call) -> Lowered<Value> {
        let Some(Some(arg)) = call.args.first() else {
            return self.fail("bad-call", call.span, "`extract` needs a header");
        };
        let varbit_bits = match call.args.get(1) {
            Some(Some(_)) => Some(self.arg_scalar(call, 1)?),
            _ => None,
        };
        // `stack.next`, or a member of it where the stack is one of unions.
        let next_of = match &arg.kind {
            K::StackNext(base) => Some(base),
            K::Field(element, _) => match &element.kind {
                K::StackNext(base) => Some(base),
                _ => None,
            },
            _ => None,
        };
        let store = if Self::is_dont_care(arg) {
            let ty = call.type_args.first().map(|t| self.ty(t)).unwrap_or(Type::Unknown);
            self.alloc(&ty, "skipped", Life::Local)
        } else {
            self.place(arg, false)?
        };
        let Store::Header { header, valid, siblings, .. } = store else {
            return self.fail("bad-call", arg.span, "`extract` needs a header");
        };
        self.emit(Stmt::Extract { header, varbit_bits });
        for other in &siblings {
            self.emit(Stmt::Assign { dst: other.clone(), src: build::bit(false) });
        }
        let _ = valid;
        if let Some(base) = next_of
            && let Store::Stack { id, .. } = self.place(base, false)?
        {
            let next = Place::Var(self.program[id].next);
            let src = build::binary(ir::BinOp::Add, build::read(next.clone(), 32), build::constant(1u8, 32));
            self.emit(Stmt::Assign { dst: next, src });
        }
        Ok(Value::Unit)
    }

    fn emit_value(&mut self, value: Value) {
        match value {
            Value::Store(Store::Header { header, .. }) => self.emit(Stmt::Emit(header)),
            Value::Store(
                Store::Struct(items) | Store::Union(items) | Store::Stack { elements: items, .. },
            ) => {
                items.into_iter().for_each(|s| self.emit_value(Value::Store(s)));
            }
            Value::Struct(items) => items.into_iter().for_each(|v| self.emit_value(v)),
            _ => {}
        }
    }
}

fn scalars(store: &Store, out: &mut Vec<Place>) {
    match store {
        Store::Scalar(place, _) => out.push(place.clone()),
        Store::Struct(items) | Store::Header { fields: items, .. } => {
            items.iter().for_each(|s| scalars(s, out))
        }
        _ => {}
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
