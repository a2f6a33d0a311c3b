//! Calls: functions, actions, methods, tables, parsers and controls (P4_16 sections 6.8, 8.20, 8.21).

use num_traits::ToPrimitive;

use super::scope::Entry;
use super::types::{Subst, substitute};
use super::{Checker, Place, consts};
use crate::ast::{self, Direction, Ident};
use crate::hir::{Call, Callee, DefId, DefKind, Expr, ExprKind, ParamDef, SignatureDef, Type, TypeParamId};
use crate::source::Span;

impl Checker {
    pub(super) fn call(
        &mut self,
        callee: &ast::Expr,
        type_args: &[ast::TypeRef],
        args: &[ast::Arg],
        span: Span,
    ) -> Expr {
        match &callee.kind {
            ast::ExprKind::Name(path) => {
                let Some(entry) = self.lookup(path) else {
                    self.check_loose(args);
                    return Self::unknown(span);
                };
                let Entry::Defs(ids) = entry else {
                    self.error("not-callable", span, format!("`{}` is a type parameter", path.ident.name));
                    return Self::unknown(span);
                };
                match self.def(ids[0]).kind {
                    DefKind::Function(_) | DefKind::ExternFn(_) => {
                        self.function(&ids, &path.ident, type_args, args, span)
                    }
                    DefKind::Action(_) => self.action_call(ids[0], args, span),
                    _ => match self.as_type(callee) {
                        Some(_) => {
                            let kind = ast::TypeKind::Named { path: path.clone(), args: type_args.to_vec() };
                            let ty = self.ty(&ast::TypeRef { kind, span: callee.span });
                            self.construct_expr(&ty, args, span)
                        }
                        None => {
                            self.error(
                                "not-callable",
                                callee.span,
                                format!("`{}` cannot be called", path.ident.name),
                            );
                            self.check_loose(args);
                            Self::unknown(span)
                        }
                    },
                }
            }
            ast::ExprKind::Type(ty) => {
                let ty = self.ty(ty);
                self.construct_expr(&ty, args, span)
            }
            ast::ExprKind::Member { base, name } => self.method(base, name, type_args, args, span),
            _ => {
                self.error("not-callable", callee.span, "this cannot be called");
                self.check_loose(args);
                Self::unknown(span)
            }
        }
    }

    /// Checks arguments of a call that is in error anyway.
    fn check_loose(&mut self, args: &[ast::Arg]) {
        for arg in args {
            if !matches!(
                arg.value.kind,
                ast::ExprKind::DontCare | ast::ExprKind::List { .. } | ast::ExprKind::StructInit { .. }
            ) {
                self.expr(&arg.value, None);
            }
        }
    }

    fn result(call: Call) -> Expr {
        Expr { ty: call.ty.clone(), span: call.span, kind: ExprKind::Call(Box::new(call)) }
    }

    fn signature(&self, id: DefId) -> Option<SignatureDef> {
        match &self.def(id).kind {
            DefKind::Function(f) => Some(f.signature.clone()),
            DefKind::ExternFn(s) => Some(s.clone()),
            _ => None,
        }
    }

    pub(super) fn param(&self, id: DefId) -> ParamDef {
        match &self.def(id).kind {
            DefKind::Param(p) => p.clone(),
            _ => ParamDef { direction: Direction::None, ty: Type::Unknown, default: None, optional: true },
        }
    }

    /// Those of the overloads that take these arguments by number and name.
    pub(super) fn select_overload(&self, ids: &[DefId], args: &[ast::Arg]) -> Vec<DefId> {
        ids.iter()
            .copied()
            .filter(|id| self.signature(*id).is_some_and(|s| self.arrange(&s.params, args).is_ok()))
            .collect()
    }

    /// Arguments in parameter order; why not, if they don't fit.
    pub(super) fn arrange<'a>(
        &self,
        params: &[DefId],
        args: &'a [ast::Arg],
    ) -> Result<Vec<Option<&'a ast::Expr>>, (Option<Span>, String)> {
        let mut out: Vec<Option<&ast::Expr>> = vec![None; params.len()];
        let named = args.iter().any(|a| a.name.is_some());
        for (index, arg) in args.iter().enumerate() {
            let at = match &arg.name {
                Some(name) => params
                    .iter()
                    .position(|p| self.def(*p).name == name.name)
                    .ok_or_else(|| (Some(name.span), format!("there is no parameter `{}`", name.name)))?,
                None if named => {
                    return Err((Some(arg.value.span), "either all arguments are named or none".into()));
                }
                None if index < params.len() => index,
                None => {
                    return Err((
                        Some(arg.value.span),
                        format!("expected {} arguments, found {}", params.len(), args.len()),
                    ));
                }
            };
            if out[at].replace(&arg.value).is_some() {
                return Err((
                    arg.name.as_ref().map(|n| n.span),
                    format!("argument `{}` is given twice", self.def(params[at]).name),
                ));
            }
        }
        for (param, value) in params.iter().zip(&out) {
            let def = self.param(*param);
            if value.is_none() && def.default.is_none() && !def.optional {
                let name = &self.def(*param).name;
                return Err((None, format!("no argument for parameter `{name}`")));
            }
        }
        Ok(out)
    }

    fn function(
        &mut self,
        ids: &[DefId],
        name: &Ident,
        type_args: &[ast::TypeRef],
        args: &[ast::Arg],
        span: Span,
    ) -> Expr {
        let Some(id) = self.resolve(ids, name, args, span) else { return Self::unknown(span) };
        if &*name.name == "verify"
            && self.place != Place::Parser
            && matches!(self.def(id).kind, DefKind::ExternFn(_))
        {
            self.error("wrong-place", span, "`verify` may be called only in a parser state");
        }
        let Some(signature) = self.signature(id) else { return Self::unknown(span) };
        if &*name.name == "static_assert" && matches!(self.def(id).kind, DefKind::ExternFn(_)) {
            return self.static_assert(&signature, args, span);
        }
        let Some((types, args)) =
            self.arguments(&signature.type_params, &signature.params, type_args, args, &Subst::new(), span)
        else {
            return Self::unknown(span);
        };
        let subst: Subst = signature.type_params.iter().copied().zip(types.iter().cloned()).collect();
        let ty = substitute(&signature.returns, &subst);
        let callee = match self.def(id).kind {
            DefKind::Function(_) => Callee::Function(id),
            _ => Callee::ExternFn(id),
        };
        Self::result(Call { callee, type_args: types, args, ty, span })
    }

    fn static_assert(&mut self, signature: &SignatureDef, args: &[ast::Arg], span: Span) -> Expr {
        let Some((_, values)) = self.arguments(&[], &signature.params, &[], args, &Subst::new(), span) else {
            return Self::unknown(span);
        };
        let text = match values.get(1) {
            Some(Some(Expr { kind: ExprKind::Str(text), .. })) => format!(": {text}"),
            _ => String::new(),
        };
        match values.first() {
            Some(Some(Expr { kind: ExprKind::Bool(true), .. })) => {}
            Some(Some(Expr { kind: ExprKind::Bool(false), .. })) => {
                self.error("static-assert", span, format!("static assertion failed{text}"));
            }
            Some(Some(Expr { ty: Type::Unknown, .. })) => {}
            _ => {
                self.error("not-constant", span, "a static assertion must be known at compile time");
            }
        }
        Expr { ty: Type::Bool, kind: ExprKind::Bool(true), span }
    }

    /// The one overload that fits.
    fn resolve(&mut self, ids: &[DefId], name: &Ident, args: &[ast::Arg], span: Span) -> Option<DefId> {
        let fitting = self.select_overload(ids, args);
        match fitting.len() {
            1 => Some(fitting[0]),
            0 => {
                let declared = self.def(ids[0]).span;
                let (place, why) = match ids {
                    [only] => {
                        let params = self.signature(*only).map(|s| s.params).unwrap_or_default();
                        self.arrange(&params, args).err().unwrap_or((None, String::new()))
                    }
                    _ => (None, format!("no form of `{}` takes these {} arguments", name.name, args.len())),
                };
                self.error("bad-call", place.unwrap_or(span), why)
                    .related
                    .push((declared, "declared here".into()));
                self.check_loose(args);
                None
            }
            _ => {
                // Names of parameters left both open: the argument types decide.
                let fits: Vec<DefId> = fitting
                    .iter()
                    .copied()
                    .filter(|id| {
                        let kept = self.diagnostics.len();
                        let found = self
                            .signature(*id)
                            .and_then(|s| {
                                self.arguments(&s.type_params, &s.params, &[], args, &Subst::new(), span)
                            })
                            .is_some_and(|(_, values)| {
                                values.iter().flatten().all(|v| v.ty != Type::Unknown)
                            })
                            && self.diagnostics.len() == kept;
                        self.diagnostics.truncate(kept);
                        found
                    })
                    .collect();
                if let [only] = fits[..] {
                    return Some(only);
                }
                self.error("bad-call", span, format!("this call of `{}` is ambiguous", name.name)).help =
                    Some("name the arguments".into());
                None
            }
        }
    }

    /// Checks arguments against parameters and infers type arguments. `outer` holds those of the object.
    pub(super) fn arguments(
        &mut self,
        type_params: &[TypeParamId],
        params: &[DefId],
        explicit: &[ast::TypeRef],
        args: &[ast::Arg],
        outer: &Subst,
        span: Span,
    ) -> Option<(Vec<Type>, Vec<Option<Expr>>)> {
        let arranged = match self.arrange(params, args) {
            Ok(arranged) => arranged,
            Err((place, why)) => {
                let declared = params.first().map(|p| self.def(*p).span);
                self.error("bad-call", place.unwrap_or(span), why)
                    .related
                    .extend(declared.map(|s| (s, "parameters declared here".to_owned())));
                self.check_loose(args);
                return None;
            }
        };
        let mut subst = outer.clone();
        if !explicit.is_empty() {
            if explicit.len() != type_params.len() {
                self.error(
                    "type-arguments",
                    span,
                    format!("expected {} type arguments, found {}", type_params.len(), explicit.len()),
                );
                return None;
            }
            for (param, written) in type_params.iter().zip(explicit) {
                let ty = self.ty(written);
                if ty != Type::DontCare {
                    subst.insert(*param, ty);
                }
            }
        }
        let mut values = Vec::with_capacity(params.len());
        let mut failed = false;
        for (param, arg) in params.iter().zip(&arranged) {
            let def = self.param(*param);
            let wanted = substitute(&def.ty, &subst);
            let Some(arg) = arg else {
                values.push(def.default.clone());
                continue;
            };
            if matches!(arg.kind, ast::ExprKind::DontCare) {
                if def.direction != Direction::Out && !def.optional && self.place != Place::Top {
                    self.error("bad-call", arg.span, "`_` may stand only for an `out` argument");
                }
                values.push(Some(Expr { ty: wanted, kind: ExprKind::DontCare, span: arg.span }));
                continue;
            }
            let open = mentions(&wanted, type_params);
            let value = self.expr(arg, Some(&wanted).filter(|_| !open));
            if value.ty == Type::Unknown {
                failed = true;
            }
            if open && !self.unify(&wanted, &value.ty, type_params, &mut subst) {
                let (want, have) = (self.show(&substitute(&wanted, &subst)), self.show(&value.ty));
                self.error("type-mismatch", arg.span, format!("expected `{want}`, found `{have}`"));
                failed = true;
            }
            values.push(Some(value));
        }
        // A type known only from numbers without a width gets one.
        for param in type_params {
            if subst.get(param) == Some(&Type::Int) {
                subst.insert(*param, Type::Bits { width: 32, signed: false });
            }
            if let Some(Type::Tuple(items)) = subst.get(param) {
                let items = items
                    .iter()
                    .map(
                        |t| if *t == Type::Int { Type::Bits { width: 32, signed: false } } else { t.clone() },
                    )
                    .collect();
                subst.insert(*param, Type::Tuple(items));
            }
        }
        let used: Vec<_> =
            params.iter().zip(&values).filter(|(_, v)| v.is_some()).map(|(p, _)| self.param(*p).ty).collect();
        for param in type_params {
            if !subst.contains_key(param) && !failed {
                let only_optional = !used.iter().any(|t| mentions(t, &[*param]));
                if only_optional
                    && explicit.is_empty()
                    && !values.is_empty()
                    && values.iter().any(Option::is_none)
                {
                    subst.insert(*param, Type::DontCare);
                    continue;
                }
                let name = self.hir.type_params[param.0 as usize].clone();
                let diagnostic =
                    self.error("cannot-infer", span, format!("cannot tell what type `{name}` is"));
                diagnostic.help = Some("give the type arguments: `f<T>(...)`".into());
                return None;
            }
        }
        if failed {
            return None;
        }
        let mut out = Vec::with_capacity(values.len());
        for ((param, value), written) in params.iter().zip(values).zip(&arranged) {
            let def = self.param(*param);
            let wanted = substitute(&def.ty, &subst);
            out.push(value.map(|value| {
                if written.is_none() || matches!(value.kind, ExprKind::DontCare) {
                    return Expr { ty: wanted.clone(), ..value };
                }
                self.argument(value, &def, &wanted)
            }));
        }
        let types = type_params.iter().map(|p| subst.get(p).cloned().unwrap_or(Type::Unknown)).collect();
        Some((types, out))
    }

    /// One argument against its parameter: type and direction.
    fn argument(&mut self, value: Expr, param: &ParamDef, wanted: &Type) -> Expr {
        let mut subst = Subst::new();
        let blocks =
            matches!(wanted, Type::Parser(..) | Type::Control(..) | Type::Package(..) | Type::Extern(..));
        let value = if blocks {
            if !self.unify(wanted, &value.ty, &[], &mut subst) {
                let (want, have) = (self.show(wanted), self.show(&value.ty));
                self.error("type-mismatch", value.span, format!("expected `{want}`, found `{have}`")).help =
                    Some("its parameters must agree in number, direction and type".into());
                return Self::unknown(value.span);
            }
            value
        } else if matches!(param.direction, Direction::Out | Direction::InOut) {
            if value.ty != *wanted && value.ty != Type::Unknown && *wanted != Type::Unknown {
                let (want, have) = (self.show(wanted), self.show(&value.ty));
                self.error(
                    "type-mismatch",
                    value.span,
                    format!("an `out` argument must be exactly `{want}`, this is `{have}`"),
                );
                return Self::unknown(value.span);
            }
            value
        } else {
            self.coerce(value, wanted)
        };
        if matches!(param.direction, Direction::Out | Direction::InOut) {
            self.require_writable(&value);
        }
        value
    }

    /// A direct call of an action: an argument for every parameter.
    fn action_call(&mut self, id: DefId, args: &[ast::Arg], span: Span) -> Expr {
        if !matches!(self.place, Place::Control | Place::Action) {
            self.error("wrong-place", span, "an action may be called only in a control or another action");
        }
        let DefKind::Action(action) = &self.def(id).kind else { return Self::unknown(span) };
        let params = action.params.clone();
        let Some((_, args)) = self.arguments(&[], &params, &[], args, &Subst::new(), span) else {
            return Self::unknown(span);
        };
        Self::result(Call { callee: Callee::Action(id), type_args: Vec::new(), args, ty: Type::Void, span })
    }

    fn method(
        &mut self,
        base: &ast::Expr,
        name: &Ident,
        type_args: &[ast::TypeRef],
        args: &[ast::Arg],
        span: Span,
    ) -> Expr {
        if let Some(ty) = self.as_type(base) {
            return self.type_method(&ty, name, args, span);
        }
        let object = self.expr(base, None);
        if object.ty == Type::Unknown {
            self.check_loose(args);
            return object;
        }
        if let Some(result) = self.size_method(&object.ty.clone(), name, args, span) {
            return result;
        }
        let simple = |callee, ty: Type| {
            Self::result(Call { callee, type_args: Vec::new(), args: Vec::new(), ty, span })
        };
        match (object.ty.clone(), &*name.name) {
            (Type::Table(id), "apply") => {
                if self.place != Place::Control {
                    self.error(
                        "wrong-place",
                        span,
                        "a table may be applied only in a control's `apply` block",
                    );
                }
                self.no_arguments(args, name);
                simple(Callee::Table(id), Type::ApplyResult(id))
            }
            (Type::Header(..) | Type::Union(..), "isValid") => {
                self.no_arguments(args, name);
                simple(Callee::IsValid(object), Type::Bool)
            }
            (Type::Header(..), "setValid" | "setInvalid") => {
                self.no_arguments(args, name);
                self.require_writable(&object);
                let callee = if &*name.name == "setValid" {
                    Callee::SetValid(object)
                } else {
                    Callee::SetInvalid(object)
                };
                simple(callee, Type::Void)
            }
            (Type::Stack(..), "push_front" | "pop_front") => {
                self.require_writable(&object);
                let [arg] = args else {
                    self.error("bad-call", span, format!("`{}` takes one argument", name.name));
                    return Self::unknown(span);
                };
                let Some(value) = self.const_int(&arg.value) else { return Self::unknown(span) };
                let Some(count) = value.to_u32() else {
                    self.error("bad-call", arg.value.span, "the number of elements must not be negative");
                    return Self::unknown(span);
                };
                let callee = if &*name.name == "push_front" {
                    Callee::PushFront(object, count)
                } else {
                    Callee::PopFront(object, count)
                };
                simple(callee, Type::Void)
            }
            (Type::Parser(id, types) | Type::Control(id, types), "apply") => {
                self.apply(object, id, &types, args, span)
            }
            (Type::Extern(id, types), _) => {
                self.extern_method(object, (id, &types), name, type_args, args, span)
            }
            (other, _) => {
                let shown = self.show(&other);
                self.error("unknown-method", name.span, format!("`{shown}` has no method `{}`", name.name));
                self.check_loose(args);
                Self::unknown(span)
            }
        }
    }

    fn no_arguments(&mut self, args: &[ast::Arg], name: &Ident) {
        if let Some(arg) = args.first() {
            self.error("bad-call", arg.value.span, format!("`{}` takes no arguments", name.name));
        }
    }

    /// `minSizeInBits` and its kin (section 9).
    fn size_method(&mut self, ty: &Type, name: &Ident, args: &[ast::Arg], span: Span) -> Option<Expr> {
        let pick: fn((u64, u64)) -> u64 = match &*name.name {
            "minSizeInBits" => |s| s.0,
            "maxSizeInBits" => |s| s.1,
            "minSizeInBytes" => |s| s.0.div_ceil(8),
            "maxSizeInBytes" => |s| s.1.div_ceil(8),
            _ => return None,
        };
        self.no_arguments(args, name);
        Some(match self.size_bits(ty) {
            Some(size) => Expr { ty: Type::Int, kind: ExprKind::Int(pick(size).into()), span },
            None => {
                let shown = self.show(ty);
                self.error("bad-operand", span, format!("`{shown}` has no size"));
                Self::unknown(span)
            }
        })
    }

    fn type_method(&mut self, ty: &Type, name: &Ident, args: &[ast::Arg], span: Span) -> Expr {
        if let Some(result) = self.size_method(ty, name, args, span) {
            return result;
        }
        match (ty, &*name.name) {
            (Type::Parser(id, types) | Type::Control(id, types), "apply") => {
                let constructor = match &self.def(*id).kind {
                    DefKind::Parser(p) => p.ctor_params.clone(),
                    DefKind::Control(c) => c.ctor_params.clone(),
                    _ => {
                        self.error(
                            "not-callable",
                            span,
                            "only a parser or control with a body can be applied",
                        );
                        return Self::unknown(span);
                    }
                };
                if !constructor.is_empty() {
                    self.error(
                        "bad-call",
                        span,
                        "a parser or control with constructor parameters cannot be applied directly",
                    )
                    .help = Some("make an instance first".into());
                }
                let object = Expr { ty: ty.clone(), kind: ExprKind::DontCare, span };
                self.apply(object, *id, types, args, span)
            }
            (Type::Unknown, _) => {
                self.check_loose(args);
                Self::unknown(span)
            }
            _ => {
                let shown = self.show(ty);
                self.error(
                    "unknown-method",
                    name.span,
                    format!("the type `{shown}` has no method `{}`", name.name),
                );
                self.check_loose(args);
                Self::unknown(span)
            }
        }
    }

    /// Applies an instance of a parser or control, or (`object` is a don't-care) a fresh one.
    fn apply(&mut self, object: Expr, id: DefId, types: &[Type], args: &[ast::Arg], span: Span) -> Expr {
        let is_parser = matches!(object.ty, Type::Parser(..));
        match (is_parser, self.place) {
            (true, Place::Parser) | (false, Place::Control) => {}
            (true, _) => {
                self.error("wrong-place", span, "a parser may be applied only in a parser state");
            }
            (false, _) => {
                self.error("wrong-place", span, "a control may be applied only in a control's `apply` block");
            }
        }
        let Some((type_params, params)) = self.block_signature(id) else { return Self::unknown(span) };
        let outer: Subst = type_params.iter().copied().zip(types.iter().cloned()).collect();
        let open: Vec<TypeParamId> = if types.is_empty() { type_params } else { Vec::new() };
        let Some((found, args)) = self.arguments(&open, &params, &[], args, &outer, span) else {
            return Self::unknown(span);
        };
        let type_args = if types.is_empty() { found } else { types.to_vec() };
        let callee = if matches!(object.kind, ExprKind::DontCare) {
            Callee::DirectApply(id)
        } else {
            Callee::Apply(object)
        };
        Self::result(Call { callee, type_args, args, ty: Type::Void, span })
    }

    fn extern_method(
        &mut self,
        object: Expr,
        (id, types): (DefId, &[Type]),
        name: &Ident,
        type_args: &[ast::TypeRef],
        args: &[ast::Arg],
        span: Span,
    ) -> Expr {
        let DefKind::Extern(def) = &self.def(id).kind else { return Self::unknown(span) };
        let outer: Subst = def.type_params.iter().copied().zip(types.iter().cloned()).collect();
        let methods = def.methods.clone();
        let named: Vec<DefId> = methods.iter().copied().filter(|m| self.def(*m).name == name.name).collect();
        if named.is_empty() {
            let names: Vec<_> = methods.iter().map(|m| self.def(*m).name.clone()).collect();
            let similar = self.similar(&name.name, names.iter());
            let shown = self.show(&object.ty);
            let diagnostic =
                self.error("unknown-method", name.span, format!("`{shown}` has no method `{}`", name.name));
            diagnostic.help = similar.map(|s| format!("did you mean `{s}`?"));
            self.check_loose(args);
            return Self::unknown(span);
        }
        let Some(method) = self.resolve(&named, name, args, span) else { return Self::unknown(span) };
        let Some(signature) = self.signature(method) else { return Self::unknown(span) };
        let Some((types, args)) =
            self.arguments(&signature.type_params, &signature.params, type_args, args, &outer, span)
        else {
            return Self::unknown(span);
        };
        let mut subst: Subst = outer;
        subst.extend(signature.type_params.iter().copied().zip(types.iter().cloned()));
        let ty = substitute(&signature.returns, &subst);
        self.packet_rules(&object, name, &args, &types);
        Self::result(Call { callee: Callee::Method { object, method }, type_args: types, args, ty, span })
    }

    /// What `extract`, `lookahead` and `emit` can work on (sections 13.8, 16.1).
    fn packet_rules(&mut self, object: &Expr, name: &Ident, args: &[Option<Expr>], types: &[Type]) {
        let Type::Extern(id, _) = object.ty else { return };
        let object_name = self.def(id).name.clone();
        let Some(ty) = types.first() else { return };
        let shown = self.show(ty);
        match (&*object_name, &*name.name) {
            ("packet_in", "extract") => {
                let span = args.first().and_then(|a| a.as_ref()).map_or(name.span, |a| a.span);
                if !matches!(ty, Type::Header(..) | Type::Param(_)) {
                    self.error("bad-call", span, format!("`extract` fills a header, not `{shown}`"));
                    return;
                }
                let varbits = self
                    .fields(ty)
                    .unwrap_or_default()
                    .iter()
                    .filter(|(_, t)| matches!(t, Type::Varbit(_)))
                    .count();
                if args.len() == 1 && varbits > 0 {
                    self.error("bad-call", span, format!("`{shown}` has a varbit field")).help =
                        Some("give its length in bits as a second argument".into());
                } else if args.len() == 2 && varbits != 1 && !matches!(ty, Type::Param(_)) {
                    self.error(
                        "bad-call",
                        span,
                        format!("`{shown}` has no varbit field for the second argument to size"),
                    );
                }
            }
            ("packet_in", "lookahead")
                if self.size_bits(ty).is_none_or(|(min, max)| min != max)
                    && !matches!(ty, Type::Param(_)) =>
            {
                self.error(
                    "bad-call",
                    name.span,
                    format!("`lookahead` reads a type of fixed size, not `{shown}`"),
                );
            }
            ("packet_out", "emit") if !self.emittable(ty) => {
                let span = args.first().and_then(|a| a.as_ref()).map_or(name.span, |a| a.span);
                self.error(
                    "bad-call",
                    span,
                    format!("`emit` writes headers, and stacks, unions and structs of them, not `{shown}`"),
                );
            }
            _ => {}
        }
    }

    fn emittable(&self, ty: &Type) -> bool {
        match ty {
            Type::Header(..) | Type::Union(..) | Type::Param(_) => true,
            Type::Stack(element, _) => self.emittable(element),
            Type::Struct(..) => self.fields(ty).is_some_and(|f| f.iter().all(|(_, t)| self.emittable(t))),
            Type::Tuple(items) => items.iter().all(|t| self.emittable(t)),
            _ => false,
        }
    }

    /// Whether an argument is known at compile time or is a constructor parameter.
    pub(super) fn compile_time(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Ref(id) => {
                matches!(self.def(*id).kind, DefKind::Param(ref p) if p.direction == Direction::None)
                    || matches!(self.def(*id).kind, DefKind::Instance(_) | DefKind::Const { .. })
            }
            ExprKind::Construct(_) | ExprKind::DontCare => true,
            ExprKind::Cast(e) | ExprKind::Unary(_, e) => self.compile_time(e),
            ExprKind::Binary(_, a, b) => self.compile_time(a) && self.compile_time(b),
            ExprKind::Struct(items) | ExprKind::List(items) => {
                items.iter().flatten().all(|e| self.compile_time(e))
            }
            ExprKind::Field(e, _) | ExprKind::Slice { base: e, .. } => self.compile_time(e),
            ExprKind::Ternary(cond, a, b) => {
                self.compile_time(cond) && self.compile_time(a) && self.compile_time(b)
            }
            _ => consts::is_const(e),
        }
    }
}

/// Whether a type mentions any of the type parameters.
fn mentions(ty: &Type, params: &[TypeParamId]) -> bool {
    match ty {
        Type::Param(id) => params.contains(id),
        Type::Struct(_, args)
        | Type::Header(_, args)
        | Type::Union(_, args)
        | Type::Extern(_, args)
        | Type::Parser(_, args)
        | Type::Control(_, args)
        | Type::Package(_, args)
        | Type::Tuple(args) => args.iter().any(|t| mentions(t, params)),
        Type::Stack(e, _) | Type::List(e) | Type::Set(e) | Type::ValueSet(e) => mentions(e, params),
        _ => false,
    }
}
