package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// service answers routes, by calling others or by itself.
type service struct {
	*relayConfig
	callers map[string]*caller
	found   map[string]any

	mu       sync.Mutex
	requests map[string]map[string]int64 // by protocol and status
	errors   map[string]int64
}

func newService(config *originConfig) (*service, error) {
	s := &service{
		relayConfig: config.Relay, callers: map[string]*caller{}, found: map[string]any{},
		requests: map[string]map[string]int64{"h1": {}, "h2": {}, "h3": {}}, errors: map[string]int64{},
	}
	for name, other := range config.Relay.Services {
		peer, _, err := find(other.Name, other.Address, config.Relay.IP, other.Port)
		if err != nil {
			return nil, fmt.Errorf("relay.services.%s.name: %w", name, err)
		}
		s.callers[name], err = newCaller(target{
			protocol: other.Protocol, reused: other.ConnectionMode == "reused", name: other.Name, peer: peer,
			ip: config.Relay.IP, caFile: config.Relay.CAFile,
			tlsVersion: config.Relay.TLSVersion, keyExchange: config.Relay.KeyExchange, cipher: config.Relay.Cipher,
			noDelay: config.TCPNoDelay, keylogFile: config.KeylogFile, connectTimeoutNs: config.Relay.ConnectTimeoutNs,
			requestTimeoutNs: config.Relay.RequestTimeoutNs, program: config.Program,
		}, other.Connections, other.Streams)
		if err != nil {
			return nil, err
		}
		s.found[name] = map[string]any{"address": peer.Addr(), "port": other.Port, "protocol": other.Protocol}
	}
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, content, meta := s.answer(r)
	header := w.Header()
	if meta != nil {
		header.Set(metaField, string(meta))
	}
	if content != nil {
		header.Set("Content-Length", strconv.Itoa(len(content)))
	}
	if meta != nil || content != nil {
		header.Set("Content-Type", jsonType)
	}
	w.WriteHeader(status)
	_, _ = w.Write(content) // an error here is the caller's going away: there is nobody left to tell
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[fmt.Sprintf("h%d", r.ProtoMajor)][strconv.Itoa(status)]++
}

// answer is what a request is answered: a status, a message, and its entries alone for HEAD.
func (s *service) answer(r *http.Request) (status int, content, meta []byte) {
	route, found := s.Routes[r.URL.Path]
	switch {
	case !found:
		return http.StatusNotFound, nil, nil
	case !known(r.Method):
		return http.StatusMethodNotAllowed, nil, nil
	}
	came, err := io.ReadAll(io.LimitReader(r.Body, maxMessageOctets+1))
	arrivedNs := nowNs()
	switch {
	case err != nil:
		return http.StatusBadRequest, nil, nil
	case len(came) > maxMessageOctets:
		return http.StatusRequestEntityTooLarge, nil, nil
	}
	var incoming message
	if hasContent(r.Method) && len(came) > 0 {
		var sound bool
		if incoming, sound = parseMessage(came); !sound {
			return http.StatusBadRequest, nil, nil
		}
	}
	entries, status := s.carryOut(r.Method, r.URL.Path, incoming, arrivedNs)
	if r.Method == http.MethodHead {
		return status, nil, slices.Concat([]byte("["), entries, []byte("]"))
	}
	var body []byte
	if route.Answer.word == "" && status == http.StatusOK {
		body = filler(route.Answer.number)
	}
	return status, write(entries, body), nil
}

// carryOut makes the calls of a route, one after the other; the entries of the answer and its status.
func (s *service) carryOut(method, path string, incoming message, arrivedNs int64) ([]byte, int) {
	route := s.Routes[path]
	status := http.StatusOK
	var entries []entry
	var subtrees [][]byte
	for _, call := range route.Calls {
		asked := call.Method
		if asked == "same" {
			asked = method
		}
		own := entry{Service: s.Service, To: &call.To, Method: asked, Path: call.Path, ArrivedNs: &arrivedNs}
		one := s.forward(asked, call, incoming, own)
		subtree, sound := metaOf(asked, &one)
		switch {
		case one.class != "":
		case one.status >= http.StatusBadRequest:
			one.class = "status"
		case !sound:
			one.class = "content"
		}
		own.ForwardedNs, own.ReturnedNs = &one.startedNs, orNil(one.doneNs)
		if one.first {
			own.SecuredNs = orNil(one.connection.securedNs)
		}
		own.Status, own.Error = orNil(one.status), orNil(one.class)
		entries, subtrees = append(entries, own), append(subtrees, subtree)
		if one.class != "" {
			status = statusOf(one.class)
			break
		}
	}
	if len(route.Calls) == 0 {
		last := entry{Service: s.Service, Method: method, Path: path, ArrivedNs: &arrivedNs, Status: &status}
		entries, subtrees = append(entries, last), append(subtrees, nil)
	}
	repliedNs := nowNs()
	var out []byte
	for place := range entries {
		entries[place].RepliedNs = &repliedNs
		out = appendEntries(appendEntry(out, entries[place]), subtrees[place])
	}
	return out, status
}

// forward makes one call: what came in with our entry behind it.
func (s *service) forward(method string, call callConfig, incoming message, own entry) outcome {
	fields := http.Header{}
	if hasContent(method) {
		fields.Set("Content-Type", jsonType)
	}
	content := func(startedNs int64) []byte {
		if !hasContent(method) {
			return nil
		}
		own.ForwardedNs = &startedNs
		meta := appendEntry(bytes.Clone(incoming.meta), own)
		switch call.Body.word {
		case "forward":
			return write(meta, incoming.body)
		case "none":
			return write(meta, nil)
		}
		return write(meta, filler(call.Body.number))
	}
	return s.callers[call.To].call(context.Background(), method, call.Path, fields, content)
}

// statusOf is what a gateway answers when the one behind it fails (RFC 9110, 15.6.3 and 15.6.5).
func statusOf(class string) int {
	if class == "timeout" || class == "connect_timeout" || class == "quic:timeout" {
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// Write takes a line of net/http's log: what becomes of a connection beside its requests.
func (s *service) Write(line []byte) (int, error) {
	text := string(line)
	class := "closed"
	switch {
	case strings.Contains(text, "panic"):
		class = "panic"
		log.Print(text)
	case strings.Contains(text, "TLS handshake error") &&
		(strings.Contains(text, "EOF") || strings.Contains(text, "reset by peer") || strings.Contains(text, "timeout")):
		class = "closed_in_handshake"
	case strings.Contains(text, "TLS handshake error"):
		class = "tls"
		log.Print(text)
	case strings.Contains(text, "reset by peer"):
		class = "reset"
	default:
		log.Print(text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors[class]++
	return len(line), nil
}

// listener sets TCP_NODELAY as asked: Go turns it on by itself.
type listener struct {
	*net.TCPListener
	noDelay bool
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	accepted, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return accepted, accepted.SetNoDelay(l.noDelay)
}

// runService is the program `origin`: it serves until it is asked to end.
func runService(ctx context.Context, line []byte) error {
	config, err := read[originConfig](line)
	if err != nil {
		return err
	}
	if err := config.check(); err != nil {
		return err
	}
	startedNs := nowNs()
	s, err := newService(config)
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(config.CertificateFile, config.KeyFile)
	if err != nil {
		return badInput{fmt.Errorf("certificate_file: %w", err)}
	}
	settings := func(version uint16) (*tls.Config, error) {
		made := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: version, MaxVersion: version}
		return made, writeKeys(made, config.KeylogFile)
	}
	failed := make(chan error, 2)
	overTCP, err := settings(tlsVersions[config.TLSVersions[0]])
	if err != nil {
		return err
	}
	overQUIC, err := settings(tls.VersionTLS13)
	if err != nil {
		return err
	}
	tcp, err := net.Listen("tcp", net.JoinHostPort(config.Address, strconv.Itoa(config.Port)))
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: s, TLSConfig: overTCP, IdleTimeout: time.Duration(config.IdleTimeoutNs),
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: config.MaxConcurrentStreams},
		ReadTimeout: time.Duration(config.Program.ReadTimeoutNs), WriteTimeout: time.Duration(config.Program.WriteTimeoutNs),
		ErrorLog: log.New(s, "", 0),
	}
	go func() { failed <- server.ServeTLS(listener{tcp.(*net.TCPListener), config.TCPNoDelay}, "", "") }()
	closeQUIC, err := serveQUIC(config, s, overQUIC, failed)
	if err != nil {
		return err
	}
	err = say("ready", map[string]any{
		"address": config.Address, "port": config.Port, "protocols": []string{"h1", "h2", "h3"}, "workers": 1,
		"tcp_congestion_control": nil, "tcp_nodelay": config.TCPNoDelay, "faults": map[string]any{},
		"relay": map[string]any{"service": s.Service, "services": s.found},
	})
	if err != nil {
		return err
	}
	select {
	case err = <-failed: // neither ends by itself but for an error
		return err
	case <-ctx.Done():
	}
	for _, other := range s.callers {
		other.closeAll()
	}
	_ = server.Close()
	closeQUIC()
	if errors.Is(context.Cause(ctx), errStdinClosed) {
		return nil
	}
	return say("summary", s.summary(startedNs))
}

func (s *service) summary(startedNs int64) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := map[string]any{}
	for name, other := range s.callers {
		calls[name] = map[string]any{
			"protocol": other.protocol, "protocols_spoken": other.spoken, "status": other.statuses, "errors": other.errors,
			"retried": other.retried, "connections": other.opened.Load(), "connections_lost_idle": other.lostIdle.Load(),
			"key_exchange": other.keyExchange(), "tcp": other.tcp.summary(),
		}
	}
	user, system, rss := usage()
	return map[string]any{
		"service": s.Service, "requests": s.requests, "errors": s.errors, "calls": calls, "started_ns": startedNs,
		"ended_ns": nowNs(), "cpu_user_ns": user, "cpu_system_ns": system, "max_rss_bytes": rss,
	}
}
