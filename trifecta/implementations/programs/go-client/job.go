package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// job is what the client is asked to do: trifecta/implementations/client.py, class Job. Times in ns.
type job struct {
	Protocol         string  `json:"protocol"`
	Address          string  `json:"address"`
	Port             int     `json:"port"`
	ServerName       string  `json:"server_name"`
	CAFile           string  `json:"ca_file"`
	Connections      int     `json:"connections"`
	Streams          int     `json:"streams"`
	ConnectionMode   string  `json:"connection_mode"`
	Requests         int64   `json:"requests"`
	WarmupRequests   int64   `json:"warmup_requests"`
	Method           string  `json:"method"`
	Path             string  `json:"path"`
	RequestBodyBytes int64   `json:"request_body_bytes"`
	ExpectBodyBytes  *int64  `json:"expect_body_bytes"`
	ExpectStatus     *int    `json:"expect_status"`
	ConnectTimeoutNs int64   `json:"connect_timeout_ns"`
	RequestTimeoutNs int64   `json:"request_timeout_ns"`
	TotalTimeoutNs   int64   `json:"total_timeout_ns"`
	TLSVersion       string  `json:"tls_version"`
	KeyExchange      string  `json:"key_exchange"`
	Cipher           string  `json:"cipher"`
	TCPNoDelay       bool    `json:"tcp_nodelay"`
	KeylogFile       *string `json:"keylog_file"`
	QlogDir          *string `json:"qlog_dir"`
	// DeadlineNs is when all must have ended, on CLOCK_MONOTONIC.
	DeadlineNs int64 `json:"deadline_ns"`
	// ownTLS: net/http gets its TLS configuration and nothing else, as in much code that was written for HTTP/2.
	ownTLS bool
}

func readJob(path string) (*job, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	e := &job{}
	if err := decoder.Decode(e); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one document", path)
	}
	switch {
	case e.Protocol != "h1" && e.Protocol != "h2" && e.Protocol != "h3":
		return nil, errors.New("protocol: must be h1, h2 or h3")
	case e.ConnectionMode != "new" && e.ConnectionMode != "reused":
		return nil, errors.New("connection_mode: must be new or reused")
	case e.Connections < 1 || e.Streams < 1 || e.Requests < 1:
		return nil, errors.New("connections, streams, requests: must be 1 or more")
	case e.Protocol == "h1" && e.Streams != 1:
		return nil, errors.New("streams: must be 1 with h1; nothing is pipelined")
	case e.Protocol == "h3" && e.TLSVersion != "1.3":
		return nil, errors.New("tls_version: must be 1.3 with h3 (RFC 9001, 4.2)")
	}
	return e, nil
}

// ownTLSConfig: such a transport speaks HTTP/1.1, so what was meant as streams becomes connections, as in its pool.
func (e *job) ownTLSConfig() {
	e.ownTLS = true
	if e.Protocol != "h3" {
		e.Connections, e.Streams = e.Connections*e.Streams, 1
	}
}

// verifiesContent: content of these paths is the pattern, octet i is 'a' + i mod 26.
func (e *job) verifiesContent() bool {
	return len(e.Path) > 7 && e.Path[:7] == "/bytes/"
}

// expectedContent is the number of content octets to expect, -1 for any.
func (e *job) expectedContent() int64 {
	switch {
	case e.Method == "HEAD":
		return 0
	case e.ExpectBodyBytes == nil:
		return -1
	}
	return *e.ExpectBodyBytes
}
