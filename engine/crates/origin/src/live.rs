//! Files that change while they are served, as those of a live stream: read anew for every request, never held.

use crate::answer::{Fields, Head, Plan, Request};
use crate::content::Content;
use crate::folder::Folder;

/// Every path beneath it is a file of the folder.
const PREFIX: &[u8] = b"/live";
/// Players of any origin may read the files, and no cache may keep them.
pub(crate) const FIELDS: [(&str, &str); 3] =
    [("cache-control", "no-cache"), ("access-control-allow-origin", "*"), ("accept-ranges", "bytes")];

/// The path in the folder, with its leading slash; `None` when it is not the folder's.
pub(crate) fn name_of(path: &[u8]) -> Option<&[u8]> {
    path.strip_prefix(PREFIX).filter(|name| name.first() == Some(&b'/'))
}

/// The answer to a request for a file.
pub(crate) fn plan(folder: &Folder, name: &[u8], request: &Request<'_>) -> Plan {
    let mut plan = match request.method {
        b"GET" | b"HEAD" => match folder.open_fresh(name) {
            Some((content_type, content)) => {
                Plan::new(Head::new(200, Some(content_type), Some(content.octets())), content)
            }
            None => Plan::status(404),
        },
        _ => Plan::status(405),
    };
    plan.head.fields = Fields::Live;
    match request.method {
        // RFC 9110 13.1.5: there is no validator that an If-Range could match.
        b"GET" if plan.head.status == 200 && request.if_range.is_none() => plan.ranged(request.range),
        b"HEAD" => Plan { content: Content::Empty, ..plan },
        _ => plan,
    }
}
