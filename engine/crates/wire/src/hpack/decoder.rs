//! Reads header blocks with a dynamic table (RFC 7541 2.3.2, 3, 4 and 6).

use super::{ENTRY_OVERHEAD, HpackError, StringLiteral, integer, read_string, static_table};
use crate::huffman;
use std::collections::VecDeque;

/// The decoding side of one direction of a connection.
///
/// It allocates while its buffers grow to their bounded size and not after.
pub struct Decoder {
    table: DynamicTable,
    /// What our SETTINGS_HEADER_TABLE_SIZE allows.
    size_limit: usize,
    list_limit: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// `table_octets` is the SETTINGS_HEADER_TABLE_SIZE in force, `list_octets` the largest header list that is handed
    /// out, counted as RFC 9113 6.5.2 does (32 octets a field on top of name and value).
    pub fn new(table_octets: usize, list_octets: usize) -> Self {
        Self {
            table: DynamicTable::new(table_octets),
            size_limit: table_octets,
            list_limit: list_octets,
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Size of the dynamic table now, as RFC 7541 4.1 counts it.
    pub fn table_octets(&self) -> usize {
        self.table.octets
    }

    /// Reads one header block and hands each field to `field` as name and value.
    ///
    /// On [`HpackError::ListTooLarge`] the block was read to its end, so the table stays in step with the peer's, and the
    /// fields beyond the limit were not handed over. Any other error ends the connection.
    pub fn decode(&mut self, block: &[u8], mut field: impl FnMut(&[u8], &[u8])) -> Result<(), HpackError> {
        let mut position = 0;
        let mut list_octets = 0usize;
        let mut fields_seen = false;
        while position < block.len() {
            let first = block[position];
            if first & 0xe0 == 0x20 {
                // RFC 7541 4.2: a size update stands at the beginning of a block.
                let size = integer::decode(block, &mut position, 5)?;
                if fields_seen || size > self.size_limit as u64 {
                    return Err(HpackError::TableSize);
                }
                self.table.resize(size as usize);
                continue;
            }
            fields_seen = true;
            // RFC 7541 6.1.
            if first & 0x80 != 0 {
                let index = integer::decode(block, &mut position, 7)?;
                let (name, value) = lookup(&self.table, index)?;
                list_octets = list_octets.saturating_add(name.len() + value.len() + ENTRY_OVERHEAD);
                if list_octets <= self.list_limit {
                    field(name, value);
                }
                continue;
            }
            // RFC 7541 6.2: a literal with indexing (01), without (0000) or never indexed (0001).
            let indexing = first & 0x40 != 0;
            let name_index = integer::decode(block, &mut position, if indexing { 6 } else { 4 })?;
            self.name.clear();
            self.value.clear();
            if name_index == 0 {
                read_into(read_string(block, &mut position)?, &mut self.name)?;
            } else {
                self.name.extend_from_slice(lookup(&self.table, name_index)?.0);
            }
            read_into(read_string(block, &mut position)?, &mut self.value)?;
            if indexing {
                self.table.insert(&self.name, &self.value);
            }
            list_octets = list_octets.saturating_add(self.name.len() + self.value.len() + ENTRY_OVERHEAD);
            if list_octets <= self.list_limit {
                field(&self.name, &self.value);
            }
        }
        if list_octets > self.list_limit { Err(HpackError::ListTooLarge) } else { Ok(()) }
    }
}

/// The block bounds the string, as a Huffman code grows by 8/5 at most; the caller bounds the block.
fn read_into(literal: StringLiteral<'_>, out: &mut Vec<u8>) -> Result<(), HpackError> {
    if literal.huffman {
        huffman::decode(literal.octets, out, usize::MAX)?;
    } else {
        out.extend_from_slice(literal.octets);
    }
    Ok(())
}

/// RFC 7541 2.3.3: one address space, the static table before the dynamic one. Index 0 is not used (6.1).
#[inline]
fn lookup(table: &DynamicTable, index: u64) -> Result<(&[u8], &[u8]), HpackError> {
    let position = usize::try_from(index).map_err(|_| HpackError::Index(index))?;
    let found = if position <= static_table::STATIC_TABLE.len() {
        static_table::entry(position)
    } else {
        table.get(position - static_table::STATIC_TABLE.len() - 1)
    };
    found.ok_or(HpackError::Index(index))
}

struct Entry {
    start: usize,
    name_length: usize,
    value_length: usize,
}

/// The entries lie one after another in one vector, oldest first; what was evicted is cut off when it is the larger half.
struct DynamicTable {
    entries: VecDeque<Entry>,
    text: Vec<u8>,
    octets: usize,
    limit: usize,
}

impl DynamicTable {
    fn new(limit: usize) -> Self {
        Self { entries: VecDeque::new(), text: Vec::new(), octets: 0, limit }
    }

    /// Entry by age, 0 being the newest.
    fn get(&self, age: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.get(self.entries.len().checked_sub(age + 1)?)?;
        let text = &self.text[entry.start..entry.start + entry.name_length + entry.value_length];
        Some(text.split_at(entry.name_length))
    }

    fn insert(&mut self, name: &[u8], value: &[u8]) {
        let cost = name.len() + value.len() + ENTRY_OVERHEAD;
        if cost > self.limit {
            // RFC 7541 4.4: an entry larger than the table empties it and is not an error.
            self.evict_down_to(0);
            return;
        }
        self.evict_down_to(self.limit - cost);
        self.compact();
        self.entries.push_back(Entry { start: self.text.len(), name_length: name.len(), value_length: value.len() });
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.octets += cost;
    }

    /// RFC 7541 4.3.
    fn resize(&mut self, limit: usize) {
        self.limit = limit;
        self.evict_down_to(limit);
    }

    fn evict_down_to(&mut self, octets: usize) {
        while self.octets > octets {
            let Some(oldest) = self.entries.pop_front() else { return };
            self.octets -= oldest.name_length + oldest.value_length + ENTRY_OVERHEAD;
        }
    }

    fn compact(&mut self) {
        let dead = self.entries.front().map_or(self.text.len(), |oldest| oldest.start);
        if dead > self.text.len() / 2 {
            self.text.drain(..dead);
            for entry in &mut self.entries {
                entry.start -= dead;
            }
        }
    }
}

#[cfg(test)]
mod tests;
