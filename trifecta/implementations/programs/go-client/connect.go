package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/qlog"
)

// alpn are the protocol names of RFC 7301.
var alpn = map[string]string{"h1": "http/1.1", "h2": "h2", "h3": "h3"}

var groups = map[string]tls.CurveID{
	"X25519": tls.X25519, "X25519MLKEM768": tls.X25519MLKEM768, "secp256r1": tls.CurveP256, "secp384r1": tls.CurveP384,
}

// dialer opens connections, one at a time and outside of any pool: net/http's Transport.NewClientConn and quic-go's
// http3.Transport.NewClientConn. So nothing is sent again unseen, and there are as many connections as were asked for.
type dialer struct {
	job *job
	peer   netip.AddrPort
	tls    *tls.Config
	http   *http.Transport
	http3  *http3.Transport
	quic   *quic.Config
	keylog *os.File
	number atomic.Uint32
	opened atomic.Uint32
	group  atomic.Uint32
}

// connection is an open connection, or what is known of one that could not be opened.
type connection struct {
	number       uint32
	connectNs    int64
	tcpNs        int64
	securedNs    int64
	protocol     string
	tlsVersion   string
	cipher       string
	resumed      bool
	roundTripper http.RoundTripper
	lost         func() bool
	close        func()
	bound        atomic.Bool // a row already carries the connect times
	users        int         // guarded by the slot
}

func newDialer(e *job) (*dialer, error) {
	address, err := netip.ParseAddr(e.Address)
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	authority, err := os.ReadFile(e.CAFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("ca_file: %s holds no certificate", e.CAFile)
	}
	group, known := groups[e.KeyExchange]
	if !known {
		return nil, fmt.Errorf("key_exchange: %q is not known", e.KeyExchange)
	}
	d := &dialer{job: e, peer: netip.AddrPortFrom(address, uint16(e.Port))}
	d.tls = &tls.Config{
		RootCAs: roots, ServerName: e.ServerName, NextProtos: []string{alpn[e.Protocol]}, CurvePreferences: []tls.CurveID{group},
		MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS13, // without a ClientSessionCache nothing is resumed
	}
	if e.TLSVersion == "1.2" {
		d.tls.MinVersion, d.tls.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		for _, suite := range tls.CipherSuites() { // those of TLS 1.3 cannot be chosen (crypto/tls, Config.CipherSuites)
			if suite.Name == e.Cipher {
				d.tls.CipherSuites = []uint16{suite.ID}
			}
		}
		if d.tls.CipherSuites == nil {
			return nil, fmt.Errorf("cipher: %q is not known", e.Cipher)
		}
	}
	if e.KeylogFile != nil {
		if d.keylog, err = os.OpenFile(*e.KeylogFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
			return nil, fmt.Errorf("keylog_file: %w", err)
		}
		d.tls.KeyLogWriter = d.keylog
	}
	d.prepareTCP()
	d.prepareQUIC()
	return d, nil
}

// prepareTCP: a Transport with a TLS configuration of its own speaks HTTP/1.1 only, unless it is told which protocols.
func (d *dialer) prepareTCP() {
	d.http = &http.Transport{
		TLSClientConfig: d.tls, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			opened, err := new(net.Dialer).DialContext(ctx, "tcp", d.peer.String())
			if tcp, ok := opened.(*net.TCPConn); ok && !d.job.TCPNoDelay {
				err = tcp.SetNoDelay(false) // Go turns Nagle's algorithm off by itself
			}
			return opened, err
		},
	}
	if d.job.ownTLS {
		d.http.TLSClientConfig = d.tls.Clone()
		d.http.TLSClientConfig.NextProtos = nil // who writes such code leaves ALPN to net/http
		return
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(d.job.Protocol == "h1")
	protocols.SetHTTP2(d.job.Protocol == "h2")
	d.http.Protocols, d.http.ForceAttemptHTTP2 = protocols, d.job.Protocol == "h2"
}

func (d *dialer) prepareQUIC() {
	d.http3 = &http3.Transport{DisableCompression: true}
	// As http3.Transport has it, but for the handshake's timeout, which is the job's.
	d.quic = &quic.Config{
		MaxIncomingStreams: -1, KeepAlivePeriod: 10 * time.Second,
		HandshakeIdleTimeout: time.Duration(d.job.ConnectTimeoutNs) + time.Second,
	}
	if d.job.QlogDir != nil {
		_ = os.Setenv("QLOGDIR", *d.job.QlogDir) // where quic-go's tracer writes
		d.quic.Tracer = qlog.DefaultConnectionTracer
	}
}

// open opens a connection and waits for its handshake. The connection that comes with an error has times only.
func (d *dialer) open(ctx context.Context) (*connection, string) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(d.job.ConnectTimeoutNs), errConnectTimeout)
	defer cancel()
	c := &connection{number: d.number.Add(1) - 1, connectNs: nowNs()}
	var err error
	if d.job.Protocol == "h3" {
		err = d.openQUIC(ctx, c)
	} else {
		err = d.openTCP(ctx, c)
	}
	if err != nil {
		return c, classOf(ctx, err, true, false)
	}
	d.opened.Add(1)
	return c, ""
}

func (d *dialer) openTCP(ctx context.Context, c *connection) error {
	var times sync.Mutex // a dial that was given up may still call back
	note := func(to *int64) {
		times.Lock()
		defer times.Unlock()
		*to = nowNs()
	}
	var tcpNs, securedNs int64
	var state tls.ConnectionState
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				note(&tcpNs)
			}
		},
		TLSHandshakeDone: func(agreed tls.ConnectionState, err error) {
			if err == nil {
				note(&securedNs)
				times.Lock()
				defer times.Unlock()
				state = agreed
			}
		},
	})
	name := net.JoinHostPort(d.job.ServerName, strconv.Itoa(d.job.Port))
	opened, err := d.http.NewClientConn(traced, "https", name)
	times.Lock()
	defer times.Unlock()
	c.tcpNs = tcpNs
	if securedNs != 0 {
		c.secured(d, securedNs, &state)
	}
	if err != nil {
		return err
	}
	// A server without ALPN speaks HTTP/1.1 (RFC 7301, 3.1); then nothing was negotiated, and the row says so.
	if !d.job.ownTLS && !c.speaks(d.job.Protocol) && (state.NegotiatedProtocol != "" || d.job.Protocol != "h1") {
		_ = opened.Close()
		return errALPN
	}
	c.roundTripper = opened
	c.lost = func() bool { return opened.Err() != nil }
	c.close = func() { _ = opened.Close() }
	return nil
}

// openQUIC: a socket for each connection, as TCP has it.
func (d *dialer) openQUIC(ctx context.Context, c *connection) error {
	network := "udp4"
	if d.peer.Addr().Is6() {
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
	opened, err := transport.Dial(ctx, net.UDPAddrFromAddrPort(d.peer), d.tls, d.quic)
	if err != nil {
		end()
		return err
	}
	state := opened.ConnectionState().TLS
	c.secured(d, nowNs(), &state)
	if !c.speaks("h3") {
		_ = opened.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
		end()
		return errALPN
	}
	c.roundTripper = d.http3.NewClientConn(opened)
	c.lost = func() bool { return opened.Context().Err() != nil }
	c.close = func() {
		_ = opened.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
		end()
	}
	return nil
}

// secured notes what the handshake agreed on.
func (c *connection) secured(d *dialer, ns int64, state *tls.ConnectionState) {
	c.securedNs = ns
	for name, negotiated := range alpn {
		if state.NegotiatedProtocol == negotiated {
			c.protocol = name
		}
	}
	c.tlsVersion = map[uint16]string{tls.VersionTLS12: "1.2", tls.VersionTLS13: "1.3"}[state.Version]
	c.cipher = tls.CipherSuiteName(state.CipherSuite)
	c.resumed = state.DidResume
	d.group.Store(uint32(state.CurveID))
}

func (c *connection) speaks(protocol string) bool {
	return c.protocol == protocol
}

// describe fills a row with what is known of the connection; the first on it carries the connect times.
func (c *connection) describe(r *row) {
	r.connection = c.number
	r.protocol, r.tlsVersion, r.cipher, r.resumed = c.protocol, c.tlsVersion, c.cipher, c.resumed
	if c.bound.CompareAndSwap(false, true) {
		r.connectNs, r.tcpNs, r.securedNs = c.connectNs, c.tcpNs, c.securedNs
	}
}

// keyExchange is the name of the group of the last handshake.
func (d *dialer) keyExchange() string {
	for name, group := range groups {
		if uint32(group) == d.group.Load() {
			return name
		}
	}
	return ""
}

// brokenBy tells whether an error ended the whole connection, not only a stream of it.
func brokenBy(err error) bool {
	_, transport := errors.AsType[*quic.TransportError](err)
	_, application := errors.AsType[*quic.ApplicationError](err)
	_, idle := errors.AsType[*quic.IdleTimeoutError](err)
	_, reset := errors.AsType[*quic.StatelessResetError](err)
	return transport || application || idle || reset || errors.Is(err, io.EOF)
}
