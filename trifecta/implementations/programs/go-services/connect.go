package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

var groups = map[string]tls.CurveID{
	"X25519": tls.X25519, "X25519MLKEM768": tls.X25519MLKEM768, "secp256r1": tls.CurveP256, "secp384r1": tls.CurveP384,
}

var tlsVersions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

// singleUseTimeout is far more than what lies between the handshake of a connection and its one request.
const singleUseTimeout = 250 * time.Millisecond

// target is a service that is called, and how.
type target struct {
	protocol         string
	reused           bool // a connection has more than one request
	name             string
	peer             netip.AddrPort
	ip               *string
	caFile           string
	tlsVersion       string // of TCP; QUIC has 1.3
	keyExchange      string
	cipher           string
	noDelay          bool
	keylogFile       *string
	connectTimeoutNs int64
	requestTimeoutNs int64
	program          programConfig
}

// dialer opens connections, outside of net/http's pool: nothing is sent again unseen, and there are as many connections as
// were asked for.
type dialer struct {
	target
	tls    *tls.Config
	http   *http.Transport
	quic   quicDialer
	opened atomic.Uint32
	number atomic.Uint32
	group  atomic.Uint32
	tcp    tcpFacts
}

// connection is an open connection, or what is known of one that could not be opened.
type connection struct {
	number       uint32
	startedNs    int64 // before its peer was looked up
	peer         netip.AddrPort
	connectNs    int64
	tcpNs        int64
	securedNs    int64
	protocol     string
	tlsVersion   string
	cipher       string
	resumed      bool
	bare         bool // nothing was negotiated: the answer tells what was spoken
	roundTripper http.RoundTripper
	lost         func() bool
	close        func()
	told         atomic.Bool // a row has its times
}

func newDialer(to target) (*dialer, error) {
	group, known := groups[to.keyExchange]
	if !known {
		return nil, badInput{fmt.Errorf("key_exchange: %q is not known", to.keyExchange)}
	}
	version, known := tlsVersions[to.tlsVersion]
	if to.protocol == "h3" {
		version = tls.VersionTLS13
	}
	if !known {
		return nil, badInput{fmt.Errorf("tls_version: %q is neither 1.2 nor 1.3", to.tlsVersion)}
	}
	d := &dialer{target: to}
	d.tls = &tls.Config{
		ServerName: to.name, CurvePreferences: []tls.CurveID{group}, MinVersion: version, MaxVersion: version,
		InsecureSkipVerify: !to.program.Verify, // without a ClientSessionCache nothing is resumed
	}
	if to.program.Verify {
		authority, err := os.ReadFile(to.caFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		d.tls.RootCAs = x509.NewCertPool()
		if !d.tls.RootCAs.AppendCertsFromPEM(authority) {
			return nil, badInput{fmt.Errorf("ca_file: %s holds no certificate", to.caFile)}
		}
	}
	if version == tls.VersionTLS12 {
		for _, suite := range tls.CipherSuites() { // those of TLS 1.3 cannot be chosen (crypto/tls, Config.CipherSuites)
			if suite.Name == to.cipher {
				d.tls.CipherSuites = []uint16{suite.ID}
			}
		}
		if d.tls.CipherSuites == nil {
			return nil, badInput{fmt.Errorf("cipher: %q is not known", to.cipher)}
		}
	}
	if err := writeKeys(d.tls, to.keylogFile); err != nil {
		return nil, err
	}
	d.http = d.transport()
	d.quic.prepare(&d.target)
	return d, nil
}

func writeKeys(config *tls.Config, path *string) error {
	if path == nil {
		return nil
	}
	file, err := os.OpenFile(*path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("keylog_file: %w", err)
	}
	config.KeyLogWriter = file
	return nil
}

// open opens a connection and waits for its handshake. The connection that comes with a class of errors has times only.
func (d *dialer) open(ctx context.Context) (*connection, string) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(d.connectTimeoutNs), errConnectTimeout)
	defer cancel()
	c := &connection{number: d.number.Add(1) - 1, startedNs: nowNs(), peer: d.peer}
	var err error
	if d.program.NameServer != nil {
		if c.peer, err = d.lookUp(ctx); err != nil {
			return c, classOfLookUp(ctx, err)
		}
	}
	c.connectNs = nowNs()
	if d.protocol == "h3" {
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

// lookUp asks the name server, as Go does for each connection: for both families, with the timeouts of resolv.conf(5),
// and it keeps nothing.
func (d *dialer) lookUp(ctx context.Context) (netip.AddrPort, error) {
	resolver := &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, d.program.NameServer.String())
		},
	}
	found, err := resolver.LookupHost(ctx, d.name+".") // with the dot no other name is tried
	if err != nil {
		return netip.AddrPort{}, err
	}
	return peerOf(d.name, found, d.ip, int(d.peer.Port()))
}

// classOfLookUp: one that takes longer than a connection may has failed as a look-up.
func classOfLookUp(ctx context.Context, err error) string {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errConnectTimeout) {
		return classOfCause(context.Cause(ctx))
	}
	return "client:name"
}

// socketKey is that of the context's value that takes the socket of a connection, peerKey of the one it is to.
type (
	socketKey struct{}
	peerKey   struct{}
)

// transport is net/http's. Given a TLS configuration it speaks HTTP/1.1 only, unless it is told which protocols: that is
// the mistake of program.OwnTLS.
func (d *dialer) transport() *http.Transport {
	config := d.tls.Clone()
	made := &http.Transport{
		TLSClientConfig: config, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			peer, _ := ctx.Value(peerKey{}).(netip.AddrPort)
			dialed, err := new(net.Dialer).DialContext(ctx, "tcp", peer.String())
			if tcp, ok := dialed.(*net.TCPConn); ok {
				if opened, asked := ctx.Value(socketKey{}).(*atomic.Pointer[net.TCPConn]); asked {
					opened.Store(tcp)
				}
				if !d.noDelay { // Go turns Nagle's algorithm off by itself
					err = tcp.SetNoDelay(false)
				}
			}
			return dialed, err
		},
	}
	if !d.reused {
		// net/http holds on to an HTTP/2 connection that had one request for 5 s after it was closed, or for this.
		made.IdleConnTimeout = singleUseTimeout
	}
	if d.program.OwnTLS {
		return made
	}
	config.NextProtos = []string{map[string]string{"h1": "http/1.1", "h2": "h2"}[d.protocol]}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(d.protocol == "h1")
	protocols.SetHTTP2(d.protocol == "h2")
	made.Protocols, made.ForceAttemptHTTP2 = protocols, d.protocol == "h2"
	return made
}

func (d *dialer) openTCP(ctx context.Context, c *connection) error {
	var times sync.Mutex // a dial that was given up may still call back
	var tcpNs, securedNs int64
	var state tls.ConnectionState
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectDone: func(_, _ string, err error) {
			times.Lock()
			defer times.Unlock()
			if err == nil {
				tcpNs = nowNs()
			}
		},
		TLSHandshakeDone: func(agreed tls.ConnectionState, err error) {
			times.Lock()
			defer times.Unlock()
			if err == nil {
				securedNs, state = nowNs(), agreed
			}
		},
	})
	var socket atomic.Pointer[net.TCPConn]
	by := d.http
	if d.program.LeakNs > 0 { // of each call, as the connection
		by = d.transport()
	}
	to := net.JoinHostPort(d.name, strconv.Itoa(int(d.peer.Port())))
	asked := context.WithValue(context.WithValue(traced, socketKey{}, &socket), peerKey{}, c.peer)
	opened, err := by.NewClientConn(asked, "https", to)
	times.Lock()
	defer times.Unlock()
	c.tcpNs = tcpNs
	if securedNs != 0 {
		c.secured(securedNs, state.NegotiatedProtocol, state.Version, state.CipherSuite, state.DidResume)
		d.group.Store(uint32(state.CurveID))
	}
	if err != nil {
		return err
	}
	c.bare = state.NegotiatedProtocol == ""
	if c.protocol != d.protocol && !c.bare && !d.program.OwnTLS {
		_ = opened.Close()
		return errALPN
	}
	c.roundTripper = opened
	c.lost = func() bool { return opened.Err() != nil }
	end := sync.OnceFunc(func() {
		d.tcp.note(socket.Load())
		_ = opened.Close()
	})
	c.close = end
	if d.program.LeakNs > 0 { // nobody closes it; net/http would when it has been idle for so long
		c.close = func() { time.AfterFunc(time.Duration(d.program.LeakNs), end) }
	}
	return nil
}

// secured notes what a handshake agreed on.
func (c *connection) secured(ns int64, negotiated string, version, cipher uint16, resumed bool) {
	c.securedNs = ns
	for name, protocol := range map[string]string{"h1": "http/1.1", "h2": "h2", "h3": alpnH3} {
		if negotiated == protocol {
			c.protocol = name
		}
	}
	c.tlsVersion = map[uint16]string{tls.VersionTLS12: "1.2", tls.VersionTLS13: "1.3"}[version]
	c.cipher = tls.CipherSuiteName(cipher)
	c.resumed = resumed
}

// keyExchange is the name of the group of the last handshake; nil where it is not told.
func (d *dialer) keyExchange() *string {
	for name, group := range groups {
		if uint32(group) == d.group.Load() {
			return &name
		}
	}
	return nil
}

// tcpFacts gathers what the kernel tells of connections over TCP when they are closed.
type tcpFacts struct {
	mu          sync.Mutex
	connections int64
	retransmits int64
	minRTT      int64
	rtt         int64
	window      int64
	mss         int64
	control     string
	noDelay     bool
}

func (f *tcpFacts) note(socket *net.TCPConn) {
	if socket == nil {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(descriptor uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(descriptor), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		control, _ := unix.GetsockoptString(int(descriptor), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		noDelay, _ := unix.GetsockoptInt(int(descriptor), unix.IPPROTO_TCP, unix.TCP_NODELAY)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.connections++
		f.retransmits += int64(info.Total_retrans)
		if minRTT := int64(info.Min_rtt) * 1000; f.minRTT == 0 || minRTT < f.minRTT {
			f.minRTT = minRTT
		}
		f.rtt, f.mss = int64(info.Rtt)*1000, int64(info.Snd_mss)
		f.window = max(f.window, int64(info.Snd_cwnd)*int64(info.Snd_mss))
		f.control, f.noDelay = control, noDelay != 0
	})
}

// summary is the object `tcp` of a summary; nil without a connection.
func (f *tcpFacts) summary() any {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.connections == 0 {
		return nil
	}
	return map[string]any{
		"connections": f.connections, "min_rtt_ns": f.minRTT, "srtt_ns": f.rtt, "retransmits": f.retransmits,
		"congestion_window_bytes": f.window, "congestion_control": orNil(f.control), "mss_bytes": f.mss,
		"nodelay": f.noDelay, "initial_window_bytes": nil,
	}
}
