//! Types: from their written form, their names, substitution, unification, and what may contain what
//! (P4_16 section 7.2).

use std::collections::HashMap;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::scope::Entry;
use super::{Checker, consts};
use crate::ast::{self, Direction, TypeKind, TypeRef};
use crate::diag::counted;
use crate::hir::{DefId, DefKind, Hir, Type, TypeParamId};
use crate::source::Span;

/// The widest `bit`, `int` or `varbit`.
pub(super) const MAX_WIDTH: u32 = 65_535;
const MAX_STACK: u32 = 4_096;
/// Scalars in one value.
const MAX_SCALARS: u32 = 50_000;

/// Bytes of one type with its arguments, and their levels.
const MAX_TYPE: usize = 64 * 2_000;
const MAX_TYPE_DEPTH: usize = 100;

pub type Subst = HashMap<TypeParamId, Type>;

/// A type as a reader would write it.
pub fn display(hir: &Hir, ty: &Type) -> String {
    let named = |id: &DefId, args: &[Type]| {
        let name = &hir.def(*id).name;
        if args.is_empty() {
            return name.to_string();
        }
        format!("{name}<{}>", args.iter().map(|t| display(hir, t)).collect::<Vec<_>>().join(", "))
    };
    match ty {
        Type::Void => "void".into(),
        Type::Bool => "bool".into(),
        Type::Int => "int".into(),
        Type::Bits { width, signed: false } => format!("bit<{width}>"),
        Type::Bits { width, signed: true } => format!("int<{width}>"),
        Type::Varbit(width) => format!("varbit<{width}>"),
        Type::String => "string".into(),
        Type::Error => "error".into(),
        Type::MatchKind => "match_kind".into(),
        Type::Struct(id, args)
        | Type::Header(id, args)
        | Type::Union(id, args)
        | Type::Extern(id, args)
        | Type::Parser(id, args)
        | Type::Control(id, args)
        | Type::Package(id, args) => named(id, args),
        Type::Enum(id) | Type::New(id) => named(id, &[]),
        Type::Stack(element, size) => format!("{}[{size}]", display(hir, element)),
        Type::Tuple(items) => {
            format!("tuple<{}>", items.iter().map(|t| display(hir, t)).collect::<Vec<_>>().join(", "))
        }
        Type::List(element) => format!("list<{}>", display(hir, element)),
        Type::Set(element) => format!("set<{}>", display(hir, element)),
        Type::ValueSet(element) => format!("value_set<{}>", display(hir, element)),
        Type::Table(id) => format!("table {}", hir.def(*id).name),
        Type::ApplyResult(id) => format!("apply_result({})", hir.def(*id).name),
        Type::ActionRun(id) => format!("action_list({})", hir.def(*id).name),
        Type::Action => "action".into(),
        Type::DontCare => "_".into(),
        Type::Param(id) => hir.type_params[id.0 as usize].to_string(),
        Type::Unknown => "unknown".into(),
    }
}

/// Types that a type is made of.
pub(super) fn parts(ty: &Type) -> &[Type] {
    match ty {
        Type::Struct(_, args)
        | Type::Header(_, args)
        | Type::Union(_, args)
        | Type::Extern(_, args)
        | Type::Parser(_, args)
        | Type::Control(_, args)
        | Type::Package(_, args)
        | Type::Tuple(args) => args,
        Type::Stack(element, _) | Type::List(element) | Type::Set(element) | Type::ValueSet(element) => {
            std::slice::from_ref(element)
        }
        _ => &[],
    }
}

/// Bytes of a type with its arguments, about: how much copying it costs.
pub(crate) fn type_weight(ty: &Type) -> usize {
    64 * parts(ty).len() + parts(ty).iter().map(type_weight).sum::<usize>()
}

fn type_depth(ty: &Type) -> usize {
    1 + parts(ty).iter().map(type_depth).max().unwrap_or(0)
}

/// Whether an array of the type is a header stack, with `next` and the like.
pub(super) fn is_header(ty: &Type) -> bool {
    matches!(ty, Type::Header(..) | Type::Union(..) | Type::Param(_))
}

/// Puts type arguments in place of type parameters.
pub fn substitute(ty: &Type, subst: &Subst) -> Type {
    if subst.is_empty() {
        return ty.clone();
    }
    let all = |args: &[Type]| args.iter().map(|t| substitute(t, subst)).collect::<Vec<_>>();
    match ty {
        Type::Param(id) => subst.get(id).cloned().unwrap_or_else(|| ty.clone()),
        Type::Struct(id, args) => Type::Struct(*id, all(args)),
        Type::Header(id, args) => Type::Header(*id, all(args)),
        Type::Union(id, args) => Type::Union(*id, all(args)),
        Type::Extern(id, args) => Type::Extern(*id, all(args)),
        Type::Parser(id, args) => Type::Parser(*id, all(args)),
        Type::Control(id, args) => Type::Control(*id, all(args)),
        Type::Package(id, args) => Type::Package(*id, all(args)),
        Type::Stack(element, size) => Type::Stack(Box::new(substitute(element, subst)), *size),
        Type::Tuple(items) => Type::Tuple(all(items)),
        Type::List(element) => Type::List(Box::new(substitute(element, subst))),
        Type::Set(element) => Type::Set(Box::new(substitute(element, subst))),
        Type::ValueSet(element) => Type::ValueSet(Box::new(substitute(element, subst))),
        _ => ty.clone(),
    }
}

impl Checker {
    pub(super) fn show(&self, ty: &Type) -> String {
        display(&self.hir, ty)
    }

    /// The type that a written type means; [`Type::Unknown`] after reporting what is wrong.
    pub(super) fn ty(&mut self, written: &TypeRef) -> Type {
        if self.stop(written.span, 8) {
            return Type::Unknown;
        }
        let ty = self.ty_inner(written);
        let weight = type_weight(&ty);
        self.budget.work(weight / 16);
        self.budget.bytes(weight);
        if weight > MAX_TYPE || type_depth(&ty) > MAX_TYPE_DEPTH {
            let message = format!("this type has more than {MAX_TYPE_DEPTH} levels or {MAX_TYPE} bytes");
            self.error("too-large", written.span, message).help = Some("use fewer type arguments".into());
            return Type::Unknown;
        }
        let composite = matches!(
            ty,
            Type::Struct(..) | Type::Header(..) | Type::Union(..) | Type::Stack(..) | Type::Tuple(_)
        );
        if composite && self.too_large(&ty) {
            self.error(
                "too-large",
                written.span,
                format!("a value of this type has more than {MAX_SCALARS} fields or {MAX_TYPE_DEPTH} levels"),
            )
            .help = Some("use smaller stacks, fewer fields, or fewer structs in one another".into());
            return Type::Unknown;
        }
        ty
    }

    fn ty_inner(&mut self, written: &TypeRef) -> Type {
        match &written.kind {
            TypeKind::Bool => Type::Bool,
            TypeKind::Error => Type::Error,
            TypeKind::MatchKind => Type::MatchKind,
            TypeKind::String => Type::String,
            TypeKind::Void => Type::Void,
            TypeKind::Int => Type::Int,
            TypeKind::DontCare => Type::DontCare,
            TypeKind::Bit(None) => Type::Bits { width: 1, signed: false },
            TypeKind::Bit(Some(width)) => match self.width(width, 0, MAX_WIDTH) {
                Some(width) => Type::Bits { width, signed: false },
                None => Type::Unknown,
            },
            TypeKind::IntN(width) => match self.width(width, 1, MAX_WIDTH) {
                Some(width) => Type::Bits { width, signed: true },
                None => Type::Unknown,
            },
            TypeKind::Varbit(width) => match self.width(width, 0, MAX_WIDTH) {
                Some(width) => Type::Varbit(width),
                None => Type::Unknown,
            },
            TypeKind::Stack { element, size } => {
                let inner = self.ty(element);
                let size = self.width(size, 1, MAX_STACK);
                match (&inner, size) {
                    (Type::Unknown, _) | (_, None) => Type::Unknown,
                    (_, Some(size)) if is_header(&inner) || self.arrayable(&inner) => {
                        Type::Stack(Box::new(inner), size)
                    }
                    _ => {
                        let shown = self.show(&inner);
                        self.error(
                            "bad-type",
                            written.span,
                            format!("an array of `{shown}` is not possible"),
                        )
                        .help = Some(
                            "elements are headers, header unions, numbers, `bool`, enums, and structs and tuples of \
                             those"
                                .into(),
                        );
                        Type::Unknown
                    }
                }
            }
            TypeKind::Tuple(items) => {
                let types: Vec<Type> = items.iter().map(|t| self.ty(t)).collect();
                let good = items.iter().zip(&types).all(|(written, ty)| self.element_rules(written, ty));
                if good { Type::Tuple(types) } else { Type::Unknown }
            }
            TypeKind::List(element) => {
                let ty = self.ty(element);
                if self.element_rules(element, &ty) { Type::List(Box::new(ty)) } else { Type::Unknown }
            }
            TypeKind::Named { path, args } => self.named_type(path, args, written.span),
        }
    }

    fn width(&mut self, expr: &ast::Expr, min: u32, max: u32) -> Option<u32> {
        let value = self.const_int(expr)?;
        match value.to_u32() {
            Some(width) if width >= min && width <= max => Some(width),
            _ => {
                self.error(
                    "bad-size",
                    expr.span,
                    format!("the size {} is out of range", consts::brief(&value)),
                )
                .help = Some(format!("it must lie between {min} and {max}"));
                None
            }
        }
    }

    /// A compile-time integer; reports what is none.
    pub(super) fn const_int(&mut self, expr: &ast::Expr) -> Option<BigInt> {
        let checked = self.expr(expr, None);
        let checked = self.numeric(checked);
        if checked.ty == Type::Unknown {
            return None;
        }
        let value = consts::int_value(&checked).cloned();
        if value.is_none() {
            self.error("not-constant", expr.span, "this must be an integer known at compile time");
        }
        value
    }

    fn named_type(&mut self, path: &ast::Path, args: &[TypeRef], span: Span) -> Type {
        let Some(entry) = self.lookup(path) else { return Type::Unknown };
        let written = args;
        let args: Vec<Type> = args.iter().map(|t| self.ty(t)).collect();
        let id = match entry {
            Entry::TypeParam(id) => {
                if !args.is_empty() {
                    self.error("bad-type", span, "a type parameter takes no type arguments");
                }
                return Type::Param(id);
            }
            Entry::Defs(ids) => ids[0],
        };
        let (ty, params) = match &self.def(id).kind {
            DefKind::Struct(s) => (Type::Struct(id, args.clone()), s.type_params.len()),
            DefKind::Header(s) => (Type::Header(id, args.clone()), s.type_params.len()),
            DefKind::Union(s) => (Type::Union(id, args.clone()), s.type_params.len()),
            DefKind::Extern(e) => (Type::Extern(id, args.clone()), e.type_params.len()),
            DefKind::Parser(p) => (Type::Parser(id, args.clone()), p.signature.type_params.len()),
            DefKind::ParserType(s) => (Type::Parser(id, args.clone()), s.type_params.len()),
            DefKind::Control(c) => (Type::Control(id, args.clone()), c.signature.type_params.len()),
            DefKind::ControlType(s) => (Type::Control(id, args.clone()), s.type_params.len()),
            DefKind::Package(s) => (Type::Package(id, args.clone()), s.type_params.len()),
            DefKind::Enum(_) => (Type::Enum(id), 0),
            DefKind::NewType { .. } => (Type::New(id), 0),
            DefKind::Typedef { ty } => (ty.clone(), 0),
            _ => {
                let declared = self.def(id).span;
                self.error("not-a-type", span, format!("`{}` is not a type", path.ident.name))
                    .related
                    .push((declared, "declared here".into()));
                return Type::Unknown;
            }
        };
        // Constructors may leave their type arguments to inference.
        let inferable =
            matches!(ty, Type::Extern(..) | Type::Parser(..) | Type::Control(..) | Type::Package(..));
        if args.len() != params && !(args.is_empty() && inferable) {
            self.error(
                "type-arguments",
                span,
                format!(
                    "`{}` takes {}, not {}",
                    path.ident.name,
                    counted(params, "type argument"),
                    args.len()
                ),
            );
            return Type::Unknown;
        }
        if !self.type_argument_rules(&ty, written, span) {
            return Type::Unknown;
        }
        ty
    }

    /// Fields of a struct, header or union with its type arguments in place.
    pub(super) fn fields(&self, ty: &Type) -> Option<Vec<(ast::Name, Type)>> {
        let (Type::Struct(id, args) | Type::Header(id, args) | Type::Union(id, args)) = ty else {
            return None;
        };
        let (DefKind::Struct(def) | DefKind::Header(def) | DefKind::Union(def)) = &self.def(*id).kind else {
            return None;
        };
        self.budget.work(def.fields.len() + def.type_params.len());
        let subst: Subst = def.type_params.iter().copied().zip(args.iter().cloned()).collect();
        Some(def.fields.iter().map(|f| (f.name.clone(), substitute(&f.ty, &subst))).collect())
    }

    /// Number and type of one field.
    pub(super) fn field(&mut self, ty: &Type, name: &ast::Name) -> Option<(usize, Type)> {
        let (Type::Struct(id, args) | Type::Header(id, args) | Type::Union(id, args)) = ty else {
            return None;
        };
        let (DefKind::Struct(def) | DefKind::Header(def) | DefKind::Union(def)) =
            &self.hir.defs[id.0 as usize].kind
        else {
            return None;
        };
        let numbers = self.field_numbers.entry(*id).or_insert_with(|| {
            def.fields.iter().enumerate().map(|(index, f)| (f.name.clone(), index)).collect()
        });
        let index = *numbers.get(name)?;
        self.budget.work(def.type_params.len());
        let subst: Subst = def.type_params.iter().copied().zip(args.iter().cloned()).collect();
        Some((index, substitute(&def.fields[index].ty, &subst)))
    }

    /// Whether the type can be the element of an array that is no header stack.
    fn arrayable(&self, ty: &Type) -> bool {
        match ty {
            Type::Bool | Type::Bits { .. } | Type::Error | Type::Enum(_) | Type::New(_) | Type::Unknown => {
                true
            }
            Type::Struct(..) => {
                self.fields(ty).is_some_and(|fields| fields.iter().all(|(_, t)| self.arrayable(t)))
            }
            Type::Tuple(items) => items.iter().all(|t| self.arrayable(t)),
            _ => false,
        }
    }

    /// Whether values of the type exist at run time, in variables and fields.
    pub(super) fn storable(&self, ty: &Type) -> bool {
        match ty {
            Type::Bool
            | Type::Bits { .. }
            | Type::Varbit(_)
            | Type::Error
            | Type::Enum(_)
            | Type::New(_)
            | Type::Param(_)
            | Type::Unknown => true,
            Type::Struct(..) | Type::Header(..) | Type::Union(..) | Type::Stack(..) => true,
            Type::Tuple(items) => items.iter().all(|t| self.storable(t)),
            _ => false,
        }
    }

    /// Whether a value of the type has more scalars than anything useful would. Counting stops at the limit, so that
    /// structs that double at each level cost nothing.
    pub(super) fn too_large(&self, ty: &Type) -> bool {
        let mut budget = MAX_SCALARS;
        let fits = self.count_scalars(ty, &mut budget, 0);
        self.budget.work(((MAX_SCALARS - budget) * 4) as usize);
        !fits
    }

    fn count_scalars(&self, ty: &Type, budget: &mut u32, depth: usize) -> bool {
        if *budget == 0 || depth > MAX_TYPE_DEPTH {
            return false;
        }
        *budget -= 1;
        let depth = depth + 1;
        match ty {
            Type::Struct(..) | Type::Header(..) | Type::Union(..) => {
                self.fields(ty).unwrap_or_default().iter().all(|(_, t)| self.count_scalars(t, budget, depth))
            }
            Type::Tuple(items) => items.iter().all(|t| self.count_scalars(t, budget, depth)),
            Type::Stack(element, size) => (0..*size).all(|_| self.count_scalars(element, budget, depth)),
            _ => true,
        }
    }

    /// What a field of a header may be (section 7.2.2, 7.2.11).
    pub(super) fn allowed_in_header(&self, ty: &Type) -> bool {
        match ty {
            Type::Bits { .. } | Type::Varbit(_) | Type::Bool | Type::Param(_) | Type::Unknown => true,
            Type::Enum(id) => matches!(&self.def(*id).kind, DefKind::Enum(e) if e.underlying.is_some()),
            Type::New(id) => {
                matches!(&self.def(*id).kind, DefKind::NewType { ty } if self.allowed_in_header(ty))
            }
            Type::Struct(..) => self.fields(ty).is_some_and(|fields| {
                fields.iter().all(|(_, t)| self.allowed_in_header(t) && !matches!(t, Type::Varbit(_)))
            }),
            _ => false,
        }
    }

    /// Varbit fields of a header.
    pub(super) fn varbits(&self, ty: &Type) -> usize {
        let fields = self.fields(ty).unwrap_or_default();
        fields.iter().filter(|(_, field)| matches!(field, Type::Varbit(_))).count()
    }

    /// `minSizeInBits` and `maxSizeInBits` of a type (section 9); `None` if it has no size. Both are those of the largest
    /// member of a header union.
    pub(super) fn size_bits(&self, ty: &Type) -> Option<(u64, u64)> {
        Some(match ty {
            Type::Bool => (1, 1),
            Type::Bits { width, .. } => (u64::from(*width), u64::from(*width)),
            Type::Varbit(width) => (0, u64::from(*width)),
            Type::Enum(id) => match &self.def(*id).kind {
                DefKind::Enum(e) => self.size_bits(e.underlying.as_ref()?)?,
                _ => return None,
            },
            Type::New(id) => match &self.def(*id).kind {
                DefKind::NewType { ty } => self.size_bits(ty)?,
                _ => return None,
            },
            Type::Stack(element, size) => {
                let (min, max) = self.size_bits(element)?;
                (min * u64::from(*size), max * u64::from(*size))
            }
            Type::Union(..) => {
                let sizes: Option<Vec<_>> = self.fields(ty)?.iter().map(|(_, t)| self.size_bits(t)).collect();
                let sizes = sizes?;
                let largest = |size: fn(&(u64, u64)) -> u64| sizes.iter().map(size).max().unwrap_or(0);
                (largest(|s| s.0), largest(|s| s.1))
            }
            Type::Struct(..) | Type::Header(..) => {
                let mut sum = (0, 0);
                for (_, field) in self.fields(ty)? {
                    let (min, max) = self.size_bits(&field)?;
                    sum = (sum.0 + min, sum.1 + max);
                }
                sum
            }
            Type::Tuple(items) => {
                let mut sum = (0, 0);
                for item in items {
                    let (min, max) = self.size_bits(item)?;
                    sum = (sum.0 + min, sum.1 + max);
                }
                sum
            }
            _ => return None,
        })
    }

    /// Makes `param` (which may mention parameters in `vars`) equal to `arg` by extending `subst`.
    pub(super) fn unify(&self, param: &Type, arg: &Type, vars: &[TypeParamId], subst: &mut Subst) -> bool {
        match (param, arg) {
            (Type::Unknown | Type::DontCare, _) | (_, Type::Unknown | Type::DontCare) => true,
            (Type::Param(id), _) if vars.contains(id) => match subst.get(id).cloned() {
                None => {
                    subst.insert(*id, arg.clone());
                    true
                }
                Some(Type::Int) if matches!(arg, Type::Bits { .. }) => {
                    subst.insert(*id, arg.clone());
                    true
                }
                Some(Type::Bits { .. }) if *arg == Type::Int => true,
                Some(known) => {
                    known == *arg || self.unify(&known, arg, &[], subst) || self.initialises(arg, &known)
                }
            },
            (Type::Struct(a, x), Type::Struct(b, y))
            | (Type::Header(a, x), Type::Header(b, y))
            | (Type::Union(a, x), Type::Union(b, y))
            | (Type::Extern(a, x), Type::Extern(b, y))
            | (Type::Package(a, x), Type::Package(b, y)) => a == b && self.unify_all(x, y, vars, subst),
            (Type::Parser(a, x), Type::Parser(b, y)) | (Type::Control(a, x), Type::Control(b, y)) => {
                if a == b {
                    x.is_empty() || y.is_empty() || self.unify_all(x, y, vars, subst)
                } else {
                    self.unify_signatures((*a, x), (*b, y), vars, subst)
                }
            }
            (Type::Stack(a, n), Type::Stack(b, m)) => n == m && self.unify(a, b, vars, subst),
            (Type::Tuple(a), Type::Tuple(b)) => self.unify_all(a, b, vars, subst),
            (Type::List(a), Type::List(b)) | (Type::Set(a), Type::Set(b)) => self.unify(a, b, vars, subst),
            (Type::List(a), Type::Tuple(items)) => items.iter().all(|t| self.unify(a, t, vars, subst)),
            _ => param == arg,
        }
    }

    /// Whether a brace list of type `from` could initialise a `to`.
    fn initialises(&self, from: &Type, to: &Type) -> bool {
        matches!(from, Type::Tuple(_)) && matches!(to, Type::Struct(..) | Type::Header(..) | Type::Tuple(_))
    }

    pub(super) fn unify_all(
        &self,
        params: &[Type],
        args: &[Type],
        vars: &[TypeParamId],
        subst: &mut Subst,
    ) -> bool {
        params.len() == args.len() && params.iter().zip(args).all(|(p, a)| self.unify(p, a, vars, subst))
    }

    /// Type parameters and run-time parameters of a parser or control, or its type.
    pub(super) fn block_signature(&self, id: DefId) -> Option<(Vec<TypeParamId>, Vec<DefId>)> {
        let s = match &self.def(id).kind {
            DefKind::Parser(p) => &p.signature,
            DefKind::Control(c) => &c.signature,
            DefKind::ParserType(s) | DefKind::ControlType(s) | DefKind::Package(s) => s,
            _ => return None,
        };
        Some((s.type_params.clone(), s.params.clone()))
    }

    /// A parser or control fits a parser or control type if their parameters agree in number, direction and type.
    fn unify_signatures(
        &self,
        (formal, formal_args): (DefId, &[Type]),
        (actual, actual_args): (DefId, &[Type]),
        vars: &[TypeParamId],
        subst: &mut Subst,
    ) -> bool {
        let (Some((fp, fparams)), Some((ap, aparams))) =
            (self.block_signature(formal), self.block_signature(actual))
        else {
            return false;
        };
        let formal_subst: Subst = fp.into_iter().zip(formal_args.iter().cloned()).collect();
        let actual_subst: Subst = ap.into_iter().zip(actual_args.iter().cloned()).collect();
        fparams.len() == aparams.len()
            && fparams.iter().zip(&aparams).all(|(f, a)| {
                let (DefKind::Param(f), DefKind::Param(a)) = (&self.def(*f).kind, &self.def(*a).kind) else {
                    return false;
                };
                f.direction == a.direction
                    && self.unify(
                        &substitute(&f.ty, &formal_subst),
                        &substitute(&a.ty, &actual_subst),
                        vars,
                        subst,
                    )
            })
    }

    /// How the parameters of a parser or control differ from those of the type that it should have.
    pub(super) fn signatures_differ(&self, wanted: &Type, found: &Type) -> Option<String> {
        let ((Type::Parser(formal, formal_args), Type::Parser(actual, actual_args))
        | (Type::Control(formal, formal_args), Type::Control(actual, actual_args))) = (wanted, found)
        else {
            return None;
        };
        let ((fp, fparams), (ap, aparams)) = (self.block_signature(*formal)?, self.block_signature(*actual)?);
        let formal_subst: Subst = fp.into_iter().zip(formal_args.iter().cloned()).collect();
        let actual_subst: Subst = ap.into_iter().zip(actual_args.iter().cloned()).collect();
        if fparams.len() != aparams.len() {
            return Some(format!(
                "it must have {}, and has {}",
                counted(fparams.len(), "parameter"),
                aparams.len()
            ));
        }
        fparams.iter().zip(&aparams).find_map(|(f, a)| {
            let name = &self.def(*a).name;
            let (DefKind::Param(f), DefKind::Param(a)) = (&self.def(*f).kind, &self.def(*a).kind) else {
                return None;
            };
            if f.direction != a.direction {
                let wanted = match f.direction {
                    Direction::None => "have no direction",
                    Direction::In => "be `in`",
                    Direction::Out => "be `out`",
                    Direction::InOut => "be `inout`",
                };
                return Some(format!("its parameter `{name}` must {wanted}"));
            }
            let wanted = substitute(&f.ty, &formal_subst);
            let found = substitute(&a.ty, &actual_subst);
            (!self.unify(&wanted, &found, &[], &mut Subst::new()))
                .then(|| format!("its parameter `{name}` must be a `{}`", self.show(&wanted)))
        })
    }
}
