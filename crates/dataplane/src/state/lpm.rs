//! Longest prefix match: a trie of one byte a level, each node a run-length coded array of 256.
//!
//! A node's array says for each value of its byte which prefix ends there (the longest that covers the byte) and which node goes
//! on. Equal neighbours are one run; a bitmap marks where runs start, so that the run of a byte is found by counting bits. A lookup
//! touches two cache lines a level and at most `ceil(width / 8)` levels, however many prefixes there are.

/// No prefix, no node.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// What the longest prefix that ends in this node and covers the byte leads to.
    value: u32,
    child: u32,
}

/// What a lookup reads.
#[derive(Debug, Clone)]
struct Node {
    /// Bytes at which a run starts; byte 0 always.
    starts: [u64; 4],
    /// Runs that start in earlier words of `starts`, less one.
    before: [i16; 4],
    runs: Box<[Run]>,
}

/// What an update reads.
#[derive(Debug, Clone, Default)]
struct Parts {
    /// Prefixes that end in this node: first byte, length within the byte (0 to 8), value.
    prefixes: Vec<(u8, u8, u32)>,
    /// Bytes that go on, in order.
    children: Vec<(u8, u32)>,
}

/// Prefixes of values of one width, each with a number.
#[derive(Debug, Clone)]
pub struct Lpm {
    width: u32,
    nodes: Vec<Node>,
    parts: Vec<Parts>,
    free: Vec<u32>,
}

impl Lpm {
    pub fn new(width: u32) -> Lpm {
        let mut lpm = Lpm { width, nodes: Vec::new(), parts: Vec::new(), free: Vec::new() };
        lpm.new_node();
        lpm
    }

    /// The value of the longest prefix that matches. `key`: words, least significant first.
    pub fn lookup(&self, key: &[u64]) -> Option<u32> {
        if self.width > 64 {
            return self.walk(|level| self.byte(key, level));
        }
        let key = key.first()? << (64 - self.width);
        self.walk(|level| (key >> (56 - 8 * level)) as u8)
    }

    #[inline(always)]
    fn walk(&self, byte: impl Fn(u32) -> u8) -> Option<u32> {
        let levels = self.width.div_ceil(8);
        let mut best = NONE;
        let mut at = 0;
        for level in 0..levels {
            let run = self.nodes[at as usize].run(byte(level));
            if run.value != NONE {
                best = run.value;
            }
            if run.child == NONE {
                break;
            }
            at = run.child;
        }
        (best != NONE).then_some(best)
    }

    /// Byte number `level` from the top of a key whose top bit is that of the width.
    fn byte(&self, key: &[u64], level: u32) -> u8 {
        // The byte's lowest bit, counted from the key's; negative where the key ends within the byte.
        let low = i64::from(self.width) - 8 * (i64::from(level) + 1);
        let (word, shift) = (low.div_euclid(64), low.rem_euclid(64));
        let get = |word: i64| usize::try_from(word).ok().and_then(|w| key.get(w)).copied().unwrap_or(0);
        let mut value = get(word) >> shift;
        if shift > 56 {
            value |= get(word + 1) << (64 - shift);
        }
        value as u8
    }

    /// The value of exactly this prefix.
    pub fn find(&self, key: &[u64], length: u32) -> Option<u32> {
        let mut at = 0;
        for level in 0..last_level(length) {
            at = self.parts[at].child(self.byte(key, level))? as usize;
        }
        let (first, bits) = self.end(key, length);
        let found = self.parts[at].prefixes.iter().find(|(f, b, _)| (*f, *b) == (first, bits));
        found.map(|(.., value)| *value)
    }

    /// Adds a prefix or changes its value.
    pub fn insert(&mut self, key: &[u64], length: u32, value: u32) {
        let mut at = 0;
        for level in 0..last_level(length) {
            let byte = self.byte(key, level);
            at = match self.parts[at].child(byte) {
                Some(child) => child as usize,
                None => {
                    let child = self.new_node();
                    let children = &mut self.parts[at].children;
                    let place = children.partition_point(|(b, _)| *b < byte);
                    children.insert(place, (byte, child));
                    self.rebuild(at);
                    child as usize
                }
            };
        }
        let (first, bits) = self.end(key, length);
        let prefixes = &mut self.parts[at].prefixes;
        match prefixes.iter_mut().find(|(f, b, _)| (*f, *b) == (first, bits)) {
            Some((.., known)) => *known = value,
            None => prefixes.push((first, bits, value)),
        }
        self.rebuild(at);
    }

    /// Removes a prefix and gives its value.
    pub fn remove(&mut self, key: &[u64], length: u32) -> Option<u32> {
        let mut path = vec![0];
        for level in 0..last_level(length) {
            let at = path[path.len() - 1];
            path.push(self.parts[at].child(self.byte(key, level))? as usize);
        }
        let at = path[path.len() - 1];
        let (first, bits) = self.end(key, length);
        let prefixes = &mut self.parts[at].prefixes;
        let place = prefixes.iter().position(|(f, b, _)| (*f, *b) == (first, bits))?;
        let (.., value) = prefixes.swap_remove(place);
        self.rebuild(at);
        // Nodes that nothing needs any more.
        while let [.., parent, last] = path[..] {
            if !self.parts[last].prefixes.is_empty() || !self.parts[last].children.is_empty() {
                break;
            }
            self.parts[parent].children.retain(|(_, child)| *child as usize != last);
            self.rebuild(parent);
            self.free.push(last as u32);
            path.pop();
        }
        Some(value)
    }

    /// First byte and length within the byte of a prefix, in the node where it ends.
    fn end(&self, key: &[u64], length: u32) -> (u8, u8) {
        let level = last_level(length);
        let bits = (length - 8 * level) as u8;
        let byte = if bits == 0 { 0 } else { self.byte(key, level) };
        let kept = if bits == 0 { 0 } else { 0xffu8 << (8 - bits) };
        (byte & kept, bits)
    }

    fn new_node(&mut self) -> u32 {
        let node = Node::new(&Parts::default());
        match self.free.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                self.parts[index as usize] = Parts::default();
                index
            }
            None => {
                self.nodes.push(node);
                self.parts.push(Parts::default());
                self.nodes.len() as u32 - 1
            }
        }
    }

    fn rebuild(&mut self, at: usize) {
        self.nodes[at] = Node::new(&self.parts[at]);
    }
}

/// The level in whose node a prefix ends: one of 8 bits ends in the first node, as does that of none.
fn last_level(length: u32) -> u32 {
    length.saturating_sub(1) / 8
}

impl Parts {
    fn child(&self, byte: u8) -> Option<u32> {
        let found = self.children.binary_search_by_key(&byte, |(b, _)| *b);
        found.ok().map(|place| self.children[place].1)
    }
}

impl Node {
    fn new(parts: &Parts) -> Node {
        let mut all = [Run { value: NONE, child: NONE }; 256];
        let mut lengths = [0u8; 256];
        for (first, bits, value) in &parts.prefixes {
            let first = usize::from(*first);
            for byte in first..first + (256 >> bits) {
                // Each length covers a byte at most once.
                if all[byte].value == NONE || lengths[byte] < *bits {
                    all[byte].value = *value;
                    lengths[byte] = *bits;
                }
            }
        }
        for (byte, child) in &parts.children {
            all[usize::from(*byte)].child = *child;
        }
        let mut runs = Vec::new();
        let mut starts = [0u64; 4];
        for (byte, run) in all.into_iter().enumerate() {
            if byte == 0 || run != all[byte - 1] {
                starts[byte / 64] |= 1 << (byte % 64);
                runs.push(run);
            }
        }
        let mut before = [-1i16; 4];
        for word in 1..4 {
            before[word] = before[word - 1] + starts[word - 1].count_ones() as i16;
        }
        Node { starts, before, runs: runs.into() }
    }

    #[inline(always)]
    fn run(&self, byte: u8) -> Run {
        let word = usize::from(byte >> 6);
        // Starts up to and including the byte: shifts out those behind it.
        let upto = self.starts[word] << (63 - (byte & 63));
        let index = i32::from(self.before[word]) + upto.count_ones() as i32;
        self.runs[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A list of prefixes, searched from one end to the other.
    fn slow(list: &[(u128, u32, u32)], width: u32, key: u128) -> Option<u32> {
        let covers = |value: u128, length: u32| length == 0 || (value ^ key) >> (width - length) == 0;
        list.iter().filter(|(v, l, _)| covers(*v, *l)).max_by_key(|(_, l, _)| *l).map(|(.., h)| *h)
    }

    fn words(value: u128, width: u32) -> Vec<u64> {
        let all = [value as u64, (value >> 64) as u64];
        all[..width.div_ceil(64) as usize].to_vec()
    }

    proptest! {
        #[test]
        fn as_a_list(
            width in prop::sample::select(vec![1u32, 7, 8, 9, 20, 32, 48, 64, 65, 100, 128]),
            changes in prop::collection::vec((any::<u128>(), any::<u32>(), any::<bool>(), 0u8..4), 1..60),
            keys in prop::collection::vec((any::<u128>(), any::<usize>()), 20),
        ) {
            let all = u128::MAX >> (128 - width);
            let mut list: Vec<(u128, u32, u32)> = Vec::new();
            let mut lpm = Lpm::new(width);
            for (number, (value, length, remove, near)) in changes.into_iter().enumerate() {
                let length = length % (width + 1);
                // Prefixes that share their beginning, so that they nest.
                let value = if near == 0 { value } else { value & (all >> 4) };
                let value = if length == 0 { 0 } else { value & all & (all << (width - length)) };
                let at = list.iter().position(|(v, l, _)| (*v, *l) == (value, length));
                prop_assert_eq!(lpm.find(&words(value, width), length), at.map(|at| list[at].2));
                if remove && !list.is_empty() {
                    let (value, length, handle) = list.swap_remove(number % list.len());
                    prop_assert_eq!(lpm.remove(&words(value, width), length), Some(handle));
                } else if at.is_none() {
                    list.push((value, length, number as u32));
                    lpm.insert(&words(value, width), length, number as u32);
                }
                for (key, pick) in &keys {
                    // Half of the keys below one of the prefixes.
                    let key = match list.get(pick % (2 * list.len() + 1)) {
                        Some((value, length, _)) if *length < width => value | (key & (all >> length)),
                        Some((value, ..)) => *value,
                        None => key & all,
                    };
                    prop_assert_eq!(lpm.lookup(&words(key, width)), slow(&list, width, key));
                }
            }
        }
    }
}
