//! What is answered to a request, whichever protocol brought it: files of a folder, which no path leaves.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

/// Octets of a file that are read at a time.
pub const PIECE: usize = 64 << 10;

/// A folder that is served.
pub struct Site(OwnedFd);

/// A response.
pub struct Answer {
    pub status: u16,
    pub fields: Vec<(&'static str, String)>,
    pub content: Content,
}

/// What a response carries.
pub enum Content {
    Nothing,
    Text(&'static str),
    File(File, u64),
}

impl Content {
    /// Its octets.
    pub fn size(&self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Text(text) => text.len() as u64,
            Self::File(_, size) => *size,
        }
    }

    /// Octets from `offset` on, as many as there are and fit. An error where a file has become shorter.
    pub fn read(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = match self {
            Self::Nothing => 0,
            Self::Text(text) => {
                let rest = &text.as_bytes()[(offset as usize).min(text.len())..];
                let fits = rest.len().min(into.len());
                into[..fits].copy_from_slice(&rest[..fits]);
                fits
            }
            Self::File(file, size) => {
                let most = (size - offset).min(into.len() as u64) as usize;
                file.read_at(&mut into[..most], offset)?
            }
        };
        if read == 0 && offset < self.size() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
    }
}

/// Whether the content of such a request is read before it is answered.
pub fn takes_content(method: &str) -> bool {
    matches!(method, "POST" | "PUT" | "PATCH" | "DELETE")
}

impl Site {
    pub fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self(open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// GET and HEAD: the file. POST, PUT and PATCH: the file, or nothing where there is none. DELETE deletes nothing.
    pub fn answer(&self, method: &str, target: &str) -> Answer {
        let asks = matches!(method, "GET" | "HEAD");
        if !asks && !takes_content(method) {
            let mut refused = text(405, "method not allowed\n");
            refused.fields.push(("allow", "GET, HEAD, POST, PUT, PATCH, DELETE".into()));
            return refused;
        }
        if method == "DELETE" {
            return Answer { status: 204, fields: Vec::new(), content: Content::Nothing };
        }
        let Some(path) = path_of(target) else { return text(400, "the path is not one\n") };
        let mut answer = match self.open(&path) {
            Ok((file, size)) => octets(Content::File(file, size)),
            Err(_) if asks => text(404, "not found\n"),
            Err(_) => octets(Content::Nothing),
        };
        if method == "HEAD" {
            answer.content = Content::Nothing; // its fields stay
        }
        answer
    }

    fn open(&self, path: &[u8]) -> io::Result<(File, u64)> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK; // a pipe is not waited for
        let file = File::from(openat2(&self.0, path, flags, Mode::empty(), ResolveFlags::BENEATH)?);
        let told = file.metadata()?;
        if told.is_file() { Ok((file, told.len())) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

fn octets(content: Content) -> Answer {
    with_type(200, "application/octet-stream", content)
}

fn text(status: u16, text: &'static str) -> Answer {
    with_type(status, "text/plain; charset=utf-8", Content::Text(text))
}

fn with_type(status: u16, kind: &str, content: Content) -> Answer {
    let fields = vec![("content-type", kind.to_owned()), ("content-length", content.size().to_string())];
    Answer { status, fields, content }
}

/// The path below the folder that a request target means: octets decoded, `.` and `..` resolved, without a query.
fn path_of(target: &str) -> Option<Vec<u8>> {
    let mut octets = target.split('?').next()?.bytes();
    let mut decoded = Vec::with_capacity(target.len());
    while let Some(octet) = octets.next() {
        decoded.push(match octet {
            b'%' => digit(octets.next()?)? << 4 | digit(octets.next()?)?,
            plain => plain,
        });
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in decoded.split(|octet| *octet == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    Some(if parts.is_empty() { b".".to_vec() } else { parts.join(&b'/') })
}

fn digit(octet: u8) -> Option<u8> {
    (octet as char).to_digit(16).map(|value| value as u8)
}
