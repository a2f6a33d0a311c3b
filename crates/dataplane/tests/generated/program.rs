//! Random P4 programs: typed by construction, so that every one compiles.

use std::fmt::Write;

use units::SplitMix;

/// A scalar that expressions may read or statements write.
#[derive(Clone)]
struct Lvalue {
    text: String,
    width: u32,
    signed: bool,
}

pub struct Generator<'r> {
    rng: &'r mut SplitMix,
    vars: Vec<Lvalue>,
    out: String,
    depth: usize,
    loops: usize,
}

const WIDTHS: &[u32] =
    &[1, 3, 4, 7, 8, 8, 9, 13, 16, 16, 31, 32, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 200];

pub fn generate(rng: &mut SplitMix) -> String {
    Generator { rng, vars: Vec::new(), out: String::new(), depth: 0, loops: 0 }.program()
}

impl Generator<'_> {
    fn pick(&mut self, n: usize) -> usize {
        self.rng.between(0, n as u64 - 1) as usize
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.rng.between(0, 99) < percent
    }

    fn ty(width: u32, signed: bool) -> String {
        format!("{}<{width}>", if signed { "int" } else { "bit" })
    }

    /// A literal that fits.
    fn literal(&mut self, width: u32, signed: bool) -> String {
        let bits = if signed { width - 1 } else { width };
        let mut text = String::from("0");
        if bits > 0 {
            let digits = bits.div_ceil(4);
            text = String::from("0x");
            for digit in 0..digits {
                let limit = if digit == 0 && bits % 4 != 0 { (1 << (bits % 4)) - 1 } else { 15 };
                let value = match self.rng.between(0, 3) {
                    0 => 0,
                    1 => limit,
                    _ => self.rng.between(0, limit),
                };
                let _ = write!(text, "{value:x}");
            }
        }
        format!("{width}{}{text}", if signed { 's' } else { 'w' })
    }

    /// An expression of the type.
    fn expr(&mut self, width: u32, signed: bool) -> String {
        self.depth += 1;
        let text = self.expr_inner(width, signed);
        self.depth -= 1;
        text
    }

    fn leaf(&mut self, width: u32, signed: bool) -> String {
        let same: Vec<String> = self
            .vars
            .iter()
            .filter(|v| v.width == width && v.signed == signed)
            .map(|v| v.text.clone())
            .collect();
        if !same.is_empty() && self.chance(75) {
            let index = self.pick(same.len());
            return same[index].clone();
        }
        if self.chance(60) && !self.vars.is_empty() {
            let index = self.pick(self.vars.len());
            let var = self.vars[index].clone();
            return self.convert(&var.text, var.width, var.signed, width, signed);
        }
        self.literal(width, signed)
    }

    /// Changes width and sign one at a time, as casts must.
    fn convert(&mut self, text: &str, from: u32, from_signed: bool, to: u32, signed: bool) -> String {
        let mut text = text.to_owned();
        if from_signed != signed {
            text = format!("({})({text})", Self::ty(from, signed));
        }
        if from != to { format!("({})({text})", Self::ty(to, signed)) } else { text }
    }

    fn expr_inner(&mut self, width: u32, signed: bool) -> String {
        if self.depth > 4 || self.chance(25) {
            return self.leaf(width, signed);
        }
        match self.rng.between(0, 13) {
            0..=4 => {
                let op = ["+", "-", "*", "&", "|", "^", "|+|", "|-|"][self.pick(8)];
                let (a, b) = (self.expr(width, signed), self.expr(width, signed));
                format!("({a} {op} {b})")
            }
            5 => {
                let by = [3, 8, 16, 70][self.pick(4)];
                let (a, mut b) = (self.expr(width, signed), self.expr(by, false));
                if by > 31 {
                    // The compiler refuses an amount that it knows and that is as large as this.
                    b = format!("({b} ^ m.wide)");
                }
                format!("({a} {} {b})", if self.chance(50) { "<<" } else { ">>" })
            }
            6 => format!("({}{})", if self.chance(50) { "-" } else { "~" }, self.expr(width, signed)),
            7 => {
                let c = self.condition();
                let (a, b) = (self.expr(width, signed), self.expr(width, signed));
                format!("({c} ? {a} : {b})")
            }
            8 if width > 1 && !signed => {
                let left = self.rng.between(1, u64::from(width) - 1) as u32;
                let (a, b) = (self.expr(left, false), self.expr(width - left, false));
                format!("({a} ++ {b})")
            }
            9 if !signed => {
                let lo = self.rng.between(0, 9) as u32;
                let above = self.rng.between(0, 9) as u32;
                let base = self.expr(width + lo + above, false);
                format!("({base})[{}:{lo}]", lo + width - 1)
            }
            10 if !signed => {
                let (a, b) = (self.expr(width, false), self.expr(width, false));
                let op = if self.chance(50) { "/" } else { "%" };
                format!("({a} {op} ({b} | 1))")
            }
            11 => {
                let from = WIDTHS[self.pick(WIDTHS.len())];
                let a = self.expr(from, signed);
                format!("({})({a})", Self::ty(width, signed))
            }
            _ => self.leaf(width, signed),
        }
    }

    fn condition(&mut self) -> String {
        if self.depth > 4 {
            return ["true", "hdr.a.isValid()", "hdr.s[1].isValid()"][self.pick(3)].to_owned();
        }
        self.depth += 1;
        let text = match self.rng.between(0, 6) {
            0 => format!("({} && {})", self.condition(), self.condition()),
            1 => format!("({} || {})", self.condition(), self.condition()),
            2 => format!("!({})", self.condition()),
            3 => [
                "hdr.a.isValid()",
                "hdr.b.isValid()",
                "hdr.s[2].isValid()",
                "hdr.u.isValid()",
                "hdr.u.y.isValid()",
                "(hdr.s[0] == hdr.s[1])",
            ][self.pick(6)]
            .to_owned(),
            _ => {
                let width = WIDTHS[self.pick(WIDTHS.len())];
                let signed = self.chance(30);
                let op = ["==", "!=", "<", "<=", ">", ">="][self.pick(6)];
                let (a, b) = (self.expr(width, signed), self.expr(width, signed));
                format!("({a} {op} {b})")
            }
        };
        self.depth -= 1;
        text
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn stmts(&mut self, count: usize, depth: usize, place: Place) {
        for _ in 0..count {
            self.stmt(depth, place);
        }
    }

    fn assign(&mut self) {
        let index = self.pick(self.vars.len());
        let var = self.vars[index].clone();
        if var.width > 2 && !var.signed && self.chance(15) {
            let lo = self.rng.between(0, u64::from(var.width) - 1) as u32;
            let hi = self.rng.between(u64::from(lo), u64::from(var.width) - 1) as u32;
            let value = self.expr(hi - lo + 1, false);
            self.line(&format!("{}[{hi}:{lo}] = {value};", var.text));
            return;
        }
        let value = self.expr(var.width, var.signed);
        self.line(&format!("{} = {value};", var.text));
    }

    fn stmt(&mut self, depth: usize, place: Place) {
        match self.rng.between(0, 33) {
            0..=8 => self.assign(),
            9 | 10 if depth < 3 => {
                let cond = self.condition();
                self.line(&format!("if ({cond}) {{"));
                self.stmts(2, depth + 1, place);
                if self.chance(60) {
                    self.line("} else {");
                    self.stmts(2, depth + 1, place);
                }
                self.line("}");
            }
            11 if depth < 3 && place != Place::Parser => {
                let on = self.expr(8, false);
                self.line(&format!("switch ({on}) {{ 1: 2: {{"));
                self.stmts(1, depth + 1, place);
                self.line("} 0x10: {");
                self.stmts(1, depth + 1, place);
                self.line("} default: {");
                self.stmts(1, depth + 1, place);
                self.line("} }");
            }
            12 if depth < 2 && place != Place::Parser => {
                self.loops += 1;
                let name = format!("i{}", self.loops);
                let end = self.rng.between(0, 5);
                self.line(&format!("for (bit<8> {name} in 0 .. {end}) {{"));
                self.vars.push(Lvalue { text: name, width: 8, signed: false });
                let last = self.vars.len() - 1;
                // Only read: writing it would not change the loop, but stays legal either way.
                self.stmts(2, depth + 1, place);
                if self.chance(30) {
                    let cond = self.condition();
                    let leave = if self.chance(50) { "break;" } else { "continue;" };
                    self.line(&format!("if ({cond}) {{ {leave} }}"));
                }
                self.vars.remove(last);
                self.line("}");
            }
            13 => {
                let header = ["hdr.a", "hdr.b", "hdr.s[0]", "hdr.s[1]", "hdr.u.x", "hdr.u.y"][self.pick(6)];
                let call = if self.chance(60) { "setValid" } else { "setInvalid" };
                self.line(&format!("{header}.{call}();"));
            }
            14 => {
                let copy = [
                    "hdr.s[0] = hdr.s[2];",
                    "hdr.s[1] = hdr.s[0];",
                    "hdr.s.push_front(1);",
                    "hdr.s.pop_front(1);",
                    "hdr.s.push_front(2);",
                ][self.pick(if place == Place::Parser { 2 } else { 5 })];
                self.line(copy);
            }
            15 => {
                let index = self.expr(8, false);
                let value = self.expr(16, false);
                self.line(&format!("hdr.s[m.v + {index}].f = {value};"));
            }
            16 if place == Place::Control => {
                let (index, value) = (self.expr(32, false), self.expr(33, false));
                self.line(&format!("reg.write({index}, {value});"));
            }
            17 if place == Place::Control => {
                let index = self.expr(32, false);
                self.line(&format!("reg.read(r33, {index} & 15); cnt.count({index});"));
            }
            18 if place == Place::Control => {
                let (a, b) = (self.expr(13, false), self.expr(35, false));
                let algorithm = ["crc16", "crc32", "csum16", "xor16", "identity"][self.pick(5)];
                self.line(&format!(
                    "hash(m.w, HashAlgorithm.{algorithm}, 16w3, {{ {a}, {b}, hdr.a }}, 32w1000);"
                ));
            }
            19 if place == Place::Control && depth < 2 => {
                let text = [
                    "t1.apply();",
                    "if (t2.apply().hit) { m.v = 1; }",
                    "switch (t3.apply().action_run) { set_v: { m.v = 9; } default: { m.w = 4; } }",
                ][self.pick(3)];
                self.line(text);
            }
            20 if place == Place::Control => {
                let cond = self.condition();
                let leave = if self.chance(50) { "exit;" } else { "return;" };
                self.line(&format!("if ({cond}) {{ {leave} }}"));
            }
            21 if place == Place::Control => {
                let value = self.expr(16, false);
                self.line(&format!("helper({value}, m.w, m.v);"));
            }
            22 | 29 | 30 if place == Place::Control => self.request("I2E"),
            22 | 29 | 30 if place == Place::Egress => self.request("E2E"),
            23 if place == Place::Control => {
                let (index, a) = (self.expr(32, false), self.expr(129, false));
                self.line(&format!(
                    "wide_reg.write({index} & 7, {a}); wide_reg.read(r129, (bit<32>) m.v & 3); m.wide = r129[100:31];"
                ));
            }
            24 if place == Place::Control => {
                let index = self.expr(32, false);
                self.line(&format!("mt.execute_meter({index} & 7, color); m.one = color[1:1];"));
            }
            25 if place == Place::Control => {
                let (a, b) = (self.expr(33, false), self.expr(4, false));
                self.line(&format!("digest<dig_t>(1, {{ {a}, {b}, m.si }});"));
            }
            26 if place == Place::Control => {
                let (lo, hi) = (self.expr(16, false), self.expr(16, false));
                self.line(&format!("random(m.w, {lo}, {hi});"));
            }
            27 if place == Place::Control && depth < 2 => {
                let text = [
                    "t4.apply();",
                    "if (!t5.apply().hit) { m.one = 1; }",
                    "t6.apply();",
                    "t7.apply();",
                    "t8.apply();",
                ][self.pick(5)];
                self.line(text);
            }
            28 | 31..=33 if place != Place::Parser => {
                let cond = self.condition();
                let what = [
                    "sm.mcast_grp = (bit<16>) m.v & 7;",
                    "truncate((bit<32>) m.v);",
                    "mark_to_drop(sm);",
                    "sm.egress_spec = (bit<9>) m.v & 7;",
                    "assume(m.v < 100);",
                ][self.pick(5)];
                self.line(&format!("if ({cond}) {{ {what} }}"));
            }
            _ => self.assign(),
        }
    }

    /// A clone, or one more pass. Most of the latter only for packets that have made none, or few passes would end.
    fn request(&mut self, kind: &str) {
        let cond = self.condition();
        let session = self.rng.between(0, 4);
        let again = if kind == "I2E" { "resubmit" } else { "recirculate" };
        // An egress clone runs egress again.
        let once = "sm.instance_type == 0";
        let guard = if self.chance(80) { once } else { "sm.instance_type != 6 || m.v != 0" };
        let (what, guard) = match self.pick(5) {
            0 => (format!("clone(CloneType.{kind}, {session});"), once),
            1 => (format!("clone_preserving_field_list(CloneType.{kind}, {session}, 1);"), once),
            2 => (format!("clone_preserving_field_list(CloneType.{kind}, (bit<32>) m.v & 3, 2);"), once),
            3 => (format!("{again}_preserving_field_list(1);"), guard),
            _ => (format!("{again}_preserving_field_list(2);"), guard),
        };
        self.line(&format!("if (({cond}) && ({guard})) {{ {what} }}"));
    }

    fn program(mut self) -> String {
        self.line("#include <core.p4>\n#include <v1model.p4>");
        // Header a: random fields, padded to whole bytes.
        let mut fields = Vec::new();
        let mut total = 0;
        for index in 0..self.rng.between(1, 7) {
            let width = WIDTHS[self.pick(WIDTHS.len())];
            let signed = self.chance(20);
            fields.push((format!("f{index}"), width, signed));
            total += width;
        }
        if total % 8 != 0 {
            fields.push(("pad".to_owned(), 8 - total % 8, false));
        }
        self.line("header a_t {");
        for (name, width, signed) in &fields {
            let ty = Self::ty(*width, *signed);
            self.line(&format!("  {ty} {name};"));
        }
        self.line("}");
        self.line("header b_t { bit<4> k; bit<4> n; bit<8> t; varbit<64> v; }");
        self.line("header s_t { bit<1> last; bit<7> g; bit<16> f; }");
        self.line("header x_t { bit<8> x; } header y_t { bit<16> y; } header_union u_t { x_t x; y_t y; }");
        self.line("struct headers { a_t a; b_t b; s_t[3] s; u_t u; }");
        self.line("struct meta { @field_list(1) bit<8> v; bit<16> w; @field_list(1, 2) bit<70> wide; int<9> si; @field_list(2) bit<1> one; } struct dig_t { bit<33> a; bit<4> b; int<9> c; }");
        for (name, width, signed) in fields {
            self.vars.push(Lvalue { text: format!("hdr.a.{name}"), width, signed });
        }
        for (text, width, signed) in [
            ("hdr.b.k", 4, false),
            ("hdr.b.t", 8, false),
            ("hdr.s[0].f", 16, false),
            ("hdr.s[1].g", 7, false),
            ("hdr.s[2].f", 16, false),
            ("hdr.u.x.x", 8, false),
            ("hdr.u.y.y", 16, false),
            ("m.v", 8, false),
            ("m.w", 16, false),
            ("m.wide", 70, false),
            ("m.si", 9, true),
            ("m.one", 1, false),
        ] {
            self.vars.push(Lvalue { text: text.to_owned(), width, signed });
        }
        self.line("void helper(in bit<16> a, inout bit<16> b, out bit<8> c) { c = 1; if (a == b) { b = a + 1; return; } b = b ^ a; c = (bit<8>) b; }");
        self.parser();
        self.line("control V(inout headers hdr, inout meta m) { apply { verify_checksum(hdr.a.isValid(), { hdr.a, hdr.b.k, hdr.b.n }, m.w, HashAlgorithm.csum16); } }");
        self.ingress();
        self.line("control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply {");
        self.line("bit<33> r33 = 0;");
        self.stmts(3, 1, Place::Egress);
        self.line("} }");
        self.line("control C(inout headers hdr, inout meta m) { apply { update_checksum_with_payload(hdr.u.y.isValid(), { hdr.a, hdr.b }, hdr.u.y.y, HashAlgorithm.csum16); } }");
        // With a varbit field and without; one header often enough for no room in front of a packet to do.
        let emits = match self.pick(4) {
            0 => "p.emit(hdr.a); p.emit(hdr);".to_owned(),
            1 => "p.emit(hdr.s); p.emit(hdr.a); p.emit(hdr.u);".to_owned(),
            2 => "p.emit(hdr.s[1]);".to_owned(),
            _ => "p.emit(hdr.a);".repeat(1 + self.pick(12)),
        };
        self.line(&format!("control D(packet_out p, in headers hdr) {{ apply {{ {emits} }} }}"));
        self.line("V1Switch(P(), V(), I(), E(), C(), D()) main;");
        self.out
    }

    fn parser(&mut self) {
        self.line("parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) {");
        self.line("value_set<bit<8>>(4) known;");
        self.line("state start { p.extract(hdr.a);");
        self.stmts(1, 2, Place::Parser);
        let key = self.expr(8, false);
        self.line(&format!("transition select(m.v, {key}) {{ (known, _): stack; (0, _): with_b; (_, 1 .. 5): stack; (3 &&& 7, 0x80 &&& 0x80): union; default: more; }} }}"));
        self.line("state more { bit<8> n = p.lookahead<bit<8>>(); m.v = n; transition select(n[1:0], n[7:4] == 0) { (0, true): with_b; (1, _): stack; (2, _): union; (3, false): accept; } }");
        let bits = ["8 * (bit<32>) hdr.b.n", "(bit<32>) hdr.b.n", "64", "16"][self.pick(4)];
        self.line(&format!("state with_b {{ hdr.b.n = p.lookahead<bit<8>>()[3:0]; p.extract(hdr.b, {bits}); transition select(hdr.b.t) {{ 0 .. 63: stack; 64 .. 127: union; 200: reject; _: accept; }} }}"));
        self.line("state stack { p.extract(hdr.s.next);");
        self.stmts(1, 2, Place::Parser);
        self.line("transition select(hdr.s.last.last) { 0: stack; 1: after; } }");
        self.line("state after { verify(hdr.s.lastIndex != 1 || hdr.s[0].f != 0, error.NoMatch); p.advance((bit<32>) hdr.s.last.g & 8); transition union; }");
        self.line("state union { transition select(m.one) { 0: ux; 1: uy; } }");
        self.line("state ux { p.extract(hdr.u.x); transition accept; }");
        self.line(
            "state uy { p.extract(hdr.u.y); transition select(hdr.u.y.y) { 7: ux; default: accept; } }",
        );
        self.line("}");
    }

    fn ingress(&mut self) {
        self.line("control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {");
        self.line("register<bit<33>>(16) reg; counter(8, CounterType.packets_and_bytes) cnt; direct_counter(CounterType.packets) dc;");
        self.line("register<bit<129>>(4) wide_reg; bit<129> r129 = 0; meter(8, MeterType.bytes) mt; bit<2> color = 0; direct_meter<bit<2>>(MeterType.packets) dm;");
        self.line("bit<33> r33 = 0;");
        self.vars.push(Lvalue { text: "r33".into(), width: 33, signed: false });
        for local in 0..3 {
            let width = WIDTHS[self.pick(WIDTHS.len())];
            let signed = self.chance(25);
            let ty = Self::ty(width, signed);
            self.line(&format!("{ty} l{local};"));
            self.vars.push(Lvalue { text: format!("l{local}"), width, signed });
        }
        self.line("action set_v(bit<8> d) { m.v = d;");
        self.stmts(1, 2, Place::Action);
        self.line("}");
        self.line("action wide_one(bit<70> d, bit<9> q) { m.wide = d; m.w = (bit<16>) q;");
        self.stmts(1, 2, Place::Action);
        self.line("}");
        self.line("action stop() { m.w = 5; exit; }");
        let (k1, k2) = (self.expr(8, false), self.expr(70, false));
        let lit = self.literal(70, false);
        self.line(&format!("table t1 {{ key = {{ {k1} : exact @name(\"a\"); {k2} : exact @name(\"b\"); }} actions = {{ set_v; wide_one; stop; NoAction; }} default_action = set_v(7); const entries = {{ (0, 0): set_v(1); (1, {lit}): wide_one({lit}, 5); (0, 1): stop(); }} counters = dc; }}"));
        let k = self.expr(32, false);
        self.line(&format!("table t2 {{ key = {{ {k} : lpm @name(\"k\"); }} actions = {{ set_v; wide_one; stop; NoAction; }} const entries = {{ 0x00000000 &&& 0xff000000: set_v(2); 0x0: stop(); 0x80000000 &&& 0x80000000: wide_one(1, 2); 0xffff0000 &&& 0xffff0000: set_v(3); }} }}"));
        let (a, b, c) = (self.expr(16, false), self.expr(8, false), self.expr(4, false));
        self.line(&format!("table t3 {{ key = {{ {a} : ternary @name(\"a\"); {b} : range @name(\"b\"); {c} : optional @name(\"c\"); }} actions = {{ set_v; wide_one; stop; }} default_action = wide_one(3, 4); const entries = {{ (0 &&& 0xff, _, 0): set_v(4); (_, 0 .. 10, _): wide_one(5, 6); (0x8000 &&& 0x8000, _, 15): stop(); (_, 128 .. 255, _): set_v(6); }} }}"));
        self.entries_of_the_control_plane();
        self.actions_that_set_locals();
        self.line("apply { sm.egress_spec = 2;");
        let count = self.rng.between(3, 10) as usize;
        let first = ["t7.apply();", "if (m.w > 9) { t7.apply(); }", "t7.apply(); t8.apply();"][self.pick(3)];
        self.line(first);
        self.stmts(count, 0, Place::Control);
        self.line("wide_reg.write(3, (bit<129>) g0 ^ ((bit<129>) g1 << 40) ^ ((bit<129>) g2 << 80));");
        self.line("t1.apply(); if (m.v == 0x55) { mark_to_drop(sm); }");
        self.line("} }");
        // Locals of this control are not visible after it.
        self.vars.retain(|v| !v.text.starts_with(['l', 'g']) && v.text != "r33" && v.text != "r129");
    }

    /// Locals that actions set to what they were given, alike or not, beside actions that leave them alone.
    fn actions_that_set_locals(&mut self) {
        let widths = [0; 3].map(|_| WIDTHS[self.pick(WIDTHS.len())]);
        let mut params = Vec::new();
        for (local, width) in widths.into_iter().enumerate() {
            let start = if self.chance(80) { "0".to_owned() } else { self.expr(width, false) };
            self.line(&format!("bit<{width}> g{local} = {start};"));
            params.push(format!("bit<{width}> a{local}"));
        }
        let all = ["g0 = a0;", "g1 = a1;", "g2 = a2;"];
        for (name, order) in [("give", [0, 1, 2]), ("give_too", [0, 1, 2]), ("give_turned", [2, 0, 1])] {
            let params = order.map(|local| params[local].as_str()).join(", ");
            self.line(&format!("action {name}({params}) {{"));
            for set in all {
                if self.chance(75) {
                    self.line(set);
                }
            }
            if self.chance(30) {
                self.stmts(1, 2, Place::Action);
            }
            self.line("}");
        }
        for (local, width) in widths.into_iter().enumerate() {
            self.vars.push(Lvalue { text: format!("g{local}"), width, signed: false });
        }
        for table in ["t7", "t8"] {
            let others = [
                "NoAction;",
                "give_too; NoAction;",
                "give_turned; NoAction;",
                "give_too; give_turned;",
                "set_v;",
                "",
            ];
            let (key, others) = (self.expr(3, false), others[self.pick(others.len())]);
            let profile = if self.chance(25) { "implementation = action_profile(16);" } else { "" };
            self.line(&format!("table {table} {{ key = {{ {key} : exact @name(\"k\"); }} actions = {{ give; {others} }} {profile} }}"));
        }
    }

    /// Tables that hold what the test puts there.
    fn entries_of_the_control_plane(&mut self) {
        self.line("action metered(bit<16> d) { dm.read(color); m.w = d;");
        self.stmts(1, 2, Place::Action);
        self.line("}");
        let (a, b, c) = (self.expr(7, false), self.expr(33, false), self.expr(129, false));
        self.line(&format!("action_selector(HashAlgorithm.crc16, 32, 16) sel; table t4 {{ key = {{ {a} : exact @name(\"a\"); {b} : selector @name(\"b\"); {c} : selector @name(\"c\"); }} actions = {{ set_v; wide_one; stop; NoAction; }} implementation = sel; }}"));
        let (a, b) = (self.expr(8, false), self.expr(100, false));
        self.line(&format!("table t5 {{ key = {{ {a} : exact @name(\"a\"); {b} : lpm @name(\"b\"); }} actions = {{ metered; NoAction; }} meters = dm; }}"));
        let (a, b, c) = (self.expr(65, false), self.expr(33, false), self.expr(9, false));
        self.line(&format!("table t6 {{ key = {{ {a} : ternary @name(\"a\"); {b} : range @name(\"b\"); {c} : optional @name(\"c\"); }} actions = {{ set_v; wide_one; stop; }} default_action = set_v(2); }}"));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Parser,
    Control,
    Action,
    Egress,
}
