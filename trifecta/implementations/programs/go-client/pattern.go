package main

import (
	"bytes"
	"io"
	"sync/atomic"
)

const alphabet = 26

// pattern begins anew every 26 octets, so any piece of content is a piece of it.
var pattern = func() []byte {
	made := make([]byte, contentReadOctets+alphabet)
	for i := range made {
		made[i] = 'a' + byte(i%alphabet)
	}
	return made
}()

// matches tells whether octets, which stand at offset of the content, are the pattern's.
func matches(offset int64, octets []byte) bool {
	start := offset % alphabet
	return bytes.Equal(octets, pattern[start:start+int64(len(octets))])
}

// patternReader is a request's content. It counts in an atomic: a response may come before all was read.
type patternReader struct {
	octets int64
	given  atomic.Int64
}

// Read implements io.Reader.
func (p *patternReader) Read(into []byte) (int, error) {
	at := p.given.Load()
	left := p.octets - at
	if left == 0 {
		return 0, io.EOF
	}
	piece := pattern[at%alphabet:]
	n := copy(into, piece[:min(left, int64(len(piece)))])
	p.given.Add(int64(n))
	return n, nil
}

// Close implements io.Closer.
func (p *patternReader) Close() error {
	return nil
}
