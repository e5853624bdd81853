//! Samples in memory while a run goes on: about 20 octets a row, so that ten million fit and few cache lines are touched.
//!
//! A row is written as differences to the row before it and to its own start, in variable-length integers (LEB128), the
//! signed ones zigzag coded. What seldom changes (labels, flags, status) is written only when it did.

use trifecta_wire::ErrorClass;

use crate::Sample;

const CHUNK_OCTETS: usize = 1 << 20;
/// More than any row can take: 16 integers of at most 10 octets.
const MAX_ROW_OCTETS: usize = 170;

/// A compact sequence of samples, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct SampleStore {
    chunks: Vec<Vec<u8>>,
    labels: Labels,
    rows: u64,
    previous: Packed,
}

/// The strings that occur, each once.
#[derive(Clone, Debug, Default)]
struct Labels {
    known: Vec<&'static str>,
}

impl Labels {
    /// 0 for none, else 1 + index.
    #[inline]
    fn id(&mut self, label: Option<&'static str>) -> u8 {
        let Some(label) = label else { return 0 };
        // The same literal has the same address nearly always.
        if let Some(index) = self.known.iter().position(|known| std::ptr::eq(*known, label) || *known == label) {
            return index as u8 + 1;
        }
        assert!(self.known.len() < 254, "labels are a small fixed set");
        self.known.push(label);
        self.known.len() as u8
    }

    fn get(&self, id: u8) -> Option<&'static str> {
        id.checked_sub(1).map(|index| self.known[usize::from(index)])
    }
}

/// What a row has in common with most rows before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Common {
    connection: u32,
    status: u16,
    protocol: u8,
    tls_version: u8,
    cipher: u8,
    error: u8,
    /// warmup, resumed, zero_rtt, has a stream, has connect times
    flags: u8,
    bytes_out: u64,
    bytes_in: u64,
    header_bytes_in: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Packed {
    common: Common,
    request: u64,
    client: u32,
    stream: u64,
    started_ns: u64,
}

const WARMUP: u8 = 1;
const RESUMED: u8 = 2;
const ZERO_RTT: u8 = 4;
const HAS_STREAM: u8 = 8;
const HAS_CONNECT: u8 = 16;
const HAS_INTENDED: u8 = 32;

impl SampleStore {
    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds a sample.
    #[inline]
    pub fn push(&mut self, sample: &Sample) {
        let has_connect = (sample.connect_start_ns | sample.tcp_connected_ns | sample.secured_ns) != 0;
        let common = Common {
            connection: sample.connection,
            status: sample.status,
            protocol: self.labels.id(sample.protocol),
            tls_version: self.labels.id(sample.tls_version),
            cipher: self.labels.id(sample.cipher),
            error: sample.error.map_or(0, |class| class as u8 + 1),
            flags: u8::from(sample.warmup) * WARMUP
                + u8::from(sample.resumed) * RESUMED
                + u8::from(sample.zero_rtt) * ZERO_RTT
                + u8::from(sample.stream.is_some()) * HAS_STREAM
                + u8::from(has_connect) * HAS_CONNECT
                + u8::from(sample.intended_ns != 0) * HAS_INTENDED,
            bytes_out: sample.bytes_out,
            bytes_in: sample.bytes_in,
            header_bytes_in: sample.header_bytes_in,
        };
        let chunk = match self.chunks.last_mut() {
            Some(chunk) if chunk.len() + MAX_ROW_OCTETS <= CHUNK_OCTETS => chunk,
            _ => {
                self.chunks.push(Vec::with_capacity(CHUNK_OCTETS));
                self.chunks.last_mut().expect("just added")
            }
        };
        let previous = self.previous;
        if common == previous.common {
            chunk.push(0);
        } else {
            chunk.push(1);
            chunk.extend_from_slice(&[common.protocol, common.tls_version, common.cipher, common.error, common.flags]);
            for value in [
                u64::from(common.connection),
                u64::from(common.status),
                common.bytes_out,
                common.bytes_in,
                common.header_bytes_in,
            ] {
                put(chunk, value);
            }
        }
        put_signed(chunk, sample.request.wrapping_sub(previous.request));
        put_signed(chunk, i64::from(sample.client).wrapping_sub(i64::from(previous.client)) as u64);
        put_signed(chunk, sample.started_ns.wrapping_sub(previous.started_ns));
        let stream = sample.stream.unwrap_or(0);
        if sample.stream.is_some() {
            put_signed(chunk, stream.wrapping_sub(previous.stream));
        }
        if sample.intended_ns != 0 {
            put_time(chunk, sample.intended_ns, sample.started_ns);
        }
        if has_connect {
            for time in [sample.connect_start_ns, sample.tcp_connected_ns, sample.secured_ns] {
                put_time(chunk, time, sample.started_ns);
            }
        }
        put_time(chunk, sample.request_sent_ns, sample.started_ns);
        put_time(chunk, sample.first_byte_ns, sample.started_ns);
        put_time(chunk, sample.done_ns, sample.first_byte_ns);
        self.rows += 1;
        let stream = if sample.stream.is_some() { stream } else { previous.stream };
        self.previous =
            Packed { common, request: sample.request, client: sample.client, stream, started_ns: sample.started_ns };
    }

    /// All samples in the order in which they were added.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { store: self, chunk: 0, position: 0, previous: Packed::default() }
    }
}

impl<'a> IntoIterator for &'a SampleStore {
    type Item = Sample;
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

#[inline]
fn put(chunk: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        chunk.push(value as u8 | 0x80);
        value >>= 7;
    }
    chunk.push(value as u8);
}

#[inline]
fn put_signed(chunk: &mut Vec<u8>, difference: u64) {
    let signed = difference as i64;
    put(chunk, ((signed << 1) ^ (signed >> 63)) as u64);
}

/// 0 for a time that did not happen, else 1 + the zigzag coded difference to `base`. The difference of two times on one
/// machine's clock is far below 2^62, so adding 1 cannot overflow; anything else is kept by wrapping.
#[inline]
fn put_time(chunk: &mut Vec<u8>, time: u64, base: u64) {
    if time == 0 {
        chunk.push(0);
        return;
    }
    let signed = time.wrapping_sub(base) as i64;
    put(chunk, (((signed << 1) ^ (signed >> 63)) as u64).wrapping_add(1));
}

/// Iterates over a [`SampleStore`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    store: &'a SampleStore,
    chunk: usize,
    position: usize,
    previous: Packed,
}

impl Iter<'_> {
    fn octet(&mut self) -> u8 {
        let octet = self.store.chunks[self.chunk][self.position];
        self.position += 1;
        octet
    }

    fn integer(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let octet = self.octet();
            value |= u64::from(octet & 0x7f) << shift;
            if octet & 0x80 == 0 {
                return value;
            }
            shift += 7;
        }
    }

    fn signed(&mut self) -> u64 {
        unzigzag(self.integer())
    }

    fn time(&mut self, base: u64) -> u64 {
        match self.integer() {
            0 => 0,
            coded => base.wrapping_add(unzigzag(coded.wrapping_sub(1))),
        }
    }

    fn common(&mut self) -> Common {
        if self.octet() == 0 {
            return self.previous.common;
        }
        let [protocol, tls_version, cipher, error, flags] = std::array::from_fn(|_| self.octet());
        Common {
            protocol,
            tls_version,
            cipher,
            error,
            flags,
            connection: self.integer() as u32,
            status: self.integer() as u16,
            bytes_out: self.integer(),
            bytes_in: self.integer(),
            header_bytes_in: self.integer(),
        }
    }
}

fn unzigzag(coded: u64) -> u64 {
    (coded >> 1) ^ (coded & 1).wrapping_neg()
}

impl Iterator for Iter<'_> {
    type Item = Sample;

    fn next(&mut self) -> Option<Sample> {
        if self.position == self.store.chunks.get(self.chunk)?.len() {
            self.chunk += 1;
            self.position = 0;
            self.store.chunks.get(self.chunk)?;
        }
        let common = self.common();
        let has = |flag: u8| common.flags & flag != 0;
        let request = self.previous.request.wrapping_add(self.signed());
        let client = self.previous.client.wrapping_add(self.signed() as u32);
        let started_ns = self.previous.started_ns.wrapping_add(self.signed());
        let stream = has(HAS_STREAM).then(|| self.previous.stream.wrapping_add(self.signed()));
        let intended_ns = if has(HAS_INTENDED) { self.time(started_ns) } else { 0 };
        let [connect_start_ns, tcp_connected_ns, secured_ns] =
            if has(HAS_CONNECT) { std::array::from_fn(|_| self.time(started_ns)) } else { [0; 3] };
        let request_sent_ns = self.time(started_ns);
        let first_byte_ns = self.time(started_ns);
        let done_ns = self.time(first_byte_ns);
        self.previous = Packed { common, request, client, stream: stream.unwrap_or(self.previous.stream), started_ns };
        let labels = &self.store.labels;
        Some(Sample {
            connection: common.connection,
            client,
            stream,
            request,
            warmup: has(WARMUP),
            intended_ns,
            started_ns,
            connect_start_ns,
            tcp_connected_ns,
            secured_ns,
            request_sent_ns,
            first_byte_ns,
            done_ns,
            protocol: labels.get(common.protocol),
            tls_version: labels.get(common.tls_version),
            cipher: labels.get(common.cipher),
            resumed: has(RESUMED),
            zero_rtt: has(ZERO_RTT),
            status: common.status,
            bytes_out: common.bytes_out,
            bytes_in: common.bytes_in,
            header_bytes_in: common.header_bytes_in,
            error: common.error.checked_sub(1).map(|number| ErrorClass::ALL[usize::from(number)]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    fn sample(state: &mut u64) -> Sample {
        let labels = [None, Some("h1"), Some("h2"), Some("TLS_AES_128_GCM_SHA256"), Some("1.3")];
        let classes = ErrorClass::ALL;
        let started_ns = 1 + (random(state) >> 20);
        let time = |state: &mut u64| match random(state) % 4 {
            0 => 0,
            1 => 1 + (random(state) >> 12),
            _ => started_ns + random(state) % 1_000_000,
        };
        Sample {
            intended_ns: time(state),
            started_ns,
            connect_start_ns: time(state),
            tcp_connected_ns: time(state),
            secured_ns: time(state),
            request_sent_ns: time(state),
            first_byte_ns: time(state),
            done_ns: time(state),
            connection: random(state) as u32,
            client: random(state) as u32,
            stream: random(state).is_multiple_of(2).then(|| random(state) >> 2),
            request: random(state),
            warmup: random(state).is_multiple_of(2),
            resumed: random(state).is_multiple_of(2),
            zero_rtt: random(state).is_multiple_of(2),
            protocol: labels[random(state) as usize % 5],
            tls_version: labels[random(state) as usize % 5],
            cipher: labels[random(state) as usize % 5],
            error: classes.get(random(state) as usize % (classes.len() + 1)).copied(),
            status: random(state) as u16,
            bytes_out: random(state),
            bytes_in: random(state) >> 30,
            header_bytes_in: random(state) >> 50,
        }
    }

    #[test]
    fn any_samples_come_back_as_they_were() {
        let mut state = 0x1234_5678_9abc_def1;
        let mut samples: Vec<Sample> = (0..30_000).map(|_| sample(&mut state)).collect();
        samples.push(Sample::default());
        let mut store = SampleStore::default();
        for sample in &samples {
            store.push(sample);
        }
        assert!(store.chunks.len() > 1, "must cross a chunk");
        assert_eq!(store.len(), samples.len() as u64);
        for (stored, sample) in store.iter().zip(&samples) {
            assert_eq!(stored, *sample);
        }
        assert_eq!(store.iter().count(), samples.len());
    }

    #[test]
    fn a_usual_row_is_small() {
        let mut store = SampleStore::default();
        for row in 0..100_000u64 {
            let started_ns = 1_000_000_000_000 + row * 10_000;
            store.push(&Sample {
                connection: 0,
                stream: Some(row * 4),
                request: row,
                started_ns,
                request_sent_ns: started_ns + 2_000,
                first_byte_ns: started_ns + 900_000 + row % 977,
                done_ns: started_ns + 900_000 + row % 977,
                protocol: Some("h3"),
                tls_version: Some("1.3"),
                cipher: Some("TLS_AES_128_GCM_SHA256"),
                status: 200,
                bytes_in: 1000,
                header_bytes_in: 40,
                ..Sample::default()
            });
        }
        let octets: usize = store.chunks.iter().map(Vec::len).sum();
        assert!(octets < 100_000 * 17, "{octets} octets for 100000 rows");
    }
}
