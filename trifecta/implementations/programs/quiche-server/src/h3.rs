//! HTTP/3 on one connection: quiche's h3.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use quiche::h3::{self, Event, Header, NameValue};
use quiche::{Connection, Shutdown};

use crate::site::{Answer, Content, PIECE, Site, takes_content};

const INTERNAL_ERROR: u64 = 0x0102; // H3_INTERNAL_ERROR (RFC 9114, section 8.1)

/// The requests of a connection.
pub struct Http3 {
    http: h3::Connection,
    /// Method and path of those whose content still comes.
    coming: HashMap<u64, (String, String)>,
    going: HashMap<u64, Going>,
}

/// A response that is not all in quiche's hands.
struct Going {
    head: Option<Vec<Header>>,
    content: Content,
    sent: u64,
}

/// What connections share: what they answer with, and room.
pub struct Shared {
    site: Arc<Site>,
    date: Date,
    piece: Vec<u8>,
}

impl Shared {
    pub fn new(site: Arc<Site>) -> Self {
        Self { site, date: Date { text: String::new(), of: None }, piece: vec![0; PIECE] }
    }
}

impl Http3 {
    /// On a connection whose handshake is over.
    pub fn new(quic: &mut Connection, config: &h3::Config) -> h3::Result<Self> {
        let http = h3::Connection::with_transport(quic, config)?;
        Ok(Self { http, coming: HashMap::new(), going: HashMap::new() })
    }

    /// Reads what has come and answers it. An error of the connection is quiche's to tell the peer.
    pub fn read(&mut self, quic: &mut Connection, shared: &mut Shared) {
        while let Ok((stream, event)) = self.http.poll(quic) {
            match event {
                Event::Headers { list, more_frames } => {
                    let (method, path) = (text(&list, b":method"), text(&list, b":path"));
                    if method.is_empty() {
                        continue; // trailers
                    }
                    if more_frames && takes_content(&method) {
                        self.coming.insert(stream, (method, path));
                    } else {
                        self.answer(quic, shared, stream, &method, &path);
                    }
                }
                Event::Data => while self.http.recv_body(quic, stream, &mut shared.piece).is_ok() {},
                Event::Finished => {
                    if let Some((method, path)) = self.coming.remove(&stream) {
                        self.answer(quic, shared, stream, &method, &path);
                    }
                }
                Event::Reset(_) => {
                    self.coming.remove(&stream);
                    if self.going.remove(&stream).is_some() {
                        let _ = quic.stream_shutdown(stream, Shutdown::Write, INTERNAL_ERROR); // or it is over
                    }
                }
                Event::PriorityUpdate | Event::GoAway => {}
            }
        }
    }

    /// Hands quiche as much as it takes. Whether that was anything.
    pub fn write(&mut self, quic: &mut Connection, shared: &mut Shared) -> bool {
        if self.going.is_empty() {
            return false;
        }
        let mut wrote = false;
        for stream in quic.writable() {
            wrote |= self.send(quic, shared, stream);
        }
        wrote
    }

    fn answer(&mut self, quic: &mut Connection, shared: &mut Shared, stream: u64, method: &str, path: &str) {
        let Answer { status, fields, content } = shared.site.answer(method, path);
        let mut head = Vec::with_capacity(fields.len() + 2);
        head.push(Header::new(b":status", status.to_string().as_bytes()));
        head.extend(fields.iter().map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes())));
        head.push(Header::new(b"date", shared.date.now().as_bytes())); // hyper sends one, too
        self.going.insert(stream, Going { head: Some(head), content, sent: 0 });
        self.send(quic, shared, stream);
    }

    /// Whether anything of the response could be sent.
    fn send(&mut self, quic: &mut Connection, shared: &mut Shared, stream: u64) -> bool {
        let Some(going) = self.going.get_mut(&stream) else { return false };
        let (head, sent) = (going.head.is_some(), going.sent);
        let over = going.send(quic, &mut self.http, &mut shared.piece, stream);
        let wrote = head != going.head.is_some() || sent != going.sent;
        if over {
            self.going.remove(&stream);
        }
        wrote
    }
}

impl Going {
    /// Whether it is over: all is sent, or nobody wants it.
    fn send(&mut self, quic: &mut Connection, http: &mut h3::Connection, piece: &mut [u8], stream: u64) -> bool {
        let size = self.content.size();
        if let Some(head) = &self.head {
            match http.send_response(quic, stream, head, size == 0) {
                Ok(()) => self.head = None,
                Err(h3::Error::StreamBlocked | h3::Error::Done) => return false,
                Err(_) => return true,
            }
        }
        while self.sent < size {
            let room = match quic.stream_capacity(stream) {
                Ok(0) => return false,
                Ok(room) => room.min(piece.len()),
                Err(_) => return true,
            };
            let Ok(read) = self.content.read(&mut piece[..room], self.sent) else {
                let _ = quic.stream_shutdown(stream, Shutdown::Write, INTERNAL_ERROR);
                return true;
            };
            // What does not fit besides the frame's own head is read again.
            match http.send_body(quic, stream, &piece[..read], self.sent + read as u64 == size) {
                Ok(taken) => self.sent += taken as u64,
                Err(h3::Error::Done) => return false,
                Err(_) => return true,
            }
        }
        true
    }
}

/// The field `date`, worked out once a second.
struct Date {
    text: String,
    of: Option<Instant>,
}

impl Date {
    fn now(&mut self) -> &str {
        let now = Instant::now();
        if self.of.is_none_or(|of| now.duration_since(of).as_secs() > 0) {
            self.text = httpdate::fmt_http_date(SystemTime::now());
            self.of = Some(now);
        }
        &self.text
    }
}

fn text(fields: &[Header], name: &[u8]) -> String {
    let found = fields.iter().find(|field| field.name() == name);
    found.map(|field| String::from_utf8_lossy(field.value()).into_owned()).unwrap_or_default()
}
