//! What v1model tells the outside: messages of `log_msg`, and digests.

use crate::hir::{Call, Type};
use crate::ir::{self, ExternCall, Stmt};
use crate::lower::expr::{Value, parts};
use crate::lower::{Lowered, Lowerer};

impl Lowerer<'_> {
    /// A `{}` for a header, struct or the like becomes `(name:{},name:{})`, one for each of its numbers.
    pub(super) fn log_format(
        &self,
        format: &str,
        ty: &Type,
        args: Vec<ir::Expr>,
    ) -> (String, Vec<(ir::Expr, bool)>) {
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
        self.budget.bytes(out.len());
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

    pub(super) fn digest(&mut self, call: &Call) -> Lowered<Value> {
        let Some(given) = call.args.get(1).and_then(|a| a.as_ref()) else {
            return self.fail("bad-call", call.span, "an argument is missing");
        };
        let ty = self.ty(&given.ty);
        if self.has_unsendable(&ty) {
            return self.fail_help(
                "unsupported",
                call.span,
                "a digest with a header stack, union, string or list is not supported",
                "give it the headers or fields that are wanted",
            );
        }
        let [receiver, value] = self.arg_values(call, [0, 1])?;
        let receiver = self.number(receiver);
        let mut fields = Vec::new();
        self.digest_values(value, &ty, &mut fields);
        let type_name = self.digest_name(&ty);
        let mut names = Vec::new();
        self.digest_names(&ty, "", &mut names);
        self.budget.bytes(names.iter().map(|(name, _)| name.len() + 32).sum());
        self.budget.work(4 * (self.program.digests.len() + self.program.p4_types.len()));
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
                let data = self.data_type(&ty);
                self.program.digests.push(ir::Digest { info, type_name, data, fields: names });
                self.program.digests.len() - 1
            }
        };
        self.emit(Stmt::Extern(ExternCall::Digest { digest: ir::DigestId(index as u32), receiver, fields }));
        Ok(Value::Unit)
    }

    fn has_unsendable(&self, ty: &Type) -> bool {
        match ty {
            Type::Stack(..) | Type::Union(..) | Type::String | Type::List(_) => true,
            Type::Tuple(types) => types.iter().any(|ty| self.has_unsendable(ty)),
            Type::Struct(..) => self.fields(ty).iter().any(|(_, ty)| self.has_unsendable(ty)),
            _ => false,
        }
    }

    /// The numbers of a digest; before those of a header whether it is valid.
    fn digest_values(&mut self, value: Value, ty: &Type, out: &mut Vec<ir::Expr>) {
        match ty {
            Type::Header(..) => {
                out.push(self.validity(&value));
                self.flatten(value, ty, out);
            }
            Type::Struct(..) | Type::Tuple(_) => {
                let mut parts = parts(value).into_iter();
                for ty in self.part_types(ty) {
                    let part = parts.next().unwrap_or_else(|| self.default_value(&ty));
                    self.digest_values(part, &ty, out);
                }
            }
            _ => self.flatten(value, ty, out),
        }
    }

    fn digest_names(&self, ty: &Type, prefix: &str, out: &mut Vec<(String, u32)>) {
        let inside =
            |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        match ty {
            Type::Struct(..) | Type::Header(..) => {
                if matches!(ty, Type::Header(..)) {
                    out.push((inside("$valid$"), 1));
                }
                for (field, ty) in self.fields(ty) {
                    self.digest_names(&ty, &inside(&field.name), out);
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
}
