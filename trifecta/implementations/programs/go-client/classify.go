package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/textproto"
	"os"
	"strings"
	"syscall"
)

// Why a context ended; context.Cause tells.
var (
	errRequestTimeout = errors.New("request timeout")
	errConnectTimeout = errors.New("connect timeout")
	errTotalTimeout   = errors.New("total timeout")
	errInterrupted    = errors.New("interrupted")
	errALPN           = errors.New("another protocol was negotiated")
)

// classOfCause is the error class of a context that ended.
func classOfCause(cause error) string {
	switch {
	case errors.Is(cause, errInterrupted):
		return "interrupted"
	case errors.Is(cause, errConnectTimeout):
		return "connect_timeout"
	}
	return "timeout"
}

// classOf is the error class (docs/architecture.md, section 1.1) of err. connecting: the connection did not stand yet;
// inContent: the response's header section had come.
func classOf(ctx context.Context, err error, connecting, inContent bool) string {
	if ctx.Err() != nil {
		return classOfCause(context.Cause(ctx))
	}
	if class := classOfTLS(err); class != "" {
		return class
	}
	if class := classOfQUIC(err); class != "" {
		return class
	}
	if class := classOfSystem(err, connecting); class != "" {
		return class
	}
	switch {
	case errors.Is(err, errALPN):
		return "tls:alpn"
	case errors.Is(err, io.ErrUnexpectedEOF) && inContent:
		return "length"
	}
	if _, ok := errors.AsType[textproto.ProtocolError](err); ok {
		return "malformed:http1"
	}
	return classOfWords(err)
}

// classOfWords: the errors of net/http have no types, only words.
func classOfWords(err error) string {
	words := err.Error()
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(words, part) {
				return true
			}
		}
		return false
	}
	switch {
	case has("REFUSED_STREAM", "GOAWAY", "graceful shutdown"):
		return "goaway"
	case has("stream error", "RST_STREAM") && has("received from peer"):
		return "reset"
	case has("malformed HTTP", "malformed MIME", "bad Content-Length", "unsupported transfer encoding", "bad status code"):
		return "malformed:http1"
	case has("connection error:", "stream error:", "http2: ") && !has("client connection", "server closed"),
		has("more than declared Content-Length"):
		return "malformed:http2"
	case has("H3_", "http3: ", "too much data", "malformed header", "qpack"):
		return "malformed:http3"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		has("connection", "server closed", "transport closed", "connection closed"):
		return "closed"
	}
	return "malformed"
}

func classOfSystem(err error, connecting bool) string {
	number, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return "timeout"
		}
		return ""
	}
	switch number {
	case syscall.ECONNREFUSED:
		return "connect_refused"
	case syscall.ETIMEDOUT:
		if connecting {
			return "connect_timeout"
		}
		return "timeout"
	case syscall.ECONNRESET, syscall.EPIPE:
		if connecting {
			return "connect_reset"
		}
		return "reset"
	case syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN, syscall.EACCES, syscall.EPERM:
		return "unreachable"
	case syscall.EADDRNOTAVAIL:
		return "ports_exhausted"
	}
	return "socket"
}

func classOfTLS(err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "tls:certificate"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "tls:malformed"
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		words := ""
		if operation.Err != nil {
			words = operation.Err.Error()
		}
		switch operation.Op {
		case "remote error":
			switch {
			case strings.Contains(words, "no application protocol"):
				return "tls:alpn"
			case strings.Contains(words, "protocol version"):
				return "tls:version"
			}
			return "tls:alert"
		case "local error":
			return "tls:malformed"
		}
	}
	words := err.Error()
	switch {
	case strings.Contains(words, "unadvertised ALPN"):
		return "tls:alpn"
	case strings.Contains(words, "unsupported protocol version"):
		return "tls:version"
	case strings.HasPrefix(words, "tls: "), strings.HasPrefix(words, "x509: "):
		return "tls"
	}
	return ""
}
