//! Where values are stored: structs, headers, unions and stacks flattened into scalar variables.

use std::ops::RangeInclusive;
use std::rc::Rc;

use crate::ast::{AnnotationBody, TypeKind, TypeRef};
use crate::check::{Subst, display, substitute};
use crate::diag::Diagnostic;
use crate::hir::{DefId, DefKind, FieldDef, Type};
use crate::ir::{
    Expr, Header, HeaderField, HeaderId, HeaderRef, HeaderType, HeaderTypeId, Place, Program, Stack, StackId,
    Var, VarHome, VarId,
};

use super::Lowerer;
use super::places::Places;
use crate::limits::Resource;
use crate::source::Span;

/// The storage of one value. Parts are shared, so that copies cost little.
#[derive(Debug, Clone)]
pub(super) enum Store {
    /// Nothing: a zero-width field.
    Unit,
    Scalar(Place, u32),
    Varbit(Place),
    /// Struct or tuple.
    Struct(Rc<Vec<Store>>),
    /// `siblings`: validity of all headers of the union it is in, its own among them.
    Header {
        header: HeaderRef,
        valid: Place,
        fields: Rc<Vec<Store>>,
        siblings: Rc<[Place]>,
    },
    Union(Rc<Vec<Store>>),
    Stack {
        id: StackId,
        elements: Rc<Vec<Store>>,
        /// Its nextIndex.
        next: VarId,
    },
}

/// Whether both are the same place. What belongs to a header follows from the header.
impl PartialEq for Store {
    fn eq(&self, other: &Store) -> bool {
        match (self, other) {
            (Store::Unit, Store::Unit) => true,
            (Store::Scalar(a, v), Store::Scalar(b, w)) => a == b && v == w,
            (Store::Varbit(a), Store::Varbit(b)) => a == b,
            (Store::Struct(a), Store::Struct(b)) | (Store::Union(a), Store::Union(b)) => {
                Rc::ptr_eq(a, b) || a == b
            }
            (Store::Header { header: a, .. }, Store::Header { header: b, .. }) => a == b,
            (Store::Stack { id: a, .. }, Store::Stack { id: b, .. }) => a == b,
            _ => false,
        }
    }
}

/// How scalars of a new store live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// Part of the packet's state from ingress to egress.
    Global,
    Local,
}

impl Store {
    /// The store of element `index` of a stack, of which `self` is another element.
    pub(super) fn at(&self, stack: StackId, index: &Expr) -> Store {
        let place = |p: &Place| {
            let (Place::Var(var) | Place::Elem { var, .. }) = p;
            Place::Elem { stack, var: *var, index: Box::new(index.clone()) }
        };
        let header = |h: &HeaderRef| {
            let (HeaderRef::Header(header) | HeaderRef::Elem { header, .. }) = h;
            HeaderRef::Elem { stack, header: *header, index: Box::new(index.clone()) }
        };
        self.moved(&place, &header)
    }

    /// The same store elsewhere. A stack within a stack does not exist.
    pub(super) fn moved(
        &self,
        place: &impl Fn(&Place) -> Place,
        header: &impl Fn(&HeaderRef) -> HeaderRef,
    ) -> Store {
        let all = |items: &[Store]| Rc::new(items.iter().map(|s| s.moved(place, header)).collect());
        match self {
            Store::Unit => Store::Unit,
            Store::Scalar(p, width) => Store::Scalar(place(p), *width),
            Store::Varbit(p) => Store::Varbit(place(p)),
            Store::Struct(items) => Store::Struct(all(items)),
            Store::Union(items) => {
                let mut items: Vec<Store> = items.iter().map(|s| s.alone().moved(place, header)).collect();
                share_validity(&mut items);
                Store::Union(Rc::new(items))
            }
            Store::Header { header: h, valid, fields, siblings } => Store::Header {
                header: header(h),
                valid: place(valid),
                fields: all(fields),
                siblings: siblings.iter().map(place).collect(),
            },
            Store::Stack { .. } => self.clone(),
        }
    }

    /// The stack and the run-time index in it at which it is, if it is at one. `looked` counts the parts that are looked at.
    pub(super) fn index(&self, looked: &mut usize) -> Option<(StackId, &Expr)> {
        *looked += 1;
        match self {
            Store::Scalar(place, _) | Store::Varbit(place) | Store::Header { valid: place, .. } => {
                match place {
                    Place::Elem { stack, index, .. } => Some((*stack, index)),
                    Place::Var(_) => None,
                }
            }
            Store::Struct(items) | Store::Union(items) => items.iter().find_map(|item| item.index(looked)),
            Store::Unit | Store::Stack { .. } => None,
        }
    }

    /// A header without its siblings.
    fn alone(&self) -> Store {
        match self {
            Store::Header { header, valid, fields, .. } => Store::Header {
                header: header.clone(),
                valid: valid.clone(),
                fields: fields.clone(),
                siblings: Rc::default(),
            },
            other => other.clone(),
        }
    }

    /// Parts of it, at all levels.
    pub(super) fn size(&self) -> usize {
        match self {
            Store::Struct(items) | Store::Union(items) | Store::Stack { elements: items, .. } => {
                1 + items.iter().map(Store::size).sum::<usize>()
            }
            Store::Header { fields, siblings, .. } => {
                1 + siblings.len() + fields.iter().map(Store::size).sum::<usize>()
            }
            _ => 1,
        }
    }

    /// Calls `f` for every scalar and varbit, validity bits and the nextIndex of stacks included.
    pub(super) fn places(&self, f: &mut impl FnMut(&Place)) {
        match self {
            Store::Unit => {}
            Store::Scalar(p, _) | Store::Varbit(p) => f(p),
            Store::Struct(items) | Store::Union(items) => items.iter().for_each(|s| s.places(f)),
            Store::Stack { elements, next, .. } => {
                elements.iter().for_each(|s| s.places(f));
                f(&Place::Var(*next));
            }
            Store::Header { valid, fields, .. } => {
                f(valid);
                fields.iter().for_each(|s| s.places(f));
            }
        }
    }

    /// Calls `f` for all that writing it may change: a header of a union may make its siblings invalid.
    pub(super) fn written(&self, f: &mut impl FnMut(&Place)) {
        self.places(f);
        let mut headers = Vec::new();
        self.headers(&mut headers);
        for header in headers {
            if let Store::Header { siblings, .. } = header {
                siblings.iter().for_each(&mut *f);
            }
        }
    }

    /// Every header in it.
    pub(super) fn headers<'s>(&'s self, out: &mut Vec<&'s Store>) {
        match self {
            Store::Header { .. } => out.push(self),
            Store::Struct(items) | Store::Union(items) | Store::Stack { elements: items, .. } => {
                items.iter().for_each(|s| s.headers(out))
            }
            _ => {}
        }
    }

    /// Whether it is at a fixed place, without a run-time index.
    pub(super) fn fixed(&self) -> bool {
        let mut fixed = true;
        self.places(&mut |p| fixed &= matches!(p, Place::Var(_)));
        fixed
    }

    /// From the first to the last variable that writing it may change; `None`: there is none, or one at a run-time index.
    fn range(&self) -> Option<RangeInclusive<u32>> {
        let (mut first, mut last, mut fixed) = (u32::MAX, 0, true);
        self.written(&mut |place| match place {
            Place::Var(var) => (first, last) = (first.min(var.0), last.max(var.0)),
            Place::Elem { .. } => fixed = false,
        });
        (fixed && first <= last).then_some(first..=last)
    }

    /// Whether there can be something that both have; told in much less time than [`Store::overlaps`].
    pub(super) fn is_near(&self, other: &Store) -> bool {
        match (self.range(), other.range()) {
            (Some(mine), Some(others)) => mine.start() <= others.end() && others.start() <= mine.end(),
            _ => true,
        }
    }

    /// Whether writing one may change the other.
    pub(super) fn overlaps(&self, program: &Program, other: &Store) -> bool {
        let mut mine = Places::default();
        mine.add(self);
        let mut clash = false;
        other.places(&mut |place| clash |= mine.may_have(program, place));
        clash
    }
}

/// Gives each header of a union the validity of all.
fn share_validity(items: &mut [Store]) {
    let bits: Rc<[Place]> = items
        .iter()
        .filter_map(|s| match s {
            Store::Header { valid, .. } => Some(valid.clone()),
            _ => None,
        })
        .collect();
    for item in items {
        if let Store::Header { siblings, .. } = item {
            *siblings = bits.clone();
        }
    }
}

impl Lowerer<'_> {
    /// Fields of a struct, header or union, with type arguments in place.
    pub(super) fn fields(&self, ty: &Type) -> Vec<(FieldDef, Type)> {
        let (Type::Struct(id, args) | Type::Header(id, args) | Type::Union(id, args)) = ty else {
            return Vec::new();
        };
        let (DefKind::Struct(def) | DefKind::Header(def) | DefKind::Union(def)) = &self.def(*id).kind else {
            return Vec::new();
        };
        self.budget.work(4 * def.fields.len() + def.type_params.len());
        let subst: Subst = def.type_params.iter().copied().zip(args.iter().cloned()).collect();
        def.fields.iter().map(|f| (f.clone(), self.ty(&substitute(&f.ty, &subst)))).collect()
    }

    /// Width in bits of a scalar type; `None` for others.
    pub(super) fn scalar_width(&self, ty: &Type) -> Option<u32> {
        match ty {
            Type::Bool => Some(1),
            Type::Bits { width, .. } => Some(*width),
            Type::Error => Some(32),
            Type::Enum(id) => match &self.def(*id).kind {
                DefKind::Enum(def) => match &def.underlying {
                    Some(under) => self.scalar_width(under),
                    None => Some(32),
                },
                _ => None,
            },
            Type::New(id) => match &self.def(*id).kind {
                DefKind::NewType { ty } => self.scalar_width(ty),
                _ => None,
            },
            Type::Param(_) => {
                let real = self.ty(ty);
                if real == *ty { None } else { self.scalar_width(&real) }
            }
            _ => None,
        }
    }

    pub(super) fn is_signed(&self, ty: &Type) -> bool {
        match ty {
            Type::Bits { signed, .. } => *signed,
            Type::New(id) | Type::Enum(id) => match &self.def(*id).kind {
                DefKind::NewType { ty } => self.is_signed(ty),
                DefKind::Enum(def) => def.underlying.as_ref().is_some_and(|u| self.is_signed(u)),
                _ => false,
            },
            Type::Param(_) => {
                let real = self.ty(ty);
                real != *ty && self.is_signed(&real)
            }
            _ => false,
        }
    }

    pub(super) fn var(&mut self, name: impl Into<String>, width: u32, varbit: bool, home: VarHome) -> VarId {
        let name = name.into();
        self.budget.spend(Resource::Variables, 1);
        self.budget.bytes(name.len());
        self.program.vars.push(Var { name, width: width.max(1), varbit, home });
        VarId(self.program.vars.len() as u32 - 1)
    }

    /// A scalar for an intermediate result.
    pub(super) fn temp(&mut self, width: u32) -> Place {
        let number = self.program.vars.len();
        Place::Var(self.var(format!("tmp{number}"), width, false, VarHome::Local))
    }

    /// New storage for a type; none once there is too much. How large a type is that type arguments make is known only here.
    pub(super) fn alloc(&mut self, ty: &Type, name: &str, life: Life) -> Store {
        if self.budget.exhausted().is_some() {
            return Store::Unit;
        }
        let ty = self.ty(ty);
        let home = if life == Life::Global { VarHome::Global } else { VarHome::Local };
        match &ty {
            Type::Varbit(0) => Store::Unit,
            Type::Varbit(width) => Store::Varbit(Place::Var(self.var(name, *width, true, home))),
            Type::Struct(..) => {
                let fields = self.fields(&ty);
                let items = fields
                    .iter()
                    .map(|(f, t)| {
                        let store = self.alloc(t, &format!("{name}.{}", f.name), life);
                        if life == Life::Global {
                            self.note_field_list(f, &store);
                        }
                        store
                    })
                    .collect();
                Store::Struct(Rc::new(items))
            }
            Type::Tuple(types) => {
                let each = types.iter().enumerate();
                let items = each.map(|(i, t)| self.alloc(t, &format!("{name}[{i}]"), life)).collect();
                Store::Struct(Rc::new(items))
            }
            Type::Header(..) => self.alloc_header(&ty, name, life),
            Type::Union(..) => {
                let fields = self.fields(&ty);
                let mut items: Vec<Store> =
                    fields.iter().map(|(f, t)| self.alloc(t, &format!("{name}.{}", f.name), life)).collect();
                if let Some((field, _)) = fields.iter().find(|(_, t)| !matches!(t, Type::Header(..))) {
                    self.misfit(&ty, &format!("its field `{}` is no header", field.name));
                }
                share_validity(&mut items);
                Store::Union(Rc::new(items))
            }
            Type::Stack(element, size) => {
                let first_header = HeaderId(self.program.headers.len() as u32);
                let first_var = self.program.vars.len();
                let id = StackId(self.program.stacks.len() as u32);
                // In its place before elements are made, for the order of stacks; filled in below.
                let headers = matches!(self.ty(element), Type::Header(..) | Type::Union(..));
                self.program.stacks.push(Stack {
                    name: name.to_owned(),
                    len: *size,
                    plain: !headers,
                    first_header,
                    header_stride: 0,
                    var_stride: 0,
                    next: VarId(0),
                });
                let mut elements = Vec::new();
                for index in 0..*size {
                    let name = format!("{name}[{index}]");
                    elements.push(if headers {
                        self.alloc(element, &name, life)
                    } else {
                        self.alloc_element(element, &name, life)
                    });
                    if index == 0 {
                        let stack = &mut self.program.stacks[id.index()];
                        stack.header_stride = self.program.headers.len() as u32 - first_header.0;
                        stack.var_stride = (self.program.vars.len() - first_var) as u32;
                    }
                }
                let next = self.var(format!("{name}.nextIndex"), 32, false, VarHome::NextIndex(id));
                self.program.stacks[id.index()].next = next;
                Store::Stack { id, elements: Rc::new(elements), next }
            }
            _ => match self.scalar_width(&ty) {
                Some(0) | None => Store::Unit,
                Some(width) => Store::Scalar(Place::Var(self.var(name, width, false, home)), width),
            },
        }
    }

    /// `@field_list(n, ...)` on a field of user metadata.
    fn note_field_list(&mut self, field: &FieldDef, store: &Store) {
        for annotation in field.annotations.iter().filter(|a| &*a.name.name == "field_list") {
            let AnnotationBody::Free { exprs: Some(exprs), .. } = &annotation.body else { continue };
            for e in exprs {
                let index = match &e.kind {
                    crate::ast::ExprKind::Int { value, .. } => u32::try_from(value).ok(),
                    crate::ast::ExprKind::Name(path) => self.named_constant(&path.ident.name),
                    crate::ast::ExprKind::Member { base, name } => self.named_member(base, &name.name),
                    _ => None,
                };
                let Some(index) = index else {
                    self.diagnostics.push(
                        Diagnostic::error(
                            "not-constant",
                            e.span,
                            "the number of a field list must be known here",
                        )
                        .help("use a number, a constant or a member of a serializable enum"),
                    );
                    continue;
                };
                self.budget.work(store.size());
                self.budget.bytes(store.size());
                let list = self.field_lists.entry(index).or_default();
                list.index = index;
                let mut headers = Vec::new();
                store.headers(&mut headers);
                for header in headers {
                    if let Store::Header { header: HeaderRef::Header(id), .. } = header {
                        list.headers.push(*id);
                    }
                }
                scalars(store, &mut list.vars);
            }
        }
    }

    /// The value of a top-level constant.
    fn named_constant(&self, name: &str) -> Option<u32> {
        self.budget.work(self.hir.top.len());
        self.hir.top.iter().find(|id| &*self.def(**id).name == name).and_then(|id| {
            match &self.def(*id).kind {
                DefKind::Const { value, .. } => match &self.constant(value)?.kind {
                    crate::hir::ExprKind::Int(value) => u32::try_from(value).ok(),
                    _ => None,
                },
                _ => None,
            }
        })
    }

    /// The value of a member of a serializable enum.
    fn named_member(&self, base: &crate::ast::Expr, member: &str) -> Option<u32> {
        let (crate::ast::ExprKind::Name(path)
        | crate::ast::ExprKind::Type(TypeRef { kind: TypeKind::Named { path, .. }, .. })) = &base.kind
        else {
            return None;
        };
        self.budget.work(self.hir.top.len());
        let id = self.hir.top.iter().find(|id| self.def(**id).name == path.ident.name)?;
        let DefKind::Enum(def) = &self.def(*id).kind else { return None };
        let (_, value) = def.members.iter().find(|(name, _)| &**name == member)?;
        u32::try_from(value.as_ref()?).ok()
    }

    /// A header, of which the fields are to be allocated next, and then its validity.
    fn begin_header(&mut self, ty: &Type, name: &str, life: Life) -> HeaderId {
        let type_id = self.header_type(ty);
        let id = HeaderId(self.program.headers.len() as u32);
        self.budget.bytes(name.len());
        self.program.headers.push(Header {
            name: name.to_owned(),
            ty: type_id,
            first_field: VarId(self.program.vars.len() as u32),
            valid: VarId(0),
            local: life == Life::Local,
        });
        id
    }

    fn alloc_validity(&mut self, header: HeaderId, name: &str) -> VarId {
        let valid = self.var(format!("{name}.$valid$"), 1, false, VarHome::Valid(header));
        self.program.headers[header.index()].valid = valid;
        valid
    }

    fn alloc_header(&mut self, ty: &Type, name: &str, life: Life) -> Store {
        let id = self.begin_header(ty, name, life);
        let mut index = 0;
        let fields = self
            .fields(ty)
            .iter()
            .map(|(f, t)| self.alloc_field(t, &format!("{name}.{}", f.name), id, &mut index))
            .collect();
        let valid = self.alloc_validity(id, name);
        Store::Header {
            header: HeaderRef::Header(id),
            valid: Place::Var(valid),
            fields: Rc::new(fields),
            siblings: Rc::default(),
        }
    }

    /// An element of an array that is no header or union. It is kept as a header, whose validity nobody looks at, so that
    /// executors find it by its index.
    fn alloc_element(&mut self, ty: &Type, name: &str, life: Life) -> Store {
        let ty = self.ty(ty);
        let id = self.begin_header(&ty, name, life);
        let store = self.alloc_field(&ty, name, id, &mut 0);
        self.alloc_validity(id, name);
        store
    }

    fn alloc_field(&mut self, ty: &Type, name: &str, header: HeaderId, index: &mut u32) -> Store {
        if self.budget.exhausted().is_some() {
            return Store::Unit;
        }
        if let Type::Struct(..) = ty {
            let fields = self.fields(ty);
            let each = fields.iter();
            let items = each
                .map(|(f, t)| self.alloc_field(t, &format!("{name}.{}", f.name), header, index))
                .collect();
            return Store::Struct(Rc::new(items));
        }
        if let Type::Tuple(types) = ty {
            let items = types.iter().enumerate();
            let items = items.map(|(i, t)| self.alloc_field(t, &format!("{name}[{i}]"), header, index));
            return Store::Struct(Rc::new(items.collect()));
        }
        let (width, varbit) = match ty {
            Type::Varbit(width) => (*width, true),
            _ => (self.scalar_width(ty).unwrap_or(0), false),
        };
        if width == 0 {
            return Store::Unit;
        }
        let var = self.var(name, width, varbit, VarHome::Field { header, field: *index });
        *index += 1;
        if varbit { Store::Varbit(Place::Var(var)) } else { Store::Scalar(Place::Var(var), width) }
    }

    fn header_type(&mut self, ty: &Type) -> HeaderTypeId {
        if let Some(id) = self.header_types.get(ty) {
            return *id;
        }
        let mut out =
            HeaderType { name: display(self.hir, ty), fields: Vec::new(), fixed_bits: 0, varbit: None };
        match ty {
            Type::Header(..) | Type::Struct(..) => self.header_fields(ty, "", &mut out),
            other => self.header_field("value".to_owned(), other, &mut out),
        }
        // A header has a variable for each field.
        if out.fields.len() as u64 > self.budget.limits.variables {
            self.budget.spend(Resource::Variables, out.fields.len() as u64);
        }
        let header = matches!(ty, Type::Header(..));
        let parts = match ty {
            Type::Header(..) => self.fields(ty).into_iter().map(|(_, part)| part).collect(),
            _ => vec![ty.clone()],
        };
        let varbit = |part: &Type| header && matches!(part, Type::Varbit(_));
        if parts.iter().filter(|part| varbit(part)).count() > 1 {
            self.misfit(ty, "it has a second varbit field");
        }
        let bad = parts.iter().filter(|part| !varbit(part)).find_map(|part| self.unpackable(part, header));
        if let Some(bad) = bad {
            let shown = display(self.hir, &bad);
            self.misfit(ty, &format!("it cannot hold a `{shown}`"));
        }
        let id = HeaderTypeId(self.program.header_types.len() as u32);
        self.program.header_types.push(out);
        self.header_types.insert(ty.clone(), id);
        id
    }

    /// What a header (`header`) or an element of an array cannot have in it: of generic types it is known only here.
    fn unpackable(&self, ty: &Type, header: bool) -> Option<Type> {
        let plain = |id: DefId| matches!(&self.def(id).kind, DefKind::Enum(e) if e.underlying.is_none());
        match ty {
            _ if self.budget.exhausted().is_some() => None,
            Type::Struct(..) => self.fields(ty).iter().find_map(|(_, part)| self.unpackable(part, header)),
            Type::Tuple(parts) if !header => parts.iter().find_map(|part| self.unpackable(part, header)),
            Type::Error if header => Some(ty.clone()),
            Type::Enum(id) if header && plain(*id) => Some(ty.clone()),
            _ => self.scalar_width(ty).is_none().then(|| ty.clone()),
        }
    }

    /// Reports a type that its type arguments have made impossible.
    fn misfit(&mut self, ty: &Type, why: &str) {
        let around = self.current.map(|id| self.instances[id.0].def);
        let span = self.type_def(ty).or(around).map_or_else(Span::default, |id| self.def(id).span);
        let message = format!("`{}` is not possible: {why}", display(self.hir, ty));
        self.diagnostics.push(Diagnostic::error("bad-type", span, message).help("give other type arguments"));
    }

    fn header_fields(&self, ty: &Type, prefix: &str, out: &mut HeaderType) {
        for (field, ty) in self.fields(ty) {
            self.header_field(format!("{prefix}{}", field.name), &ty, out);
        }
    }

    fn header_field(&self, name: String, ty: &Type, out: &mut HeaderType) {
        if self.budget.exhausted().is_some() || out.fields.len() as u64 > self.budget.limits.variables {
            return;
        }
        match ty {
            Type::Struct(..) => self.header_fields(ty, &format!("{name}."), out),
            Type::Tuple(types) => {
                types.iter().enumerate().for_each(|(i, t)| self.header_field(format!("{name}[{i}]"), t, out));
            }
            Type::Varbit(0) => {}
            Type::Varbit(width) => {
                out.varbit = Some(out.fields.len() as u32);
                let bit_offset = out.fixed_bits;
                out.fields.push(HeaderField { name, width: *width, varbit: true, bit_offset });
            }
            _ => {
                let width = self.scalar_width(ty).unwrap_or(0);
                if width > 0 {
                    out.fields.push(HeaderField { name, width, varbit: false, bit_offset: out.fixed_bits });
                    out.fixed_bits += width;
                }
            }
        }
    }

    /// The declared type's definition, for names.
    pub(super) fn type_def(&self, ty: &Type) -> Option<DefId> {
        match ty {
            Type::Struct(id, _)
            | Type::Header(id, _)
            | Type::Union(id, _)
            | Type::Enum(id)
            | Type::New(id) => Some(*id),
            _ => None,
        }
    }
}

/// Scalar variables outside of headers.
fn scalars(store: &Store, out: &mut Vec<VarId>) {
    match store {
        Store::Scalar(Place::Var(var), _) | Store::Varbit(Place::Var(var)) => out.push(*var),
        Store::Struct(items) | Store::Stack { elements: items, .. } => {
            items.iter().for_each(|s| scalars(s, out));
        }
        _ => {}
    }
}
