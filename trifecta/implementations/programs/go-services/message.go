package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

const (
	maxMessageOctets = 16_000_000
	metaField        = "trifecta-meta"
	cycleField       = "trifecta-cycle"
	jsonType         = "application/json"
	maxDepth         = 64
)

// entry is what a service says of one call, or of itself when it makes none. Times in ns on CLOCK_MONOTONIC.
type entry struct {
	Service     string  `json:"service"`
	To          *string `json:"to"`
	Method      string  `json:"method"`
	Path        string  `json:"path"`
	ArrivedNs   *int64  `json:"arrived_ns"`
	ForwardedNs *int64  `json:"forwarded_ns"`
	SecuredNs   *int64  `json:"secured_ns"`
	ReturnedNs  *int64  `json:"returned_ns"`
	RepliedNs   *int64  `json:"replied_ns"`
	Status      *int    `json:"status"`
	Error       *string `json:"error"`
}

// clientEntry is what the client says of its call.
type clientEntry struct {
	Service     string `json:"service"`
	To          string `json:"to"`
	Method      string `json:"method"`
	Path        string `json:"path"`
	ForwardedNs int64  `json:"forwarded_ns"`
}

// message is {"message": {"meta": [...], "body": ...}}, its parts as they came.
type message struct {
	meta []byte // the entries, without the brackets around them
	body []byte // nil: none
}

// parseMessage reads a message; false when it is none.
func parseMessage(content []byte) (message, bool) {
	var envelope struct {
		Message *struct {
			Meta json.RawMessage `json:"meta"`
			Body json.RawMessage `json:"body"`
		} `json:"message"`
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&envelope); err != nil || envelope.Message == nil || decoder.More() {
		return message{}, false
	}
	meta, ok := inside(envelope.Message.Meta)
	body := envelope.Message.Body
	if bytes.Equal(body, []byte("null")) {
		body = nil
	}
	return message{meta: meta, body: body}, ok
}

// inside is what is between the brackets of a JSON list.
func inside(list []byte) ([]byte, bool) {
	list = bytes.TrimSpace(list)
	if len(list) < 2 || list[0] != '[' || list[len(list)-1] != ']' {
		return nil, false
	}
	return bytes.TrimSpace(list[1 : len(list)-1]), true
}

// appendEntries appends entries that are JSON already, behind a comma where one is needed.
func appendEntries(to, entries []byte) []byte {
	if len(entries) == 0 {
		return to
	}
	if len(to) > 0 && to[len(to)-1] != '[' {
		to = append(to, ',')
	}
	return append(to, entries...)
}

func appendEntry(to []byte, one any) []byte {
	text, err := json.Marshal(one)
	if err != nil {
		panic(err) // structs of texts and numbers
	}
	return appendEntries(to, text)
}

// write puts a message together; without a body when that is nil.
func write(meta, body []byte) []byte {
	out := make([]byte, 0, len(meta)+len(body)+48)
	out = append(out, `{"message":{"meta":[`...)
	out = append(append(out, meta...), ']')
	if body != nil {
		out = append(append(out, `,"body":`...), body...)
	}
	return append(out, `}}`...)
}

// filler is a JSON text of so many letters.
func filler(octets int) []byte {
	text := make([]byte, 0, octets+2)
	text = append(text, '"')
	for place := range octets {
		text = append(text, 'a'+byte(place%26))
	}
	return append(text, '"')
}

// bodies are those that a client sends in turn: filler, or the files *.json of a folder.
func (c *messageConfig) bodies() ([][]byte, error) {
	if c.BodyBytes != nil {
		return [][]byte{filler(*c.BodyBytes)}, nil
	}
	paths, err := filepath.Glob(filepath.Join(c.Folder, "*.json"))
	if err != nil || len(paths) == 0 {
		return nil, badInput{&os.PathError{Op: "message.folder holds no file *.json", Path: c.Folder, Err: os.ErrNotExist}}
	}
	slices.Sort(paths)
	var bodies [][]byte
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, badInput{err}
		}
		if !json.Valid(text) {
			return nil, badInput{&os.PathError{Op: "message.folder", Path: path, Err: os.ErrInvalid}}
		}
		bodies = append(bodies, bytes.TrimSpace(text))
	}
	return bodies, nil
}

// hasContent tells whether a request of a method carries a message.
func hasContent(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

func known(method string) bool {
	return hasContent(method) || method == http.MethodGet || method == http.MethodHead || method == http.MethodDelete
}

// metaOf are the entries of a response, which HEAD has in a field; false when it is no message.
func metaOf(method string, response *outcome) ([]byte, bool) {
	if method == http.MethodHead {
		return inside([]byte(response.meta))
	}
	found, ok := parseMessage(response.content)
	return found.meta, ok
}

// hop is a call of one service by another, as the span row has it. A time of 0 is not known.
type hop struct {
	depth                                                  int
	caller, callee, method, path, class                    string
	startedNs, securedNs, arrivedNs, repliedNs, returnedNs int64
	status                                                 int
}

// walk goes through the entries of an answer, which stand in the order of the calls, the caller's before the callee's.
type walk struct {
	entries []entry
	calls   []hop
}

// hopsOf are the calls that entries tell of when the first service is callee, and when the request reached that and was
// answered; false: they do not fit together.
func hopsOf(meta []byte, callee string) (calls []hop, arrivedNs, repliedNs int64, ok bool) {
	w := &walk{}
	if json.Unmarshal(slices.Concat([]byte("["), meta, []byte("]")), &w.entries) != nil {
		return nil, 0, 0, false
	}
	arrivedNs, repliedNs, there, ok := w.visit(callee, 1)
	return w.calls, arrivedNs, repliedNs, ok && there && len(w.entries) == 0
}

// visit takes the entries of one visit of a service with all that it called. A service that makes several calls has as many
// entries, all of which say when the request arrived; that tells them from those of a later call of the same service.
func (w *walk) visit(service string, depth int) (arrivedNs, repliedNs int64, there, ok bool) {
	if len(w.entries) == 0 || w.entries[0].Service != service {
		return 0, 0, false, true
	}
	if depth > maxDepth {
		return 0, 0, false, false
	}
	arrivedNs = orZero(w.entries[0].ArrivedNs)
	for len(w.entries) > 0 {
		one := w.entries[0]
		if one.Service != service || orZero(one.ArrivedNs) != arrivedNs {
			break
		}
		w.entries = w.entries[1:]
		if one.RepliedNs != nil {
			repliedNs = *one.RepliedNs
		}
		if one.To == nil {
			break
		}
		if one.ForwardedNs == nil {
			return 0, 0, false, false
		}
		place := len(w.calls)
		w.calls = append(w.calls, hop{
			depth: depth, caller: one.Service, callee: *one.To, method: one.Method, path: one.Path,
			startedNs: *one.ForwardedNs, securedNs: orZero(one.SecuredNs), returnedNs: orZero(one.ReturnedNs),
			status: orZero(one.Status), class: orZero(one.Error),
		})
		arrived, replied, reached, fits := w.visit(*one.To, depth+1)
		if !fits {
			return 0, 0, false, false
		}
		if reached {
			w.calls[place].arrivedNs, w.calls[place].repliedNs = arrived, replied
		}
	}
	return arrivedNs, repliedNs, true, true
}

func orZero[T any](value *T) T {
	if value == nil {
		var zero T
		return zero
	}
	return *value
}

// orNil is nil for the zero value: what did not happen is null in an entry.
func orNil[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

func cycleName(ordinal int64) string {
	return strconv.FormatInt(ordinal, 10)
}
