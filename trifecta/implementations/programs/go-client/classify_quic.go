package main

import (
	"errors"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// Alerts of RFC 8446, section 6.
const (
	alertProtocolVersion       = 70
	alertNoApplicationProtocol = 120
)

func classOfQUIC(err error) string {
	if _, ok := errors.AsType[*quic.VersionNegotiationError](err); ok {
		return "quic:version"
	}
	if _, ok := errors.AsType[*quic.IdleTimeoutError](err); ok {
		return "quic:timeout"
	}
	if _, ok := errors.AsType[*quic.HandshakeTimeoutError](err); ok {
		return "connect_timeout"
	}
	if _, ok := errors.AsType[*quic.StatelessResetError](err); ok {
		return "reset"
	}
	if lost, ok := errors.AsType[*quic.TransportError](err); ok {
		return classOfTransport(lost)
	}
	if lost, ok := errors.AsType[*quic.ApplicationError](err); ok {
		return classOfCode(lost.Remote, http3.ErrCode(lost.ErrorCode), true)
	}
	if lost, ok := errors.AsType[*quic.StreamError](err); ok {
		return classOfCode(lost.Remote, http3.ErrCode(lost.ErrorCode), false)
	}
	return ""
}

func classOfTransport(lost *quic.TransportError) string {
	code := uint64(lost.ErrorCode)
	switch {
	case code == 0x0 || code == 0xc: // an application closed before the handshake was complete (RFC 9000, 10.2.3)
		return "closed"
	case lost.Remote && code == 0x2: // CONNECTION_REFUSED (RFC 9000, 20.1)
		return "connect_refused"
	case code < 0x100 || code > 0x1ff: // CRYPTO_ERROR (RFC 9001, 4.8)
		return "quic:transport"
	case code&0xff == alertProtocolVersion:
		return "tls:version"
	case code&0xff == alertNoApplicationProtocol:
		return "tls:alpn"
	case lost.Remote:
		return "tls:alert"
	}
	return "tls"
}

// classOfCode is the class of an HTTP/3 error code (RFC 9114, 8.1), of a connection or a stream.
func classOfCode(remote bool, code http3.ErrCode, connection bool) string {
	switch {
	case !remote:
		return "malformed:http3"
	case code == http3.ErrCodeRequestRejected:
		return "goaway"
	case connection && (code == http3.ErrCodeNoError || code == 0):
		return "closed"
	}
	return "reset"
}
