package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"crypto/tls"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/qlog"
)

const alpnH3 = "h3"

func quicGoVersion() string {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == "github.com/quic-go/quic-go" {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return "unknown"
}

// writeQlogs has quic-go's tracer write into a folder.
func writeQlogs(folder *string) error {
	if folder == nil {
		return nil
	}
	qlogs = true
	return os.Setenv("QLOGDIR", *folder)
}

var qlogs bool

type quicDialer struct {
	config *quic.Config
	http3  *http3.Transport
}

func (q *quicDialer) prepare(to *target) {
	q.http3 = &http3.Transport{DisableCompression: true}
	// As http3.Transport has it, but for the handshake's timeout, which is the job's.
	q.config = &quic.Config{
		MaxIncomingStreams: -1, KeepAlivePeriod: 10 * time.Second,
		HandshakeIdleTimeout: time.Duration(to.connectTimeoutNs) + time.Second,
	}
	if qlogs {
		q.config.Tracer = qlog.DefaultConnectionTracer
	}
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
	transport := &quic.Transport{Conn: socket}
	end := func() {
		_ = transport.Close()
		_ = socket.Close()
	}
	config := d.tls.Clone()
	config.NextProtos = []string{alpnH3}
	opened, err := transport.Dial(ctx, net.UDPAddrFromAddrPort(c.peer), config, d.quic.config)
	if err != nil {
		end()
		return err
	}
	state := opened.ConnectionState().TLS
	c.secured(nowNs(), state.NegotiatedProtocol, state.Version, state.CipherSuite, state.DidResume)
	d.group.Store(uint32(state.CurveID))
	c.roundTripper = d.quic.http3.NewClientConn(opened)
	c.lost = func() bool { return opened.Context().Err() != nil }
	c.close = func() {
		_ = opened.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
		end()
	}
	return nil
}

// brokenBy tells whether an error ended the whole connection, not only a stream of it.
func brokenBy(err error) bool {
	_, transport := errors.AsType[*quic.TransportError](err)
	_, application := errors.AsType[*quic.ApplicationError](err)
	_, idle := errors.AsType[*quic.IdleTimeoutError](err)
	_, reset := errors.AsType[*quic.StatelessResetError](err)
	return transport || application || idle || reset || errors.Is(err, io.EOF)
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
	server := &http3.Server{
		Handler: handler, TLSConfig: secrets,
		QUICConfig: &quic.Config{
			MaxIncomingStreams: int64(config.MaxConcurrentStreams), MaxIdleTimeout: time.Duration(config.IdleTimeoutNs),
		},
	}
	go func() { failed <- server.Serve(socket) }()
	return func() {
		_ = server.Close()
		_ = socket.Close()
	}, nil
}
