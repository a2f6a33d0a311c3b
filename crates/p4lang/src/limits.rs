//! What a compilation may use: work and memory are counted, so that any text ends soon with a program or a diagnostic.
//!
//! Each phase counts what it makes ([`Budget::spend`]) in one of the [`Resource`]s and stops with a diagnostic where the
//! limit is reached. Counts depend on the text alone: the same text is refused on every machine, busy or idle.

use std::cell::Cell;

use crate::diag::Diagnostic;
use crate::source::Span;

/// Errors of one phase after which it stops; the rest is left out.
pub(crate) const MAX_ERRORS: usize = 100;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Included,
    Macros,
    Tokens,
    Work,
    Analysis,
    Bytes,
    Statements,
    Variables,
    Expressions,
    Instances,
    States,
}

macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident: $default:expr, $unit:literal, $cure:literal;)*) => {
        /// Limits of one compilation; [`Limits::default`] has room for programs of some ten thousand lines.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Limits {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Limits { $($field: $default,)* }
            }
        }

        impl Limits {
            /// Name and value of each.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field),)*]
            }

            /// Sets one by its name; `false` if there is none of that name.
            pub fn set(&mut self, name: &str, value: u64) -> bool {
                match name {
                    $(stringify!($field) => self.$field = value,)*
                    _ => return false,
                }
                true
            }
        }

        /// Unit and cure of a limit.
        fn words(name: &str) -> (&'static str, &'static str) {
            match name {
                $(stringify!($field) => ($unit, $cure),)*
                _ => ("", ""),
            }
        }
    };
}

limits! {
    /// Bytes of the program's own text.
    source_bytes: 1 << 20, "bytes of text", "split it into files";
    /// Bytes of the files that are included, each as often as it is.
    included_bytes: 16 << 20, "bytes of included files", "give the files include guards, and include them once";
    /// What macros make: tokens, and bytes of the text that `#` and `##` make.
    macros: 4 << 20, "tokens and bytes made by macros", "use smaller macros, or fewer levels of them";
    /// Macro calls in arguments of macro calls.
    macro_depth: 200, "nested macro calls", "nest them less";
    /// Tokens after includes and macros.
    tokens: 1_000_000, "tokens after includes and macros", "use smaller macros, or include less";
    /// Levels of the tree of one expression or type, where a chain of operators counts as many levels as it has operators.
    depth: 1_000, "levels of nesting", "split it up, with constants or variables for its parts";
    /// Steps of parsing, checking and lowering, of about 10 ns each.
    work: 150_000_000, "steps of work", "make it smaller";
    /// Steps of the search for values that are read before they are set. Beyond them there is a warning.
    analysis: 20_000_000, "steps of analysis", "make it smaller";
    /// Bytes of names, types, constants and strings.
    bytes: 256 << 20, "bytes of names, types, constants and strings", "use shorter names, smaller types and constants";
    /// Statements after everything is inlined.
    statements: 300_000, "statements once everything is inlined",
        "apply fewer copies of its parsers, controls and functions";
    /// Scalar variables, likewise.
    variables: 200_000, "variables once everything is inlined",
        "apply fewer copies of its parsers, controls and functions, and use smaller structs";
    /// Operands and operators, likewise.
    expressions: 2_000_000, "operands once everything is inlined",
        "apply fewer copies of its parsers, controls and functions";
    /// Instances of parsers, controls and externs.
    instances: 10_000, "instances", "make fewer instances of its parsers, controls and externs";
    /// Parser states after sub-parsers are inlined.
    states: 4_000, "parser states once everything is inlined", "apply fewer copies of its parsers";
    /// Bytes of a packet's frame: all headers, metadata and variables.
    frame_bytes: crate::sizes::MAX_FRAME, "bytes of headers, metadata and variables", "use smaller stacks, headers and variables";
    /// Bytes of the state that a switch keeps for the program.
    state_bytes: 1 << 30, "bytes of state", "declare fewer or narrower cells and entries";
    /// Bytes of the packets that wait in queues of a live switch, each with its frame; a part of `state_bytes`.
    queue_bytes: 256 << 20, "bytes of waiting packets", "";
}

impl Limits {
    fn of(&self, resource: Resource) -> (&'static str, u64) {
        match resource {
            Resource::Included => ("included_bytes", self.included_bytes),
            Resource::Macros => ("macros", self.macros),
            Resource::Tokens => ("tokens", self.tokens),
            Resource::Work => ("work", self.work),
            Resource::Analysis => ("analysis", self.analysis),
            Resource::Bytes => ("bytes", self.bytes),
            Resource::Statements => ("statements", self.statements),
            Resource::Variables => ("variables", self.variables),
            Resource::Expressions => ("expressions", self.expressions),
            Resource::Instances => ("instances", self.instances),
            Resource::States => ("states", self.states),
        }
    }
}

/// What is left of [`Limits`] in one compilation.
#[derive(Debug, Default)]
pub struct Budget {
    pub limits: Limits,
    used: [Cell<u64>; 11],
    /// The first resource that ran out, not counting [`Resource::Analysis`].
    out: Cell<Option<Resource>>,
}

impl Budget {
    pub fn new(limits: &Limits) -> Budget {
        Budget { limits: limits.clone(), ..Budget::default() }
    }

    /// Counts `amount`; `false` if the limit is passed, now or before.
    pub fn spend(&self, resource: Resource, amount: u64) -> bool {
        let used = &self.used[resource as usize];
        used.set(used.get().saturating_add(amount));
        let fits = used.get() <= self.limits.of(resource).1;
        if !fits && resource != Resource::Analysis && self.out.get().is_none() {
            self.out.set(Some(resource));
        }
        fits
    }

    /// [`Resource::Work`].
    pub fn work(&self, amount: usize) -> bool {
        self.spend(Resource::Work, amount as u64)
    }

    /// [`Resource::Bytes`].
    pub fn bytes(&self, amount: usize) -> bool {
        self.spend(Resource::Bytes, amount as u64)
    }

    pub fn used(&self, resource: Resource) -> u64 {
        self.used[resource as usize].get()
    }

    /// What ran out, if something did.
    pub fn exhausted(&self) -> Option<Resource> {
        self.out.get()
    }

    /// The diagnostic for what ran out.
    pub fn report(&self, code: &'static str, resource: Resource, span: Span) -> Diagnostic {
        let (name, limit) = self.limits.of(resource);
        beyond(code, name, limit, span)
    }

    /// What has been used, by the names of the limits.
    pub fn all_used(&self) -> Vec<(&'static str, u64)> {
        const ALL: [Resource; 11] = [
            Resource::Included,
            Resource::Macros,
            Resource::Tokens,
            Resource::Work,
            Resource::Analysis,
            Resource::Bytes,
            Resource::Statements,
            Resource::Variables,
            Resource::Expressions,
            Resource::Instances,
            Resource::States,
        ];
        ALL.iter().map(|resource| (self.limits.of(*resource).0, self.used(*resource))).collect()
    }
}

/// The diagnostic for a limit that is passed at `span`.
pub(crate) fn beyond(code: &'static str, name: &'static str, limit: u64, span: Span) -> Diagnostic {
    let (unit, cure) = words(name);
    Diagnostic::error(code, span, format!("the program takes more than {limit} {unit}"))
        .help(format!("{cure}; or raise the limit `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spending() {
        let mut limits = Limits::default();
        assert!(limits.set("work", 10));
        assert!(!limits.set("patience", 10));
        let budget = Budget::new(&limits);
        assert!(budget.work(10));
        assert_eq!(budget.exhausted(), None);
        assert!(!budget.work(1));
        assert!(!budget.spend(Resource::Analysis, u64::MAX));
        assert!(budget.bytes(1));
        assert_eq!(budget.exhausted(), Some(Resource::Work));
        assert_eq!(budget.used(Resource::Work), 11);
    }

    #[test]
    fn a_diagnostic_names_the_limit_and_the_cure() {
        let budget = Budget::new(&Limits::default());
        let found = budget.report("too-large", Resource::Instances, Span::default());
        assert_eq!(found.message, "the program takes more than 10000 instances");
        let help =
            "make fewer instances of its parsers, controls and externs; or raise the limit `instances`";
        assert_eq!(found.help.as_deref(), Some(help));
    }
}
