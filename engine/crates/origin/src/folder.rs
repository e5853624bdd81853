//! Serves a folder read-only. The kernel itself keeps paths inside: openat2(2) with RESOLVE_BENEATH.

use crate::content::{Content, OCTET_STREAM};
use bytes::Bytes;
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use trifecta_wire::clock::now_ns;

/// Files up to this are held in memory.
const MEMORY_FILE_OCTETS: u64 = 1 << 20;
/// What the files held in memory may take together; beyond it the cache begins anew.
const CACHE_OCTETS: u64 = 64 << 20;
/// Paths remembered at once.
const CACHE_PATHS: usize = 4096;
/// How long a file is served without looking whether it changed.
const TRUST_NS: u64 = 1_000_000_000;

/// A folder and what was read from it lately.
pub struct Folder {
    root: File,
    cache: HashMap<Vec<u8>, Cached>,
    cached_octets: u64,
}

struct Cached {
    content_type: &'static str,
    content: Content,
    looked_ns: u64,
    identity: Identity,
}

/// Changes when a file is replaced or written to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    octets: u64,
    modified: (i64, i64),
}

impl Folder {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// When it does not exist, is no folder, or this kernel has no openat2(2) (Linux 5.6).
    pub fn new(path: &Path) -> io::Result<Self> {
        let root = File::options().read(true).custom_flags(libc::O_DIRECTORY | libc::O_CLOEXEC).open(path)?;
        let folder = Self { root, cache: HashMap::new(), cached_octets: 0 };
        folder.open_beneath(c".")?;
        Ok(folder)
    }

    /// Type and content of the file at a URL path (with its leading slash, percent-encoded, without a query); `None` when
    /// there is no such regular file beneath the folder.
    pub fn open(&mut self, url_path: &[u8]) -> Option<(&'static str, Content)> {
        let now = now_ns();
        if let Some(cached) = self.cache.get(url_path)
            && now.saturating_sub(cached.looked_ns) < TRUST_NS
        {
            return Some((cached.content_type, cached.content.clone()));
        }
        let path = file_path(url_path)?;
        let file = self.open_beneath(&path).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() {
            return None;
        }
        let identity = Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
            octets: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        };
        if let Some(cached) = self.cache.get_mut(url_path)
            && cached.identity == identity
        {
            cached.looked_ns = now;
            return Some((cached.content_type, cached.content.clone()));
        }
        let content = read(file, identity.octets).ok()?;
        let content_type = content_type(path.as_bytes());
        let cached = Cached { content_type, content: content.clone(), looked_ns: now, identity };
        self.remember(url_path, cached);
        Some((content_type, content))
    }

    /// The same, read anew and not held.
    pub fn open_fresh(&self, url_path: &[u8]) -> Option<(&'static str, Content)> {
        let path = file_path(url_path)?;
        let file = self.open_beneath(&path).ok()?;
        let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((content_type(path.as_bytes()), read(file, metadata.len()).ok()?))
    }

    fn remember(&mut self, url_path: &[u8], cached: Cached) {
        self.cached_octets += cached.identity.octets.min(MEMORY_FILE_OCTETS);
        if self.cached_octets > CACHE_OCTETS || self.cache.len() >= CACHE_PATHS {
            self.cached_octets = cached.identity.octets.min(MEMORY_FILE_OCTETS);
            self.cache.clear();
        }
        self.cache.insert(url_path.to_vec(), cached);
    }

    /// Opens for reading what `path` names beneath the folder: no `..` above it, no absolute symbolic links, no links of
    /// /proc. O_NONBLOCK, so that a FIFO does not hold up the event loop.
    pub(crate) fn open_beneath(&self, path: &std::ffi::CStr) -> io::Result<File> {
        // SAFETY: all-zero octets are a valid open_how.
        let mut how: libc::open_how = unsafe { std::mem::zeroed() };
        how.flags = (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY) as u64;
        how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_MAGICLINKS;
        // SAFETY: `path` ends with NUL and `how` has the size that is passed; both live over the call.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_openat2,
                self.root.as_raw_fd(),
                path.as_ptr(),
                &raw const how,
                size_of::<libc::open_how>(),
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        Ok(unsafe { File::from_raw_fd(fd as libc::c_int) })
    }
}

fn read(file: File, octets: u64) -> io::Result<Content> {
    if octets > MEMORY_FILE_OCTETS {
        return Ok(Content::File { file: Arc::new(file), start: 0, octets });
    }
    let mut memory = Vec::with_capacity(octets as usize);
    file.take(MEMORY_FILE_OCTETS).read_to_end(&mut memory)?;
    Ok(Content::Memory(Bytes::from(memory)))
}

/// The path beneath the folder: percent-decoded (RFC 3986 2.1), without its leading slash, a folder as its index.html.
fn file_path(url_path: &[u8]) -> Option<CString> {
    let mut rest = url_path.strip_prefix(b"/")?;
    let mut path = Vec::with_capacity(rest.len() + 10);
    while let Some((&octet, after)) = rest.split_first() {
        rest = after;
        if octet == b'%' {
            let (digits, after) = rest.split_first_chunk::<2>()?;
            let digits = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|d| d.is_ascii_hexdigit()))?;
            path.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after;
        } else {
            path.push(octet);
        }
    }
    if path.is_empty() || path.ends_with(b"/") {
        path.extend_from_slice(b"index.html");
    }
    if path.starts_with(b"/") {
        return None;
    }
    // An encoded NUL ends here.
    CString::new(path).ok()
}

fn content_type(path: &[u8]) -> &'static str {
    let name = path.rsplit(|&octet| octet == b'/').next().unwrap_or(path);
    let Some(dot) = name.iter().rposition(|&octet| octet == b'.') else { return OCTET_STREAM };
    match name[dot + 1..].to_ascii_lowercase().as_slice() {
        b"html" | b"htm" => "text/html; charset=utf-8",
        b"css" => "text/css; charset=utf-8",
        b"js" | b"mjs" => "text/javascript; charset=utf-8",
        b"json" => "application/json",
        b"txt" => "text/plain; charset=utf-8",
        b"xml" => "application/xml",
        b"svg" => "image/svg+xml",
        b"png" => "image/png",
        b"jpg" | b"jpeg" => "image/jpeg",
        b"gif" => "image/gif",
        b"webp" => "image/webp",
        b"avif" => "image/avif",
        b"ico" => "image/x-icon",
        b"woff" => "font/woff",
        b"woff2" => "font/woff2",
        b"wasm" => "application/wasm",
        b"mp4" | b"m4s" => "video/mp4",
        b"webm" => "video/webm",
        b"ts" => "video/mp2t",
        b"m3u8" => "application/vnd.apple.mpegurl",
        b"vtt" => "text/vtt; charset=utf-8",
        b"mpd" => "application/dash+xml",
        b"mp3" => "audio/mpeg",
        b"aac" => "audio/aac",
        b"pdf" => "application/pdf",
        _ => OCTET_STREAM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    /// A folder beside a secret, removed at the end.
    struct Site(PathBuf);

    impl Site {
        fn new(name: &str) -> Self {
            let base = std::env::temp_dir().join(format!("trifecta-folder-{name}-{}", std::process::id()));
            std::fs::create_dir_all(base.join("site/sub")).unwrap();
            std::fs::write(base.join("secret.txt"), "secret").unwrap();
            std::fs::write(base.join("site/index.html"), "<p>").unwrap();
            std::fs::write(base.join("site/sub/a b.css"), "p{}").unwrap();
            Self(base)
        }

        fn folder(&self) -> Folder {
            Folder::new(&self.0.join("site")).unwrap()
        }
    }

    impl Drop for Site {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn text(folder: &mut Folder, path: &str) -> Option<(&'static str, String)> {
        let (content_type, content) = folder.open(path.as_bytes())?;
        let octets = content.bytes(0, 1 << 20).unwrap();
        Some((content_type, String::from_utf8(octets.to_vec()).unwrap()))
    }

    #[test]
    fn files_types_and_indexes() {
        let site = Site::new("types");
        let mut folder = site.folder();
        assert_eq!(text(&mut folder, "/"), Some(("text/html; charset=utf-8", "<p>".into())));
        assert_eq!(text(&mut folder, "/index.html").unwrap().1, "<p>");
        assert_eq!(text(&mut folder, "/sub/a%20b.css"), Some(("text/css; charset=utf-8", "p{}".into())));
        assert_eq!(text(&mut folder, "/sub"), None, "a folder");
        assert_eq!(text(&mut folder, "/sub/"), None, "no index");
        assert_eq!(text(&mut folder, "/missing"), None);
    }

    #[test]
    fn no_path_leaves_the_folder() {
        let site = Site::new("escape");
        symlink("../secret.txt", site.0.join("site/out")).unwrap();
        symlink(site.0.join("secret.txt"), site.0.join("site/absolute")).unwrap();
        symlink("/", site.0.join("site/top")).unwrap();
        symlink("index.html", site.0.join("site/inside")).unwrap();
        let mut folder = site.folder();
        let absolute = format!("/{}", site.0.join("secret.txt").display());
        for path in [
            "/../secret.txt",
            "/sub/../../secret.txt",
            "/%2e%2e/secret.txt",
            "/%2e%2e%2fsecret.txt",
            "/..%2fsecret.txt",
            "/sub/..%2f..%2fsecret.txt",
            "/out",
            "/absolute",
            "/top/etc/passwd",
            "//etc/passwd",
            "/%2fetc/passwd",
            "/index.html%00",
            "/%zz",
            "/%+1",
            "/%",
            "secret.txt",
            "",
            &absolute,
        ] {
            assert_eq!(text(&mut folder, path), None, "{path}");
        }
        assert_eq!(text(&mut folder, "/inside").unwrap().1, "<p>", "a link inside is a file");
        assert_eq!(text(&mut folder, "/sub/../index.html").unwrap().1, "<p>", "inside all the way");
    }

    #[test]
    fn changes_are_seen_after_the_time_of_trust() {
        let site = Site::new("change");
        let mut folder = site.folder();
        assert_eq!(text(&mut folder, "/index.html").unwrap().1, "<p>");
        std::fs::write(site.0.join("site/index.html"), "longer").unwrap();
        for cached in folder.cache.values_mut() {
            cached.looked_ns = 0;
        }
        assert_eq!(text(&mut folder, "/index.html").unwrap().1, "longer");
    }

    #[test]
    fn the_cache_is_bounded() {
        let site = Site::new("bound");
        for number in 0..70 {
            std::fs::write(site.0.join(format!("site/{number}.bin")), vec![0; 1 << 20]).unwrap();
        }
        let mut folder = site.folder();
        for number in 0..70 {
            assert!(folder.open(format!("/{number}.bin").as_bytes()).is_some());
            let held: u64 = folder.cache.values().map(|cached| cached.content.octets()).sum();
            assert!(held <= CACHE_OCTETS);
        }
    }
}
