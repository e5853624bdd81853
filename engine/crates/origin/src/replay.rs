//! A page archive: every response of a page, read once, held in memory and answered as it was recorded (docs/architecture.md 1.2).

use crate::answer::{Fields, Head, Plan, Request, origin_form};
use crate::content::Content;
use crate::folder::Folder;
use bytes::Bytes;
use serde::Deserialize;
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The content of all responses together may take that many octets: it is held in memory.
pub const MAX_ARCHIVE_OCTETS: u64 = 2 << 30;
/// page.json may have that many octets.
const MAX_DOCUMENT_OCTETS: u64 = 256 << 20;
/// A path that every host answers: for readiness, and to open connections without asking for a part of the page.
pub const WELL_KNOWN: &[u8] = b"/.well-known/trifecta";
/// In the answer to a request that the archive has no response to.
pub const MISSING_FIELD: &str = "x-trifecta-replay";

const MISSING_TEXT: &[u8] = b"The page archive has no response to this request.\n";
const WELL_KNOWN_TEXT: &[u8] = b"<!doctype html><title>Trifecta</title>\n";

/// The responses of a page.
pub struct Archive {
    responses: Vec<Recorded>,
    /// By `METHOD host target`.
    index: HashMap<Vec<u8>, u32>,
}

struct Recorded {
    status: u16,
    fields: Vec<(String, Vec<u8>)>,
    content: Bytes,
    /// The server that was recorded takes range requests.
    ranges: bool,
}

#[derive(Deserialize)]
struct Document {
    format: u32,
    responses: Vec<Response>,
}

#[derive(Deserialize)]
struct Response {
    method: String,
    url: String,
    status: u16,
    headers: Vec<(String, String)>,
    body: Option<String>,
    bytes: u64,
}

impl Archive {
    /// Reads the archive in a folder.
    ///
    /// # Errors
    /// A sentence that names the file and the field.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let files = Folder::new(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let document = folder.join("page.json");
        let wrong = |what: String| format!("{}: {what}", document.display());
        let text = read_whole(&files, "page.json", MAX_DOCUMENT_OCTETS).map_err(|error| wrong(error.to_string()))?;
        let page: Document = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if page.format != 1 {
            return Err(wrong(format!("format: is {}; this version reads 1", page.format)));
        }
        let mut archive = Self { responses: Vec::with_capacity(page.responses.len()), index: HashMap::new() };
        let mut bodies = Bodies { files, held: HashMap::new(), octets: 0 };
        for (place, response) in page.responses.into_iter().enumerate() {
            let at = |(field, what): (&str, String)| wrong(format!("responses[{place}].{field}: {what}"));
            let key = key_of(&response).map_err(|what| at(("url", what)))?;
            let recorded = recorded(response, &mut bodies).map_err(at)?;
            if archive.index.insert(key, place as u32).is_some() {
                return Err(at(("url", "answers the same request as another response".into())));
            }
            archive.responses.push(recorded);
        }
        Ok(archive)
    }

    /// The answer to a request; `key` is scratch.
    pub(crate) fn plan(&self, request: &Request<'_>, key: &mut Vec<u8>) -> Plan {
        let is_head = request.method == b"HEAD";
        let target = origin_form(request.target);
        let number = match self.find(request.method, request.host, target, key) {
            // RFC 9110 9.3.2: as GET, without content.
            None if is_head => self.find(b"GET", request.host, target, key),
            found => found,
        };
        let mut plan = match number {
            Some(number) => self.recorded(number, request),
            None if target == WELL_KNOWN => {
                let head = Head::new(200, Some("text/html"), Some(WELL_KNOWN_TEXT.len() as u64));
                Plan::new(head, Content::Memory(Bytes::from_static(WELL_KNOWN_TEXT)))
            }
            None => {
                let head = Head::new(404, Some("text/plain"), Some(MISSING_TEXT.len() as u64));
                Plan::new(Head { fields: Fields::Missing, ..head }, Content::Memory(Bytes::from_static(MISSING_TEXT)))
            }
        };
        if is_head {
            plan.content = Content::Empty;
        }
        plan
    }

    fn find(&self, method: &[u8], host: &[u8], target: &[u8], key: &mut Vec<u8>) -> Option<u32> {
        key.clear();
        for part in [method, b" ", without_port(host)] {
            key.extend_from_slice(part);
        }
        // RFC 9110 4.2.3: hosts are the same in any case; methods and paths are not.
        key[method.len()..].make_ascii_lowercase();
        key.push(b' ');
        key.extend_from_slice(target);
        self.index.get(key.as_slice()).copied()
    }

    fn recorded(&self, number: u32, request: &Request<'_>) -> Plan {
        let recorded = &self.responses[number as usize];
        let content = match recorded.content.len() {
            0 => Content::Empty,
            _ => Content::Memory(recorded.content.clone()),
        };
        // RFC 9110 8.6: a 204 must not have the field; in a 304 it would be the length of what is not there.
        let content_length = (!matches!(recorded.status, 204 | 304)).then(|| content.octets());
        let head = Head::new(recorded.status, None, content_length);
        let plan = Plan::new(Head { fields: Fields::Recorded(number), ..head }, content);
        let applies = recorded.ranges && recorded.status == 200 && request.method == b"GET";
        if applies && request.if_range.is_none_or(|validator| recorded.is_valid(validator)) {
            return plan.ranged(request.range);
        }
        plan
    }

    /// The fields of a response, in order, without its length.
    pub(crate) fn fields(&self, number: u32) -> &[(String, Vec<u8>)] {
        &self.responses[number as usize].fields
    }
}

impl Recorded {
    /// RFC 9110 13.1.5: an If-Range names the strong entity tag, or the exact time of the last change.
    fn is_valid(&self, validator: &[u8]) -> bool {
        self.fields.iter().any(|(name, value)| {
            value == validator && (name == "last-modified" || name == "etag" && !value.starts_with(b"W/"))
        })
    }
}

/// The port says nothing: an archive has one.
fn without_port(host: &[u8]) -> &[u8] {
    match host.iter().rposition(|&octet| octet == b':') {
        Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => &host[..colon],
        _ => host,
    }
}

fn key_of(response: &Response) -> Result<Vec<u8>, String> {
    let url = &response.url;
    let rest = url.strip_prefix("https://").ok_or_else(|| format!("{url:?} is not https"))?;
    let slash = rest.find('/').ok_or_else(|| format!("{url:?} has no path"))?;
    let (host, target) = rest.split_at(slash);
    if host.is_empty() || host.contains([':', '@']) || host != host.to_ascii_lowercase() {
        return Err(format!("{url:?} needs a lower case host without user and port"));
    }
    Ok(format!("{} {host} {target}", response.method).into_bytes())
}

fn recorded(response: Response, bodies: &mut Bodies) -> Result<Recorded, (&'static str, String)> {
    if !(200..=599).contains(&response.status) {
        return Err(("status", format!("is {}; a final status is needed", response.status)));
    }
    let mut fields = Vec::with_capacity(response.headers.len());
    for (name, value) in response.headers {
        fields.push(field(name, &value).map_err(|what| ("headers", what))?);
    }
    let content = match &response.body {
        Some(_) if matches!(response.status, 204 | 304) => {
            return Err(("body", format!("a {} has no content; use null", response.status)));
        }
        Some(digest) => bodies.get(digest).map_err(|what| ("body", what))?,
        None => Bytes::new(),
    };
    if content.len() as u64 != response.bytes {
        return Err(("bytes", format!("is {}, and the body has {} octets", response.bytes, content.len())));
    }
    let ranges = fields.iter().any(|(name, value)| name == "accept-ranges" && value == b"bytes");
    Ok(Recorded { status: response.status, fields, content, ranges })
}

/// Characters are octets (ISO 8859-1). What could end a field early is refused.
fn field(name: String, value: &str) -> Result<(String, Vec<u8>), String> {
    // RFC 9110 5.6.2; below, what is of one connection (7.6.1).
    let token = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&octet);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(format!("{name:?} is no field name in lower case"));
    }
    if matches!(name.as_str(), "content-length" | "transfer-encoding" | "connection" | "keep-alive" | "upgrade") {
        return Err(format!("{name:?} is the server's to say"));
    }
    let octets: Option<Vec<u8>> = value.chars().map(|each| u8::try_from(u32::from(each)).ok()).collect();
    match octets {
        Some(octets) if !octets.iter().any(|octet| matches!(octet, 0 | b'\r' | b'\n')) => Ok((name, octets)),
        _ => Err(format!("{name:?} has a value with characters that no field can have")),
    }
}

/// Bodies by their digest: the same octets are held once.
struct Bodies {
    files: Folder,
    held: HashMap<String, Bytes>,
    octets: u64,
}

impl Bodies {
    fn get(&mut self, digest: &str) -> Result<Bytes, String> {
        if digest.len() != 64 || !digest.bytes().all(|octet| octet.is_ascii_hexdigit()) {
            return Err(format!("{digest:?} is no SHA-256 of 64 digits"));
        }
        if let Some(bytes) = self.held.get(digest) {
            return Ok(bytes.clone());
        }
        let name = format!("bodies/{digest}");
        let left = MAX_ARCHIVE_OCTETS - self.octets;
        let bytes = Bytes::from(read_whole(&self.files, &name, left).map_err(|error| format!("{name}: {error}"))?);
        self.octets += bytes.len() as u64;
        self.held.insert(digest.to_owned(), bytes.clone());
        Ok(bytes)
    }
}

/// A regular file beneath the folder.
fn read_whole(files: &Folder, name: &str, limit: u64) -> io::Result<Vec<u8>> {
    let file: File = files.open_beneath(&CString::new(name)?)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("is no regular file"));
    }
    if metadata.len() > limit {
        return Err(io::Error::other(format!("{} octets are more than can be held in memory", metadata.len())));
    }
    let mut octets = Vec::with_capacity(metadata.len() as usize);
    file.take(limit).read_to_end(&mut octets)?;
    Ok(octets)
}

#[cfg(test)]
mod tests;
