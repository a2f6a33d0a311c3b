//! A table's entries, and finding the one that matches.
//!
//! Keys are words: for each key in order `ceil(width / 64)` words, least significant first. Tables of exact keys have an index of
//! their rows ([`super::exact`]), tables with an lpm key, or with one beside exact keys, a trie ([`super::lpm`]); where its keys would
//! be too long, one hash map per prefix length, longest first. Everything else is searched by masks ([`super::ternary`]).
//! A smaller priority number wins, as in the reference switch; of equal ones the entry that was added first.

mod keys;
pub(crate) mod undo;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::offset_of;

use p4lang::ir::{EntryMatch, MatchKind, Program, Table, TableId};
use p4lang::sizes::trie_width;

use super::aging::Aging;
use super::exact::{Exact, Packing, direct};
use super::lines::Lines;
use super::lpm::{Lpm, Order, Places};
use super::meter::{Color, MeterCell};
use super::pieces::{Counts, Pieces, make_room};
use super::rows::{Rows, Shape};
use super::target::SETS;
use super::ternary::Ternary;
use super::words::words;
use crate::prefetch::prefetch;
use keys::{key_words, lookup_lpm, paired, prefix_length, trie_key};
use smallvec::SmallVec;

pub use super::target::{Page, Target, action_args, action_words};

/// Here a smaller priority wins, in P4Runtime a larger one: the one is this less the other.
pub const TOP_PRIORITY: u32 = i32::MAX as u32;

#[derive(Debug, Clone)]
pub struct Entry {
    pub matches: Vec<EntryMatch>,
    pub priority: u32,
    target: Target,
    pub is_const: bool,
    /// Direct counter.
    pub packets: u64,
    pub bytes: u64,
    /// Direct meter.
    pub meter: MeterCell,
    /// Picoseconds; see [`TableState::last_hit`].
    last_hit: u64,
    /// Picoseconds without a hit after which the control plane is told; 0: it is not.
    pub idle_timeout: u64,
    /// When it is looked at next for its timeout, as [`Aging::add`] gives it; 0: it is not.
    due: u64,
    /// The control plane's own, which nobody else reads.
    note: Vec<u8>,
    order: u64,
}

type Words = Box<[u64]>;
type Map = Pieces<Words, u32>;

#[derive(Debug, Clone)]
enum Index {
    /// See [`TableState::exact`].
    Exact,
    /// An lpm key, or one beside exact keys in such an order: see [`TableState::trie`].
    Trie(Option<Order>),
    /// Position of the lpm key's words in the key, its width, and maps by prefix length, longest first.
    Lpm { at: usize, width: u32, lengths: Vec<(u32, Map)> },
    /// By priority.
    Ordered(Ordered),
}

/// More entries than this do not stay in the cache that is near: by measurement (docs/performance.md).
pub(crate) const WIDE: usize = 1 << 16;

/// Entries with priorities.
#[derive(Debug, Clone)]
struct Ordered {
    ternary: Ternary,
    /// Handles by a hash of the match and the priority, in the order of adding.
    known: BTreeMap<u64, SmallVec<[u32; 2]>>,
}

impl Ordered {
    fn number(matches: &[EntryMatch], priority: u32) -> u64 {
        let mut all = DefaultHasher::new();
        (matches, priority).hash(&mut all);
        all.finish()
    }
}

/// An action's index, and words of its data.
pub type Action<'a> = (u32, &'a [u64]);

/// Result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit<'a> {
    /// Handle of the entry; `None` on a miss.
    pub entry: Option<u32>,
    pub target: &'a Target,
    /// What the lookup has cost, where that depends on the entries; see [`TableState::search`].
    pub work: u64,
}

#[derive(Debug, Clone)]
pub struct TableState {
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    live: usize,
    /// Entries that it may have, but for those of the program.
    size: usize,
    index: Index,
    /// Width of each key.
    widths: Vec<u32>,
    kinds: Vec<MatchKind>,
    default: Target,
    initial_default: Target,
    /// Row 0 is the default's, then there is one for each handle.
    rows: Rows,
    /// Where native code finds them: the rows of exact keys, and the handles of prefixes. Empty in tables of other kinds.
    exact: Exact,
    trie: Lpm,
    added: u64,
    counts: bool,
    aging: Aging,
    /// No entry was hit before.
    began: u64,
    /// How many entries lead to each member and group, and how many have sets of actions: see [`Target::used`].
    uses: Counts<u64>,
    /// The control plane's own note of the default.
    default_note: Vec<u8>,
    /// Bytes of notes and of sets of actions: see [`super::room`].
    added_bytes: u64,
}

impl TableState {
    pub fn new(program: &Program, id: TableId) -> TableState {
        let table = &program[id];
        let widths: Vec<u32> = table.keys.iter().map(|k| k.expr.width).collect();
        let kinds: Vec<MatchKind> = table.keys.iter().map(|k| k.kind).collect();
        let size = table.size as usize;
        let default = Target::Action {
            action: table.default_action.action,
            args: action_words(program, table, table.default_action.action, &table.default_action.args),
        };
        let mut state = TableState {
            entries: Vec::new(),
            free: Vec::new(),
            live: 0,
            size,
            index: empty_index(&widths, &kinds, size),
            rows: Rows::new(Shape::of(program, table), size),
            exact: Exact::new(Packing::of(&widths), direct(table), size),
            trie: empty_trie(&widths, &kinds, size),
            widths,
            kinds,
            initial_default: default.clone(),
            default,
            added: 0,
            counts: table.direct_counter.is_some(),
            aging: Aging::default(),
            began: 0,
            uses: Counts::default(),
            default_note: Vec::new(),
            added_bytes: 0,
        };
        state.set_default(state.initial_default.clone());
        // The program's entries in the order in which they win. Where others may come to them, they have the places of the
        // priorities that they say: by P4Runtime's order where the larger one wins, else by that of the command language.
        let places = !table.const_entries;
        let mut order: Vec<usize> = (0..table.entries.len()).collect();
        order.sort_by_key(|i| {
            let priority = i64::from(table.entries[*i].priority.unwrap_or(0));
            if table.largest_priority_wins { -priority } else { priority }
        });
        for (rank, index) in order.into_iter().enumerate() {
            let entry = &table.entries[index];
            let args = action_words(program, table, entry.action.action, &entry.action.args);
            let target = Target::Action { action: entry.action.action, args };
            let place = entry
                .priority
                .filter(|_| places)
                .map(|p| if table.largest_priority_wins { TOP_PRIORITY.saturating_sub(p) } else { p });
            state.insert(entry.matches.clone(), place.unwrap_or(rank as u32 + 1), target, entry.is_const);
        }
        state
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.live
    }

    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub fn entry(&self, handle: u32) -> Option<&Entry> {
        self.entries.get(handle as usize)?.as_ref()
    }

    pub fn entry_mut(&mut self, handle: u32) -> Option<&mut Entry> {
        self.entries.get_mut(handle as usize)?.as_mut()
    }

    /// Handles and entries.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Entry)> {
        self.entries.iter().zip(0..).filter_map(|(entry, handle)| Some((handle, entry.as_ref()?)))
    }

    /// A page of entries with their handles, of so many handles from one on, and the handle to go on from if there are more.
    pub fn page(&self, first: u32, mut page: Page, handles: usize) -> (Vec<(u32, &Entry)>, Option<u32>) {
        let start = self.entries.len().min(first as usize);
        let end = self.entries.len().min(start.saturating_add(handles));
        let mut found = Vec::new();
        for next in start..end {
            let Some(entry) = &self.entries[next] else { continue };
            if !page.take(&entry.target) {
                return (found, Some(next as u32));
            }
            found.push((next as u32, entry));
        }
        (found, (end < self.entries.len()).then_some(end as u32))
    }

    /// Entries of so many handles, from one on, and the handle after them if there are more.
    pub fn some(&self, first: u32, handles: usize) -> (impl Iterator<Item = &Entry>, Option<u32>) {
        let start = self.entries.len().min(first as usize);
        let end = self.entries.len().min(start.saturating_add(handles));
        let next = (end < self.entries.len()).then_some(end as u32);
        (self.entries[start..end].iter().flatten(), next)
    }

    pub fn reset_default(&mut self) {
        self.set_default(self.initial_default.clone());
        self.set_default_note(Vec::new());
    }

    /// Starts an entry's idle timeout anew, from `now` on.
    pub fn set_idle_timeout(&mut self, handle: u32, timeout: u64, now: u64) {
        let Some(Some(entry)) = self.entries.get_mut(handle as usize) else { return };
        self.aging.remove(entry.due, handle);
        entry.last_hit = entry.last_hit.max(now);
        entry.idle_timeout = timeout;
        entry.due = 0;
        if timeout > 0 {
            entry.due = self.aging.add(entry.last_hit, timeout, handle);
        }
    }

    /// Has the age of all entries, and their idle timeouts, begin at `now`, which is no sooner than what has happened so far. However
    /// many entries there are, it takes no longer.
    pub fn begin(&mut self, now: u64) {
        self.began = now;
        self.aging.begin(now);
    }

    /// When an entry was last hit, or added, or since when the table is in use: whichever is later.
    pub fn last_hit(&self, entry: &Entry) -> u64 {
        entry.last_hit.max(self.began)
    }

    /// Whether an entry is to be looked at for its timeout.
    pub fn is_due(&self, now: u64) -> bool {
        self.aging.is_due(now)
    }

    /// Entries that were not hit for as long as their timeout, `most` of them, after so many looks. The timeout of each begins anew.
    pub fn take_idle(&mut self, now: u64, most: usize, looks: usize, page: &mut Page) -> Vec<u32> {
        let mut idle = Vec::new();
        for _ in 0..looks {
            if idle.len() >= most {
                break;
            }
            let Some(handle) = self.aging.pop(now) else { break };
            let Some(Some(entry)) = self.entries.get_mut(handle as usize) else { continue };
            let since = entry.last_hit.max(self.began);
            let timeout = entry.idle_timeout;
            entry.due = if since.saturating_add(timeout) > now {
                self.aging.add(since, timeout, handle)
            } else if page.take(&entry.target) {
                idle.push(handle);
                self.aging.add(now, timeout, handle)
            } else {
                // There was no room for it: it is next.
                self.aging.add_again(entry.due, handle);
                entry.due
            };
            if page.is_full() {
                break;
            }
        }
        idle
    }

    /// What a miss leads to.
    pub fn default_target(&self) -> &Target {
        &self.default
    }

    pub fn set_default(&mut self, target: Target) {
        self.rows.set(0, &target);
        self.added_bytes = self.added_bytes + target.added() - self.default.added();
        self.default = target;
    }

    /// Whether an entry leads to a member or group.
    pub fn leads_to(&self, target: &Target) -> bool {
        target.used().is_some_and(|used| self.uses.has(&used))
    }

    /// Whether an entry has a set of actions.
    pub fn has_sets(&self) -> bool {
        self.uses.has(&SETS)
    }

    pub fn default_note(&self) -> &[u8] {
        &self.default_note
    }

    pub fn set_default_note(&mut self, note: Vec<u8>) {
        self.added_bytes = self.added_bytes + note.len() as u64 - self.default_note.len() as u64;
        self.default_note = note;
    }

    /// Sets the control plane's note of an entry.
    pub fn set_note(&mut self, handle: u32, note: Vec<u8>) {
        let Some(Some(entry)) = self.entries.get_mut(handle as usize) else { return };
        self.added_bytes = self.added_bytes + note.len() as u64 - entry.note.len() as u64;
        entry.note = note;
    }

    pub(crate) fn added_bytes(&self) -> u64 {
        self.added_bytes
    }

    /// Changes what an entry leads to; false if there is none.
    pub fn set_target(&mut self, handle: u32, target: Target) -> bool {
        let Some(Some(entry)) = self.entries.get_mut(handle as usize) else { return false };
        self.rows.set(handle + 1, &target);
        self.uses.add(target.used());
        self.uses.remove(entry.target.used());
        self.added_bytes = self.added_bytes + target.added() - entry.target.added();
        entry.target = target;
        true
    }

    /// As [`TableState::lookup`] where that leads to an action: whether an entry matches, the action's index, and words of its data,
    /// padded with zeros to those of the action with the most. `None` in place of the action: ask `lookup`.
    #[inline]
    pub fn lookup_action(&self, key: &[u64]) -> (bool, Option<Action<'_>>, u64) {
        if let (Index::Exact, &[one]) = (&self.index, key)
            && let row @ 1.. = self.exact.candidate(one)
            && let Some([known, found @ ..]) = self.rows.get(row)
            && *known == one
            && let [action, data @ ..] = found
        {
            return (true, (action & Rows::INDIRECT == 0).then_some((*action as u32, data)), 0);
        }
        self.lookup_any(key)
    }

    #[inline(never)]
    fn lookup_any(&self, key: &[u64]) -> (bool, Option<Action<'_>>, u64) {
        let (row, work) = self.search(key);
        let found = self.rows.action(row);
        let action = (found[0] & Rows::INDIRECT == 0).then(|| (found[0] as u32, &found[1..]));
        (row != 0, action, work)
    }

    /// Whether there are so many entries that lookups wait for memory.
    #[inline]
    pub(crate) fn is_wide(&self) -> bool {
        self.live > WIDE
    }

    /// Asks for the memory with which the search for a key begins; in a trie, whose levels come one after the other, for all.
    pub(crate) fn prefetch(&self, key: &[u64]) {
        match self.index {
            Index::Exact => self.exact.prefetch(key),
            Index::Trie(_) => prefetch(self.rows.at(self.search_other(key).0), 1),
            _ => {}
        }
    }

    /// Asks for the row to which that leads.
    pub(crate) fn prefetch_row(&self, key: &[u64]) {
        if let Index::Exact = self.index {
            prefetch(self.rows.at(self.exact.candidate_of(key)), 2);
        }
    }

    /// Where the row for a key is, see [`Rows`], and what the lookup has cost.
    #[inline]
    pub(crate) fn row(&self, key: &[u64]) -> (*const u64, u64) {
        let (row, work) = self.search(key);
        (self.rows.address(row), work)
    }

    /// The handle of the entry whose row is at an address; `None`: it is the default's.
    pub(crate) fn handle_of(&self, row: *const u64) -> Option<u32> {
        self.rows.number_at(row).checked_sub(1)
    }

    /// Where the row begins of the entry that matches, or the default's, and what finding it has cost in units of [`crate::cost`]:
    /// that is 0 unless entries have priorities, else it depends on the entries.
    #[inline(always)]
    fn search(&self, key: &[u64]) -> (u32, u64) {
        match self.index {
            Index::Exact => (self.exact.get(&self.rows, key), 0),
            _ => self.search_other(key),
        }
    }

    #[inline(never)]
    fn search_other(&self, key: &[u64]) -> (u32, u64) {
        if self.live == 0 {
            return (0, 0);
        }
        // A row's number is one more than its handle.
        let row = |handle: Option<u32>| handle.map_or(0, |handle| self.rows.start(handle + 1));
        match &self.index {
            Index::Exact => (self.exact.get(&self.rows, key), 0),
            Index::Trie(None) => (row(self.trie.lookup(key)), 0),
            Index::Trie(Some(order)) => (row(self.trie.lookup(&order.joined(key))), 0),
            Index::Lpm { at, width, lengths } => (row(lookup_lpm(key, *at, *width, lengths)), 0),
            Index::Ordered(ordered) => {
                let (found, work) = ordered.ternary.search(key);
                (row(found), work)
            }
        }
    }

    pub fn lookup(&self, key: &[u64]) -> Hit<'_> {
        let (row, work) = self.search(key);
        match self.rows.number(row).checked_sub(1).and_then(|h| Some((h, self.entry(h)?))) {
            Some((handle, entry)) => Hit { entry: Some(handle), target: &entry.target, work },
            None => Hit { entry: None, target: &self.default, work },
        }
    }

    /// Counts a hit for the direct counter and the idle timeout.
    pub fn count_hit(&mut self, handle: u32, now: u64, bytes: u64) {
        let counts = self.counts;
        if let Some(entry) = self.entry_mut(handle) {
            entry.last_hit = now;
            if counts {
                entry.packets = entry.packets.wrapping_add(1);
                entry.bytes = entry.bytes.wrapping_add(bytes);
            }
        }
    }

    /// Executes the entry's direct meter.
    pub fn meter_hit(&mut self, handle: u32, now: u64, amount: u64) -> Color {
        self.entry_mut(handle).map_or(Color::Green, |e| e.meter.execute(now, amount))
    }

    /// The entry with exactly this match (and, where it counts, priority).
    pub fn find(&self, matches: &[EntryMatch], priority: u32) -> Option<u32> {
        match &self.index {
            Index::Exact => {
                let row = self.exact.get(&self.rows, &key_words(matches, &self.widths));
                self.rows.number(row).checked_sub(1)
            }
            Index::Trie(order) => {
                let words = key_words(matches, &self.widths);
                let (key, length) = trie_key(order.as_ref(), words, matches);
                self.trie.find(&key, length)
            }
            Index::Lpm { lengths, .. } => {
                let length = prefix_length(matches);
                let map = &lengths.iter().find(|(l, _)| *l == length)?.1;
                map.get(&key_words(matches, &self.widths)).copied()
            }
            Index::Ordered(ordered) => {
                let same = |e: &Entry| e.priority == priority && e.matches == matches;
                let known = ordered.known.get(&Ordered::number(matches, priority))?;
                known.iter().copied().find(|handle| self.entry(*handle).is_some_and(same))
            }
        }
    }

    /// Whether entries have priorities.
    pub fn prioritised(&self) -> bool {
        matches!(self.index, Index::Ordered(_))
    }

    /// Adds an entry that was checked before; gives its handle.
    pub fn insert(&mut self, matches: Vec<EntryMatch>, priority: u32, target: Target, is_const: bool) -> u32 {
        self.added += 1;
        let handle = self.free.pop().unwrap_or(self.entries.len() as u32);
        let entry = Entry {
            matches,
            priority,
            target,
            is_const,
            packets: 0,
            bytes: 0,
            meter: MeterCell::default(),
            last_hit: 0,
            idle_timeout: 0,
            due: 0,
            note: Vec::new(),
            order: self.added,
        };
        self.put(handle, entry);
        handle
    }

    /// Puts an entry at a handle that no entry has.
    fn put(&mut self, handle: u32, entry: Entry) {
        let words = key_words(&entry.matches, &self.widths);
        match &mut self.index {
            Index::Exact => {
                self.rows.set_key(handle + 1, &self.exact.packed(&words));
                self.exact.insert(&self.rows, self.rows.start(handle + 1));
            }
            Index::Trie(order) => {
                let (key, length) = trie_key(order.as_ref(), words, &entry.matches);
                self.trie.insert(&key, length, handle);
            }
            Index::Lpm { lengths, .. } => {
                let length = prefix_length(&entry.matches);
                let at = lengths.partition_point(|(l, _)| *l > length);
                if lengths.get(at).is_none_or(|(l, _)| *l != length) {
                    lengths.insert(at, (length, Map::default()));
                }
                lengths[at].1.insert(words, handle);
            }
            Index::Ordered(ordered) => {
                let rank = (entry.priority, entry.order);
                ordered.ternary.insert(&entry.matches, &self.widths, rank, handle);
                let number = Ordered::number(&entry.matches, entry.priority);
                ordered.known.entry(number).or_default().push(handle);
            }
        }
        self.rows.set(handle + 1, &entry.target);
        self.uses.add(entry.target.used());
        self.added_bytes += entry.added();
        if entry.due > 0 {
            self.aging.add_again(entry.due, handle);
        }
        if handle as usize == self.entries.len() {
            make_room(&mut self.entries, 1, self.size);
            self.entries.push(Some(entry));
        } else {
            self.entries[handle as usize] = Some(entry);
        }
        self.live += 1;
    }

    pub fn remove(&mut self, handle: u32) -> Option<Entry> {
        let entry = self.entries.get_mut(handle as usize)?.take()?;
        let words = key_words(&entry.matches, &self.widths);
        match &mut self.index {
            Index::Exact => self.exact.remove(&self.rows, &self.exact.packed(&words)),
            Index::Trie(order) => {
                let (key, length) = trie_key(order.as_ref(), words, &entry.matches);
                self.trie.remove(&key, length);
            }
            Index::Lpm { lengths, .. } => {
                let length = prefix_length(&entry.matches);
                if let Some(at) = lengths.iter().position(|(l, _)| *l == length) {
                    lengths[at].1.remove(&words);
                    if lengths[at].1.is_empty() {
                        lengths.remove(at);
                    }
                }
            }
            Index::Ordered(ordered) => {
                ordered.ternary.remove(&entry.matches, &self.widths, (entry.priority, entry.order));
                let number = Ordered::number(&entry.matches, entry.priority);
                if let Some(known) = ordered.known.get_mut(&number) {
                    known.retain(|known| *known != handle);
                    if known.is_empty() {
                        ordered.known.remove(&number);
                    }
                }
            }
        }
        self.uses.remove(entry.target.used());
        self.aging.remove(entry.due, handle);
        make_room(&mut self.free, 1, self.size);
        self.free.push(handle);
        self.live -= 1;
        self.added_bytes -= entry.added();
        Some(entry)
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.free.clear();
        self.uses = Counts::default();
        self.live = 0;
        self.added_bytes = self.default.added() + self.default_note.len() as u64;
        self.aging.clear();
        self.index = empty_index(&self.widths, &self.kinds, self.size);
        self.exact = self.exact.empty();
        self.trie = empty_trie(&self.widths, &self.kinds, self.size);
    }
}

/// Where native code finds what it searches by itself: offsets within a [`TableState`].
pub(crate) struct Searched {
    pub slots: usize,
    pub shift: usize,
    pub rows: usize,
    pub trie: Places,
}

impl Searched {
    pub fn new() -> Searched {
        let exact = offset_of!(TableState, exact);
        Searched {
            slots: exact + offset_of!(Exact, slots) + Lines::WORDS,
            shift: exact + offset_of!(Exact, shift),
            rows: offset_of!(TableState, rows) + offset_of!(Rows, words) + Lines::WORDS,
            trie: Places::new(offset_of!(TableState, trie)),
        }
    }
}

impl Entry {
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The control plane's own note, which nobody else reads.
    pub fn note(&self) -> &[u8] {
        &self.note
    }

    /// Bytes that it has beside those that the table's size counts for it.
    pub(crate) fn added(&self) -> u64 {
        self.target.added() + self.note.len() as u64
    }

    /// Number of the addition, for listings in the order of adding.
    pub fn order(&self) -> u64 {
        self.order
    }
}

/// Whether priorities decide between entries of a table with such keys.
pub(crate) fn prioritised(table: &Table) -> bool {
    by_priority(&table.keys.iter().map(|key| key.kind).collect::<Vec<_>>())
}

fn by_priority(kinds: &[MatchKind]) -> bool {
    // Which of two prefixes is longer has no answer.
    kinds.iter().any(|k| matches!(k, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional))
        || kinds.iter().filter(|k| **k == MatchKind::Lpm).count() > 1
}

fn empty_index(widths: &[u32], kinds: &[MatchKind], size: usize) -> Index {
    if by_priority(kinds) {
        return Index::Ordered(Ordered { ternary: Ternary::new(size), known: BTreeMap::new() });
    }
    let keys = paired(widths, kinds);
    if trie_width(&keys).is_some() {
        return Index::Trie((keys.len() > 1).then(|| Order::of(&keys)));
    }
    match kinds.iter().position(|kind| *kind == MatchKind::Lpm) {
        Some(lpm) => Index::Lpm {
            at: widths[..lpm].iter().map(|w| words(*w)).sum(),
            width: widths[lpm],
            lengths: Vec::new(),
        },
        None => Index::Exact,
    }
}

/// Of a table of another kind there is next to nothing.
fn empty_trie(widths: &[u32], kinds: &[MatchKind], size: usize) -> Lpm {
    match trie_width(&paired(widths, kinds)) {
        Some(width) => Lpm::with_room(width, size as u64),
        None => Lpm::new(0),
    }
}
