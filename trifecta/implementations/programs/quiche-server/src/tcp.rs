//! HTTP/1.1 and HTTP/2 over TLS: hyper on the BoringSSL that quiche has.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use boring::ssl::{AlpnError, SslAcceptor, SslFiletype, SslMethod, SslVersion, select_next_proto};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use crate::site::{Content, PIECE, Site, takes_content};

// Receive windows over HTTP/2: those of the engine's origin.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 32 << 20;

const ALPN: &[u8] = b"\x02h2\x08http/1.1";

/// TLS of one version only, for HTTP/2 and HTTP/1.1.
pub fn tls(certificate: &str, key: &str, only: &str) -> Result<SslAcceptor, String> {
    let version = match only {
        "1.2" => SslVersion::TLS1_2,
        "1.3" => SslVersion::TLS1_3,
        other => return Err(format!("--tls {other}: 1.2 or 1.3")),
    };
    let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls()).map_err(|error| error.to_string())?;
    builder.set_certificate_chain_file(certificate).map_err(|error| format!("{certificate}: {error}"))?;
    builder.set_private_key_file(key, SslFiletype::PEM).map_err(|error| format!("{key}: {error}"))?;
    builder.set_min_proto_version(Some(version)).map_err(|error| error.to_string())?;
    builder.set_max_proto_version(Some(version)).map_err(|error| error.to_string())?;
    builder.set_alpn_select_callback(|_, offered| select_next_proto(ALPN, offered).ok_or(AlpnError::ALERT_FATAL));
    Ok(builder.build())
}

/// Serves every connection until it is dropped.
pub async fn serve(listener: TcpListener, tls: SslAcceptor, site: Arc<Site>, streams: u32, no_delay: bool) {
    let mut http2 = http2::Builder::new(TokioExecutor::new());
    http2
        .max_concurrent_streams(streams)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    loop {
        let accepted = listener.accept().await.and_then(|(stream, _)| stream.set_nodelay(no_delay).map(|()| stream));
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                eprintln!("quiche-server: accept: {error}");
                tokio::time::sleep(Duration::from_millis(10)).await; // too many open files, which takes a while to pass
                continue;
            }
        };
        let (tls, http2, site) = (tls.clone(), http2.clone(), site.clone());
        tokio::spawn(async move {
            // Whatever goes wrong on a connection, its client is told or has gone.
            let Ok(stream) = tokio_boring::accept(&tls, stream).await else { return };
            let is_http2 = stream.ssl().selected_alpn_protocol() == Some(b"h2");
            let service = service_fn(move |request| answer(site.clone(), request));
            let stream = TokioIo::new(stream);
            let _ = if is_http2 {
                http2.serve_connection(stream, service).await
            } else {
                http1::Builder::new().serve_connection(stream, service).await
            };
        });
    }
}

async fn answer(site: Arc<Site>, request: Request<Incoming>) -> Result<Response<Sending>, hyper::Error> {
    let (head, mut content) = request.into_parts();
    if takes_content(head.method.as_str()) {
        while let Some(frame) = poll_fn(|context| Pin::new(&mut content).poll_frame(context)).await {
            frame?;
        }
    }
    let answer = site.answer(head.method.as_str(), head.uri.path());
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.fields {
        response = response.header(name, value);
    }
    let sending = Sending { content: answer.content, sent: 0 };
    Ok(response.body(sending).expect("a status and fields of our own"))
}

/// Content as hyper asks for it, a piece at a time.
struct Sending {
    content: Content,
    sent: u64,
}

impl Body for Sending {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let left = self.content.size() - self.sent;
        if left == 0 {
            return Poll::Ready(None);
        }
        let mut piece = vec![0; left.min(PIECE as u64) as usize];
        Poll::Ready(Some(self.content.read(&mut piece, self.sent).map(|read| {
            self.sent += read as u64;
            piece.truncate(read);
            Frame::data(Bytes::from(piece))
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.sent == self.content.size()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.content.size() - self.sent)
    }
}
