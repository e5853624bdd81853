package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/lucas-clemente/quic-go"
	"github.com/lucas-clemente/quic-go/http3"
)

// HTTP/3 of quic-go 0.12.1, August 2019: draft 22 of QUIC and of HTTP/3. It is built with the other files of go-services.

const alpnH3 = "h3-22"

// quicGoVersion: its module is built from a patched copy, of which the build says no version.
func quicGoVersion() string {
	return "0.12.1 (h3-22)"
}

func writeQlogs(folder *string) error {
	if folder == nil {
		return nil
	}
	return badInput{errors.New("qlog_dir: this quic-go writes no qlog")}
}

type quicDialer struct {
	config quic.Config
}

func (q *quicDialer) prepare(to *target) {
	// As http3's own, but for the handshake's timeout, which is the job's.
	q.config = quic.Config{KeepAlive: true, HandshakeTimeout: time.Duration(to.connectTimeoutNs) + time.Second}
}

// openQUIC: a socket for each connection, as TCP has it.
func (d *dialer) openQUIC(ctx context.Context, c *connection) error {
	network := "udp4"
	if c.peer.Addr().Is6() {
		network = "udp6"
	}
	socket, err := net.ListenUDP(network, nil)
	if err != nil {
		return err
	}
	secrets, config := d.tls.Clone(), d.quic.config
	secrets.NextProtos = []string{alpnH3}
	config.MaxIncomingStreams = -1
	name := fmt.Sprintf("%s:%d", d.name, c.peer.Port())
	opened, err := quic.DialContext(ctx, socket, net.UDPAddrFromAddrPort(c.peer), name, secrets, &config)
	if err != nil {
		_ = socket.Close()
		return err
	}
	state := opened.ConnectionState()
	c.secured(nowNs(), state.NegotiatedProtocol, state.Version, state.CipherSuite, state.DidResume)
	over := &http3.RoundTripper{
		DisableCompression: true, TLSClientConfig: secrets, QuicConfig: &config,
		Dial: func(_, _ string, _ *tls.Config, _ *quic.Config) (quic.Session, error) { return opened, nil },
	}
	c.roundTripper = cancelled{over, opened}
	c.lost = func() bool { return opened.Context().Err() != nil }
	c.close = func() {
		_ = opened.Close()
		_ = socket.Close()
	}
	return nil
}

// cancelled ends the connection when the context of a request ends: its http3 looks at no context.
type cancelled struct {
	over    *http3.RoundTripper
	session quic.Session
}

// RoundTrip implements http.RoundTripper.
func (r cancelled) RoundTrip(request *http.Request) (*http.Response, error) {
	stop := context.AfterFunc(request.Context(), func() { _ = r.session.CloseWithError(0, "") })
	response, err := r.over.RoundTrip(request)
	if err != nil {
		stop()
		return nil, err
	}
	response.Body = &watched{response.Body, sync.OnceFunc(func() { stop() })}
	return response, nil
}

// watched is the content of a response, until it is closed.
type watched struct {
	io.ReadCloser
	stop func()
}

// Close implements io.Closer.
func (w *watched) Close() error {
	w.stop()
	return w.ReadCloser.Close()
}

// brokenBy tells whether an error ended the whole connection, not only a stream of it.
func brokenBy(err error) bool {
	_, stream := errors.AsType[quic.StreamError](err)
	return !stream
}

// classOfQUIC: this quic-go keeps its errors' types to itself.
func classOfQUIC(err error) string {
	if stream, ok := errors.AsType[quic.StreamError](err); ok {
		if stream.Canceled() {
			return "reset"
		}
		return "quic"
	}
	words := err.Error()
	switch {
	case strings.Contains(words, "x509: "), strings.Contains(words, "CRYPTO_ERROR: tls: failed to verify"):
		return "tls:certificate"
	case strings.HasPrefix(words, "CRYPTO_ERROR"):
		return "tls"
	case strings.Contains(words, "Handshake did not complete in time"):
		return "connect_timeout"
	}
	if lost, ok := errors.AsType[net.Error](err); ok {
		if _, system := errors.AsType[*net.OpError](err); system {
			return ""
		}
		if lost.Timeout() {
			return "quic:timeout"
		}
		if strings.Contains(words, "NO_ERROR") || strings.Contains(words, "Application error 0x0") {
			return "closed"
		}
		return "quic:transport"
	}
	return ""
}

// serveQUIC serves HTTP/3 on a port until the function that it returns is called; a failure comes through the channel.
func serveQUIC(config *originConfig, handler http.Handler, secrets *tls.Config, failed chan<- error) (func(), error) {
	address, err := net.ResolveUDPAddr("udp", net.JoinHostPort(config.Address, fmt.Sprint(config.Port)))
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return nil, err
	}
	secrets.SessionTicketsDisabled = true // of two Gos: they do not fit into each other
	server := &http3.Server{
		Server: &http.Server{Handler: handler, TLSConfig: secrets},
		QuicConfig: &quic.Config{
			MaxIncomingStreams: config.MaxConcurrentStreams, IdleTimeout: time.Duration(config.IdleTimeoutNs),
		},
	}
	go func() { failed <- server.Serve(socket) }()
	return func() {
		_ = server.Close()
		_ = socket.Close()
	}, nil
}
