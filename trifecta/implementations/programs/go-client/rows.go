package main

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"strconv"
)

// row is one request, as in the sample row of docs/architecture.md, section 1.1. A time of 0 did not happen.
type row struct {
	ordinal       int64
	connection    uint32
	startedNs     int64
	connectNs     int64
	tcpNs         int64
	securedNs     int64
	requestSentNs int64
	firstByteNs   int64
	doneNs        int64
	protocol      string
	tlsVersion    string
	cipher        string
	resumed       bool
	status        int
	bytesOut      int64
	bytesIn       int64
	class         string
}

var columns = []string{
	"connection", "started_ns", "connect_start_ns", "tcp_connected_ns", "secured_ns", "request_sent_ns", "first_byte_ns",
	"done_ns", "protocol", "tls_version", "cipher", "resumed", "zero_rtt", "status", "bytes_out", "bytes_in", "error",
}

// ending is the last line: what is known of the run as a whole, and that nothing is missing before it.
type ending struct {
	Rows              int    `json:"rows"`
	Ended             string `json:"ended"`
	ConnectionsOpened uint32 `json:"connections_opened"`
	// ConnectionsLostIdle broke while no request was on its way.
	ConnectionsLostIdle int64  `json:"connections_lost_idle"`
	KeyExchange         string `json:"key_exchange"`
	// What the requests cost, without start-up and output.
	CPUNs int64 `json:"cpu_ns"`
}

// writeRows writes one line of column names, one array for each row in the order of their start, and the ending.
func writeRows(to io.Writer, rows []row, end ending) error {
	slices.SortFunc(rows, func(a, b row) int { return int(a.ordinal - b.ordinal) })
	out := bufio.NewWriterSize(to, 1<<18)
	encoder := json.NewEncoder(out)
	if err := encoder.Encode(map[string]any{"columns": columns}); err != nil {
		return err
	}
	line := make([]byte, 0, 512)
	for i := range rows {
		line = rows[i].appendTo(line[:0])
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	end.Rows = len(rows)
	if err := encoder.Encode(map[string]any{"end": end}); err != nil {
		return err
	}
	return out.Flush()
}

func (r *row) appendTo(line []byte) []byte {
	line = append(line, '[')
	line = strconv.AppendUint(line, uint64(r.connection), 10)
	for _, ns := range [...]int64{
		r.startedNs, r.connectNs, r.tcpNs, r.securedNs, r.requestSentNs, r.firstByteNs, r.doneNs,
	} {
		line = appendNumber(append(line, ','), ns)
	}
	for _, text := range [...]string{r.protocol, r.tlsVersion, r.cipher} {
		line = appendText(append(line, ','), text)
	}
	line = strconv.AppendBool(append(line, ','), r.resumed)
	line = append(line, ",false,"...)
	line = appendNumber(line, int64(r.status))
	line = strconv.AppendInt(append(line, ','), r.bytesOut, 10)
	line = strconv.AppendInt(append(line, ','), r.bytesIn, 10)
	line = appendText(append(line, ','), r.class)
	return append(line, ']', '\n')
}

func appendNumber(line []byte, number int64) []byte {
	if number == 0 {
		return append(line, "null"...)
	}
	return strconv.AppendInt(line, number, 10)
}

func appendText(line []byte, text string) []byte {
	if text == "" {
		return append(line, "null"...)
	}
	return strconv.AppendQuote(line, text) // names of protocols, ciphers and classes: plain ASCII
}
