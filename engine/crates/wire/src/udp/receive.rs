//! Receiving trains of datagrams without copying them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ptr;

use bytes::BytesMut;

use super::address::RawAddress;
use super::control::{self, ControlBuffer};
use super::{Ecn, UdpSocket};

/// Octets of one receive buffer: the largest train that generic receive offload builds.
const BUFFER_BYTES: usize = 65_536;

/// Buffers for one `recvmmsg`. One batch serves any number of sockets, one after the other.
///
/// The buffers are handed out as [`BytesMut`]; when everything cut from one has been dropped, the same memory is used
/// again for the next receive, so there is no allocation in the steady state.
pub struct ReceiveBatch {
    buffers: Box<[BytesMut]>,
    addresses: Box<[RawAddress]>,
    controls: Box<[ControlBuffer]>,
    vectors: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
    /// Headers from the first on that the last call has used, or all of them when the kind of socket changed.
    stale: usize,
    prepared_for: Option<(bool, bool)>,
}

// SAFETY: the raw pointers inside `vectors` and `headers` point into the boxes of the same batch or are rewritten before
// each call, and all access is through `&mut self`.
unsafe impl Send for ReceiveBatch {}

/// One received message: a datagram, or a train of datagrams of equal size of which the last may be shorter.
#[derive(Debug)]
pub struct Received {
    /// Who sent it.
    pub from: SocketAddr,
    /// The local address it was sent to, known when the socket is bound to the wildcard address.
    pub to: Option<IpAddr>,
    /// ECN bits; `NotCapable` unless the socket reads them.
    pub ecn: Ecn,
    /// Size of each datagram of the train in octets, never 0.
    pub segment_bytes: usize,
    /// The payload of the whole train.
    pub payload: BytesMut,
}

impl Received {
    /// Cuts the next datagram off the train.
    pub fn next_datagram(&mut self) -> Option<BytesMut> {
        match self.payload.len() {
            0 => None,
            length if length <= self.segment_bytes => Some(std::mem::take(&mut self.payload)),
            _ => Some(self.payload.split_to(self.segment_bytes)),
        }
    }
}

impl ReceiveBatch {
    /// Room for `messages` messages (each up to 64 kB) per receive call.
    pub fn new(messages: usize) -> Self {
        let messages = messages.max(1);
        let empty_vector = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: mmsghdr is plain old data; all zeroes (null pointers, zero lengths) is valid.
        let empty_header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        Self {
            buffers: (0..messages).map(|_| BytesMut::with_capacity(BUFFER_BYTES)).collect(),
            addresses: vec![RawAddress::empty(); messages].into_boxed_slice(),
            controls: vec![ControlBuffer::new(); messages].into_boxed_slice(),
            vectors: vec![empty_vector; messages].into_boxed_slice(),
            headers: vec![empty_header; messages].into_boxed_slice(),
            stale: messages,
            prepared_for: None,
        }
    }

    /// How many messages one call can take; fewer received means that the socket was empty.
    pub fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// Makes the headers point at their buffers again; the kernel overwrites lengths, and buffers move when handed out.
    fn prepare(&mut self, wants_address: bool, wants_control: bool) {
        let kind = Some((wants_address, wants_control));
        if self.prepared_for != kind {
            self.prepared_for = kind;
            self.stale = self.headers.len();
        }
        for i in 0..std::mem::take(&mut self.stale) {
            let buffer = &mut self.buffers[i];
            buffer.clear();
            // Takes the memory back if nothing cut from it is still in use, else allocates anew.
            buffer.reserve(BUFFER_BYTES);
            let spare = buffer.spare_capacity_mut();
            self.vectors[i] = libc::iovec { iov_base: spare.as_mut_ptr().cast(), iov_len: BUFFER_BYTES };
            let header = &mut self.headers[i].msg_hdr;
            header.msg_iov = &raw mut self.vectors[i];
            header.msg_iovlen = 1;
            header.msg_flags = 0;
            if wants_address {
                header.msg_name = self.addresses[i].as_mut_ptr().cast();
                header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            } else {
                header.msg_name = ptr::null_mut();
                header.msg_namelen = 0;
            }
            if wants_control {
                header.msg_control = self.controls[i].as_mut_ptr();
                header.msg_controllen = control::CONTROL_BYTES as _;
            } else {
                header.msg_control = ptr::null_mut();
                header.msg_controllen = 0;
            }
        }
    }
}

impl UdpSocket {
    /// Receives what is there, in one system call, and hands each message to `on_message`.
    ///
    /// Returns the number of messages, 0 when nothing is there. When it equals [`ReceiveBatch::capacity`] there may be
    /// more. Errors: a pending ICMP error of a connected socket (`ConnectionRefused`, `HostUnreachable`, ...) or any
    /// other of recvmmsg(2). Cut messages are counted and dropped.
    pub fn receive(&mut self, batch: &mut ReceiveBatch, mut on_message: impl FnMut(Received)) -> io::Result<usize> {
        batch.prepare(self.peer.is_none(), self.offload || self.ecn || self.names_source);
        // SAFETY: `prepare` made every header point at writable buffers of the lengths it states; they live in `batch`,
        // which is borrowed for the whole call.
        let received = unsafe {
            libc::recvmmsg(
                self.raw_fd(),
                batch.headers.as_mut_ptr(),
                batch.headers.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        let received = match usize::try_from(received) {
            Ok(count) => {
                batch.stale = count;
                count
            }
            Err(_) => {
                let error = io::Error::last_os_error();
                return match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                    _ => Err(error),
                };
            }
        };
        self.counters.receive_calls += 1;
        for i in 0..received {
            let header = &batch.headers[i];
            let length = header.msg_len as usize;
            if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
                self.counters.truncated += 1;
                continue;
            }
            let found = control::parse(&header.msg_hdr);
            let Some(from) = self.peer.or_else(|| batch.addresses[i].to_socket_addr()) else {
                self.counters.truncated += 1;
                continue;
            };
            let buffer = &mut batch.buffers[i];
            // SAFETY: the kernel initialised the first `msg_len` octets of the buffer, and MSG_TRUNC is not set, so
            // `length` is at most its capacity.
            unsafe { buffer.set_len(length) };
            let segment_bytes = found.segment_bytes.filter(|bytes| *bytes > 0).unwrap_or(length.max(1));
            self.counters.datagrams_in += length.div_ceil(segment_bytes).max(1) as u64;
            self.counters.bytes_in += length as u64;
            on_message(Received {
                from,
                to: found.local_ip,
                ecn: found.ecn,
                segment_bytes,
                // The buffer keeps the rest of its memory and can take the whole back once this part is dropped.
                payload: buffer.split(),
            });
        }
        Ok(received)
    }
}
