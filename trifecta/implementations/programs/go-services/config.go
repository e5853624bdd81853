package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// programConfig are the switches of this program: trifecta/contract/services.py, class ProgramConfig.
type programConfig struct {
	// OwnTLS: net/http is given a TLS configuration and not told which protocols to speak, so it speaks HTTP/1.1.
	OwnTLS bool `json:"own_tls"`
	// Leak: a connection over TCP stays open after its one request, until it has been idle for so long.
	LeakNs int64 `json:"leak_ns"`
	// Verify: the certificates of others.
	Verify bool `json:"verify"`
	// Attempts at a call that fails, 1: never again; RetryDelayNs before the second, twice as long each time.
	Attempts     int   `json:"attempts"`
	RetryDelayNs int64 `json:"retry_delay_ns"`
	// ThinkNs passes between two requests of a client.
	ThinkNs int64 `json:"think_ns"`
	// NameServer is asked for a callee's address before each connection to it; nil: it is asked for once, at the start.
	NameServer *netip.AddrPort `json:"name_server"`
	// ReadTimeoutNs and WriteTimeoutNs are net/http's, 0: none. quic-go's HTTP/3 has no such limits.
	ReadTimeoutNs  int64 `json:"read_timeout_ns"`
	WriteTimeoutNs int64 `json:"write_timeout_ns"`
}

// originConfig is what a service is asked to be: the fields of trifecta/contract/origin.py that this program follows.
type originConfig struct {
	Address              string          `json:"address"`
	Port                 int             `json:"port"`
	CertificateFile      string          `json:"certificate_file"`
	KeyFile              string          `json:"key_file"`
	TCPNoDelay           bool            `json:"tcp_nodelay"`
	TLSVersions          []string        `json:"tls_versions"`
	IdleTimeoutNs        int64           `json:"idle_timeout_ns"`
	MaxConcurrentStreams int             `json:"max_concurrent_streams"`
	KeylogFile           *string         `json:"keylog_file"`
	Faults               json.RawMessage `json:"faults"`
	Relay                *relayConfig    `json:"relay"`
	Program              programConfig   `json:"program"`
}

type relayConfig struct {
	Service          string                   `json:"service"`
	Routes           map[string]routeConfig   `json:"routes"`
	Services         map[string]serviceConfig `json:"services"`
	IP               *string                  `json:"ip"`
	CAFile           string                   `json:"ca_file"`
	TLSVersion       string                   `json:"tls_version"`
	KeyExchange      string                   `json:"key_exchange"`
	Cipher           string                   `json:"cipher"`
	ConnectTimeoutNs int64                    `json:"connect_timeout_ns"`
	RequestTimeoutNs int64                    `json:"request_timeout_ns"`
}

type routeConfig struct {
	Calls  []callConfig `json:"calls"`
	Answer octets       `json:"answer"` // "meta": no filler
}

type callConfig struct {
	To     string `json:"to"`
	Method string `json:"method"` // "same": the one that came in
	Path   string `json:"path"`
	Body   octets `json:"body"` // "forward", "none"
}

type serviceConfig struct {
	Name           string  `json:"name"`
	Address        *string `json:"address"`
	Port           int     `json:"port"`
	Protocol       string  `json:"protocol"`
	ConnectionMode string  `json:"connection_mode"`
	Connections    int     `json:"connections"`
	Streams        int     `json:"streams"`
}

// octets is a number of octets of filler, or a word.
type octets struct {
	word   string
	number int
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *octets) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &o.word)
	}
	return json.Unmarshal(text, &o.number)
}

// loadConfig is what the client is asked to do: the fields of trifecta/contract/load.py that this program follows.
type loadConfig struct {
	Trial             string         `json:"trial"`
	Protocol          string         `json:"protocol"`
	Address           *string        `json:"address"`
	IP                *string        `json:"ip"`
	Port              int            `json:"port"`
	ServerName        string         `json:"server_name"`
	CAFile            string         `json:"ca_file"`
	Connections       int            `json:"connections"`
	Streams           int            `json:"streams"`
	ConnectionMode    string         `json:"connection_mode"`
	Requests          int64          `json:"requests"`
	RequestsPerClient int64          `json:"requests_per_client"`
	WarmupRequests    int64          `json:"warmup_requests"`
	Method            string         `json:"method"`
	Path              string         `json:"path"`
	Message           *messageConfig `json:"message"`
	Service           string         `json:"service"`
	To                string         `json:"to"`
	ExpectStatus      *int           `json:"expect_status"`
	ConnectTimeoutNs  int64          `json:"connect_timeout_ns"`
	RequestTimeoutNs  int64          `json:"request_timeout_ns"`
	TotalTimeoutNs    int64          `json:"total_timeout_ns"`
	TCPNoDelay        bool           `json:"tcp_nodelay"`
	TLSVersion        string         `json:"tls_version"`
	KeyExchange       string         `json:"key_exchange"`
	Cipher            string         `json:"cipher"`
	SamplesFile       string         `json:"samples_file"`
	SpansFile         string         `json:"spans_file"`
	KeylogFile        *string        `json:"keylog_file"`
	QlogDir           *string        `json:"qlog_dir"`
	Program           programConfig  `json:"program"`
	Among             *amongConfig   `json:"among"`
}

// amongConfig is the place of this client among others that are programs of their own: trifecta/contract/services.py.
type amongConfig struct {
	Number int64 `json:"number"`
	Of     int64 `json:"of"`
}

// spread is a number of this program's own as one that none of the others has; nil: there are no others.
func (a *amongConfig) spread(own int64) int64 {
	if a == nil {
		return own
	}
	return own*a.Of + a.Number
}

// beginConfig is the line that the clients are told when all of them are ready.
type beginConfig struct {
	BeginNs int64 `json:"begin_ns"`
}

type messageConfig struct {
	BodyBytes *int   `json:"body_bytes"`
	Folder    string `json:"folder"`
}

// read reads a configuration. Fields that this program does not follow are refused where the study is read
// (trifecta/design/workloads/services.py); here only what would end badly is.
func read[C any](line []byte) (*C, error) {
	config := new(C)
	if err := json.Unmarshal(line, config); err != nil {
		return nil, badInput{err}
	}
	return config, nil
}

func (c *originConfig) check() error {
	switch {
	case c.Relay == nil || len(c.Relay.Routes) == 0:
		return badInput{errors.New("relay: is missing, or has no routes; this program answers routes only")}
	case len(c.TLSVersions) != 1:
		return badInput{errors.New("tls_versions: must be one, of TCP; QUIC has 1.3")}
	case len(c.Faults) > 0 && !bytes.Equal(bytes.TrimSpace(c.Faults), []byte("{}")):
		return badInput{errors.New("faults: this program has none")}
	}
	for path, route := range c.Relay.Routes {
		for _, call := range route.Calls {
			if _, known := c.Relay.Services[call.To]; !known {
				return badInput{fmt.Errorf("relay.routes.%s: %s is not in relay.services", path, call.To)}
			}
		}
	}
	return nil
}

func (c *loadConfig) check() error {
	switch {
	case c.Connections < 1 || c.Streams < 1 || c.Requests+c.RequestsPerClient < 1:
		return badInput{errors.New("connections, streams, requests: must be 1 or more")}
	case c.To == "":
		return badInput{errors.New("to: is missing; this program makes cycles only")}
	case c.SamplesFile == "" || c.SpansFile == "":
		return badInput{errors.New("samples_file, spans_file: are missing")}
	case c.Among != nil && (c.Among.Number < 0 || c.Among.Number >= c.Among.Of || c.Connections*c.Streams != 1):
		return badInput{errors.New("among: number must be 0 or more and below of, and connections and streams 1")}
	}
	return nil
}

// find is the address of a name, as peerOf chooses it.
func find(name string, address, ip *string, port int) (netip.AddrPort, []string, error) {
	if address != nil {
		parsed, err := netip.ParseAddr(*address)
		return netip.AddrPortFrom(parsed, uint16(port)), nil, err
	}
	found, err := net.LookupHost(name)
	if err != nil {
		return netip.AddrPort{}, nil, err
	}
	peer, err := peerOf(name, found, ip, port)
	return peer, found, err
}

// peerOf is the first address of a name of the version of IP that is asked for; nil: of IPv4, else the first of IPv6.
func peerOf(name string, found []string, ip *string, port int) (netip.AddrPort, error) {
	var chosen netip.Addr
	for _, text := range found {
		parsed, err := netip.ParseAddr(text)
		if err != nil || ip != nil && versionOf(parsed) != *ip {
			continue
		}
		if !chosen.IsValid() || chosen.Is6() && parsed.Is4() {
			chosen = parsed
		}
	}
	if chosen.IsValid() {
		return netip.AddrPortFrom(chosen, uint16(port)), nil
	}
	if ip != nil {
		return netip.AddrPort{}, fmt.Errorf("%s resolves to no %s address", name, *ip)
	}
	return netip.AddrPort{}, fmt.Errorf("%s resolves to no address", name)
}

func versionOf(address netip.Addr) string {
	if address.Is4() {
		return "IPv4"
	}
	return "IPv6"
}
