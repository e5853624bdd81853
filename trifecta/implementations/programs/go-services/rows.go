package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
)

// row is one request, as in the sample row of docs/architecture.md, section 1.1. A time of 0 did not happen.
type row struct {
	ordinal                                int64
	connection                             uint32
	client                                 int
	warmup                                 bool
	startedNs, connectNs, tcpNs, securedNs int64
	requestSentNs, firstByteNs, doneNs     int64
	protocol, tlsVersion, cipher           string
	resumed                                bool
	status                                 int
	bytesOut, bytesIn                      int64
	class                                  string
}

var sampleColumns = []string{
	"request", "connection", "client", "warmup", "started_ns", "connect_start_ns", "tcp_connected_ns", "secured_ns",
	"request_sent_ns", "first_byte_ns", "done_ns", "protocol", "tls_version", "cipher", "resumed", "zero_rtt", "status",
	"bytes_out", "bytes_in", "error",
}

func rowOf(ordinal int64, client int, warmup bool, one *outcome) row {
	c := one.connection
	made := row{
		ordinal: ordinal, connection: c.number, client: client, warmup: warmup, startedNs: one.startedNs,
		requestSentNs: one.requestSentNs, firstByteNs: one.firstByteNs, doneNs: one.doneNs, protocol: c.protocol,
		tlsVersion: c.tlsVersion, cipher: c.cipher, resumed: c.resumed, status: one.status, bytesOut: one.bytesOut,
		bytesIn: int64(len(one.content)), class: one.class,
	}
	if one.first || one.doneNs == 0 && c.securedNs == 0 {
		made.connectNs, made.tcpNs, made.securedNs = c.connectNs, c.tcpNs, c.securedNs
	}
	return made
}

func (r *row) values() []any {
	return []any{
		r.ordinal, r.connection, r.client, r.warmup, r.startedNs, orNil(r.connectNs), orNil(r.tcpNs), orNil(r.securedNs),
		orNil(r.requestSentNs), orNil(r.firstByteNs), orNil(r.doneNs), orNil(r.protocol), orNil(r.tlsVersion), orNil(r.cipher),
		r.resumed, false, orNil(r.status), r.bytesOut, r.bytesIn, orNil(r.class),
	}
}

// span is a hop of a cycle, as in the span row there.
type span struct {
	row     *row
	ordinal int
	hop
}

var spanColumns = []string{
	"request", "connection", "client", "warmup", "ordinal", "depth", "caller", "callee", "method", "path", "started_ns",
	"secured_ns", "arrived_ns", "replied_ns", "returned_ns", "status", "error",
}

func (s *span) values() []any {
	return []any{
		s.row.ordinal, s.row.connection, s.row.client, s.row.warmup, s.ordinal, s.depth, s.caller, s.callee, s.method, s.path,
		s.startedNs, orNil(s.securedNs), orNil(s.arrivedNs), orNil(s.repliedNs), orNil(s.returnedNs), orNil(s.status),
		orNil(s.class),
	}
}

// writeRows writes samples as trifecta/implementations/services/rows.py reads them: a line of column names, an array of
// values for each row in the order of their start, and a line that says how many they are.
func writeRows(path string, rows []row) error {
	return writeLines(path, sampleColumns, len(rows), func(i int) []any { return rows[i].values() })
}

func writeSpans(path string, spans []span) error {
	return writeLines(path, spanColumns, len(spans), func(i int) []any { return spans[i].values() })
}

func writeLines(path string, columns []string, count int, values func(int) []any) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(file, 1<<18)
	if err := lines(out, columns, count, values); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

func lines(out *bufio.Writer, columns []string, count int, values func(int) []any) error {
	encoder := json.NewEncoder(io.Writer(out))
	if err := encoder.Encode(map[string]any{"columns": columns}); err != nil {
		return err
	}
	for i := range count {
		if err := encoder.Encode(values(i)); err != nil {
			return err
		}
	}
	if err := encoder.Encode(map[string]any{"rows": count}); err != nil {
		return err
	}
	return out.Flush()
}
