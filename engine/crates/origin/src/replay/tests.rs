//! Reading archives, good and bad, and finding responses.

use super::*;
use std::path::PathBuf;

/// A folder with an archive, removed at the end.
struct Folders(PathBuf);

impl Folders {
    fn new(name: &str, document: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("trifecta-replay-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("bodies")).unwrap();
        std::fs::write(folder.join("page.json"), document).unwrap();
        std::fs::write(folder.join("bodies").join(digest()), b"0123456789").unwrap();
        Self(folder)
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn digest() -> String {
    "a1".repeat(32)
}

const HEADERS: &str = r#"[["etag","\"x\""],["accept-ranges","bytes"],["x-name","caf\u00e9"]]"#;

fn document(changes: &[(&str, &str)]) -> String {
    let mut text = format!(
        r#"{{"format": 1, "name": "x", "responses": [
            {{"method": "GET", "url": "https://a.lab/A?q=1", "status": 200, "headers": {HEADERS}, "body": "{}", "bytes": 10, "kind": "other"}},
            {{"method": "POST", "url": "https://a.lab/A?q=1", "status": 204, "headers": [], "body": null, "bytes": 0, "kind": "other"}},
            {{"method": "GET", "url": "https://b.lab/", "status": 302, "headers": [["location","/x"]], "body": null, "bytes": 0, "kind": "document"}}
        ]}}"#,
        digest()
    );
    for (old, new) in changes {
        assert!(text.contains(old), "{old}");
        text = text.replacen(old, new, 1);
    }
    text
}

fn request<'a>(method: &'a str, host: &'a str, target: &'a str) -> Request<'a> {
    Request { host: host.as_bytes(), ..Request::new(method.as_bytes(), target.as_bytes()) }
}

#[test]
fn requests_are_matched_by_method_host_and_target() {
    let folder = Folders::new("match", &document(&[]));
    let archive = Archive::read(&folder.0).unwrap();
    let mut key = Vec::new();
    let mut answer = |method, host, target| {
        let plan = archive.plan(&request(method, host, target), &mut key);
        (plan.head.status, plan.head.content_length, plan.content.octets())
    };
    assert_eq!(answer("GET", "a.lab", "/A?q=1"), (200, Some(10), 10));
    assert_eq!(answer("GET", "A.LAB:443", "/A?q=1"), (200, Some(10), 10));
    assert_eq!(answer("GET", "a.lab", "https://a.lab/A?q=1"), (200, Some(10), 10));
    assert_eq!(answer("HEAD", "a.lab", "/A?q=1"), (200, Some(10), 0));
    assert_eq!(answer("POST", "a.lab", "/A?q=1"), (204, None, 0));
    assert_eq!(answer("GET", "b.lab", "/"), (302, Some(0), 0));
    assert_eq!(answer("GET", "any.lab", "/.well-known/trifecta").0, 200);
    let missing = MISSING_TEXT.len() as u64;
    for (method, host, target) in [
        ("GET", "a.lab", "/a?q=1"),
        ("GET", "a.lab", "/A"),
        ("GET", "a.lab", "/A?q=1&r"),
        ("get", "a.lab", "/A?q=1"),
        ("GET", "b.lab", "/A?q=1"),
        ("GET", "", "/"),
        ("PUT", "a.lab", "/A?q=1"),
        ("GET", "a.lab", "/bytes/10"),
    ] {
        assert_eq!(answer(method, host, target), (404, Some(missing), missing), "{method} {host} {target}");
    }
    assert_eq!(answer("HEAD", "a.lab", "/nothing"), (404, Some(missing), 0));
}

#[test]
fn ranges_are_served_where_the_recorded_server_did() {
    let folder = Folders::new("range", &document(&[]));
    let archive = Archive::read(&folder.0).unwrap();
    let mut key = Vec::new();
    let mut answer = |range: &'static str, if_range: Option<&'static str>| {
        let asked = request("GET", "a.lab", "/A?q=1");
        let asked = Request { range: Some(range.as_bytes()), if_range: if_range.map(str::as_bytes), ..asked };
        let plan = archive.plan(&asked, &mut key);
        let range = plan.head.range.map(|range| range.to_string()).unwrap_or_default();
        (plan.head.status, range, plan.content.bytes(0, 100).unwrap())
    };
    assert_eq!(answer("bytes=2-4", None), (206, "bytes 2-4/10".into(), "234".into()));
    assert_eq!(answer("bytes=2-4", Some("\"x\"")), (206, "bytes 2-4/10".into(), "234".into()));
    assert_eq!(answer("bytes=2-4", Some("\"y\"")), (200, String::new(), "0123456789".into()));
    assert_eq!(answer("bytes=10-", None), (416, "bytes */10".into(), "".into()));
    let without = Folders::new("whole", &document(&[(r#"["accept-ranges","bytes"],"#, "")]));
    let archive = Archive::read(&without.0).unwrap();
    let asked = Request { range: Some(b"bytes=2-4"), ..request("GET", "a.lab", "/A?q=1") };
    assert_eq!(archive.plan(&asked, &mut key).head.status, 200);
}

#[test]
fn fields_are_octets_in_order() {
    let folder = Folders::new("fields", &document(&[]));
    let archive = Archive::read(&folder.0).unwrap();
    let names: Vec<_> = archive.fields(0).iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["etag", "accept-ranges", "x-name"]);
    assert_eq!(archive.fields(0)[2].1, b"caf\xe9");
}

#[test]
fn a_bad_archive_is_named_with_file_and_field() {
    let digest = format!("\"{}\"", digest());
    for (old, new, expected) in [
        ("\"format\": 1", "\"format\": 2", "page.json: format: is 2"),
        ("\"status\": 200,", "", "page.json: missing field `status`"),
        ("\"status\": 200", "\"status\": 100", "page.json: responses[0].status: is 100"),
        ("\"bytes\": 10", "\"bytes\": 11", "page.json: responses[0].bytes: is 11"),
        (digest.as_str(), "\"../../etc/passwd\"", "responses[0].body: \"../../etc/passwd\" is no SHA-256"),
        (digest.as_str(), "null", "responses[0].bytes: is 10, and the body has 0"),
        ("\"POST\"", "\"GET\"", "responses[1].url: answers the same request"),
        ("https://b.lab/", "http://b.lab/", "responses[2].url: \"http://b.lab/\" is not https"),
        ("https://b.lab/", "https://b.lab:444/", "responses[2].url: \"https://b.lab:444/\" needs"),
        ("\"location\",\"/x\"", "\"Location\",\"/x\"", "responses[2].headers: \"Location\" is no field name"),
        ("\"/x\"", "\"/x\\r\\nset-cookie: a\"", "responses[2].headers: \"location\" has a value"),
        ("\"/x\"", "\"\\u20ac\"", "responses[2].headers: \"location\" has a value"),
        ("\"location\"", "\"content-length\"", "responses[2].headers: \"content-length\" is the server's"),
        (
            "\"status\": 302, \"headers\": [[\"location\",\"/x\"]], \"body\": null, \"bytes\": 0",
            &format!("\"status\": 304, \"headers\": [], \"body\": {digest}, \"bytes\": 10"),
            "responses[2].body: a 304 has no content",
        ),
        ("]}", "", "page.json: EOF"),
    ] {
        let folder = Folders::new("bad", &document(&[(old, new)]));
        let error = Archive::read(&folder.0).err().unwrap();
        assert!(error.contains(expected), "{error}\nexpected {expected}");
        assert!(error.contains(&folder.0.display().to_string()), "{error}");
    }
    assert!(Archive::read(Path::new("/no/such/folder")).is_err());
}

#[test]
fn no_body_leads_out_of_the_folder() {
    let folder = Folders::new("link", &document(&[]));
    let body = folder.0.join("bodies").join(digest());
    std::fs::remove_file(&body).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &body).unwrap();
    let error = Archive::read(&folder.0).err().unwrap();
    assert!(error.contains("responses[0].body: bodies/"), "{error}");
    std::fs::remove_file(&body).unwrap();
    assert!(Archive::read(&folder.0).err().unwrap().contains("No such file"));
}
