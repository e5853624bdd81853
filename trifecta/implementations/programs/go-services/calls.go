package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const attemptsApart = 10 * time.Millisecond // a dead path must not spin

// outcome is what became of a call. A time of 0 did not happen.
type outcome struct {
	connection    *connection
	first         bool // the first on its connection
	startedNs     int64
	requestSentNs int64
	firstByteNs   int64
	doneNs        int64
	status        int
	bytesOut      int64
	content       []byte
	meta          string // of HEAD
	class         string
	retried       int
}

// caller makes the calls of one service by another.
type caller struct {
	*dialer
	connections int
	streams     int

	mu       sync.Mutex
	places   []*place
	room     *sync.Cond
	spoken   map[string]int64
	statuses map[string]int64
	errors   map[string]int64
	retried  int64
	lostIdle atomic.Int64
}

// place is that of a kept connection.
type place struct {
	connection *connection // nil until it is open
	ready      chan struct{}
	users      int
	dead       bool
}

func newCaller(to target, connections, streams int) (*caller, error) {
	d, err := newDialer(to)
	if err != nil {
		return nil, err
	}
	if to.program.OwnTLS && to.protocol != "h3" { // HTTP/1.1: what was meant as streams becomes connections
		connections, streams = connections*streams, 1
	}
	if to.protocol == "h1" {
		streams = 1
	}
	return newCallerOn(d, connections, streams), nil
}

func newCallerOn(d *dialer, connections, streams int) *caller {
	c := &caller{
		dialer: d, connections: connections, streams: streams,
		spoken: map[string]int64{}, statuses: map[string]int64{}, errors: map[string]int64{},
	}
	c.room = sync.NewCond(&c.mu)
	return c
}

// call makes a request, and again as often as the program was asked to. content is asked for what to send, given when the
// call began.
func (c *caller) call(ctx context.Context, method, path string, fields http.Header, content func(int64) []byte) outcome {
	delay := time.Duration(c.program.RetryDelayNs)
	one := c.once(ctx, method, path, fields, content)
	for attempt := 1; attempt < c.program.Attempts && one.class != "" && ctx.Err() == nil; attempt++ {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return c.counted(one)
		}
		delay *= 2
		began := one.startedNs
		one = c.once(ctx, method, path, fields, content)
		one.startedNs, one.retried = began, attempt
	}
	return c.counted(one)
}

// once makes a request; on a connection that ended before anything of it was sent it is sent on another, once.
func (c *caller) once(ctx context.Context, method, path string, fields http.Header, content func(int64) []byte) outcome {
	if !c.reused {
		opened, class := c.open(ctx)
		one := outcome{connection: opened, first: true, startedNs: opened.startedNs, class: class}
		if class != "" {
			return one
		}
		c.exchange(ctx, &one, method, path, fields, content(one.startedNs))
		opened.close()
		return one
	}
	for again := false; ; again = true {
		startedNs := nowNs()
		p, class := c.take(ctx)
		one := outcome{connection: p.connection, startedNs: startedNs, class: class}
		if class != "" {
			return one
		}
		one.first = p.connection.told.CompareAndSwap(false, true)
		sent, broken := c.exchange(ctx, &one, method, path, fields, content(startedNs))
		c.giveBack(p, broken)
		if sent || again || one.first || one.class == "" || ctx.Err() != nil {
			return one
		}
		c.lostIdle.Add(1)
	}
}

func (c *caller) counted(one outcome) outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.status != 0 {
		c.statuses[strconv.Itoa(one.status)]++
		c.spoken[one.connection.protocol]++
	}
	if one.class != "" {
		c.errors[one.class]++
	}
	c.retried += int64(one.retried)
	return one
}

// take gives a place with room on its connection, which is opened when there is none.
func (c *caller) take(ctx context.Context) (*place, string) {
	c.mu.Lock()
	for {
		for _, p := range slices.Clone(c.places) {
			if p.connection != nil && p.connection.lost() {
				c.lostIdle.Add(1)
				c.retire(p)
				continue
			}
			if p.users < c.streams {
				p.users++
				c.mu.Unlock()
				select {
				case <-p.ready:
				case <-ctx.Done():
				}
				c.mu.Lock()
				if p.connection != nil && !p.dead {
					c.mu.Unlock()
					return p, ""
				}
				p.users--
			}
		}
		if ctx.Err() != nil {
			c.mu.Unlock()
			return &place{connection: &connection{number: c.number.Load(), connectNs: nowNs()}}, classOfCause(context.Cause(ctx))
		}
		if len(c.places) < c.connections {
			return c.add(ctx)
		}
		c.room.Wait()
	}
}

// add opens a connection; the lock is held before, and not after.
func (c *caller) add(ctx context.Context) (*place, string) {
	p := &place{ready: make(chan struct{}), users: 1}
	c.places = append(c.places, p)
	c.mu.Unlock()
	opened, class := c.open(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(p.ready)
	if class != "" {
		c.retire(p)
		return &place{connection: opened}, class
	}
	p.connection = opened
	return p, ""
}

// retire takes a place out of use; its connection is closed when nobody has a request on it. The lock is held.
func (c *caller) retire(p *place) {
	p.dead = true
	if place := slices.Index(c.places, p); place >= 0 {
		c.places = slices.Delete(c.places, place, place+1)
	}
	if p.users == 0 && p.connection != nil {
		p.connection.close()
	}
	c.room.Broadcast()
}

func (c *caller) giveBack(p *place, broken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.users--
	if broken || p.dead {
		c.retire(p)
	}
	c.room.Signal()
}

// prepare opens the connections that a client keeps, before its first request.
func (c *caller) prepare(ctx context.Context) {
	c.mu.Lock()
	if p, class := c.add(ctx); class == "" {
		c.giveBack(p, false)
	}
}

func (c *caller) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range slices.Clone(c.places) {
		p.users = 0
		c.retire(p)
	}
}

// exchange makes one request on a connection. sent: something of it went to the connection; broken: the connection is of no
// use any more.
func (c *caller) exchange(
	ctx context.Context, one *outcome, method, path string, fields http.Header, content []byte,
) (sent, broken bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(c.requestTimeoutNs), errRequestTimeout)
	defer cancel()
	var wroteHeaders atomic.Bool // called back from goroutines of the connection, as all these
	var wroteRequest, firstByte atomic.Int64
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { wroteHeaders.Store(true) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				wroteRequest.Store(nowNs())
			}
		},
		GotFirstResponseByte: func() { firstByte.CompareAndSwap(0, nowNs()) },
	})
	url := fmt.Sprintf("https://%s:%d%s", c.name, c.peer.Port(), path)
	request, err := http.NewRequestWithContext(traced, method, url, nil)
	if err != nil {
		one.class = "malformed"
		return false, true
	}
	request.Header = fields.Clone()
	if len(content) > 0 {
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
		one.bytesOut = int64(len(content))
	}
	response, err := one.connection.roundTripper.RoundTrip(request)
	inContent := err == nil
	if err == nil {
		if firstByte.Load() == 0 { // a stack that does not tell: the head is there
			firstByte.Store(nowNs())
		}
		one.status, one.meta = response.StatusCode, response.Header.Get(metaField)
		if one.connection.bare {
			one.connection.protocol = fmt.Sprintf("h%d", response.ProtoMajor) // without ALPN the answer tells
		}
		one.content, err = io.ReadAll(io.LimitReader(response.Body, maxMessageOctets+1))
		_ = response.Body.Close()
	}
	if err == nil {
		one.doneNs = nowNs()
		if len(one.content) > maxMessageOctets {
			one.class = "length"
		}
	} else {
		one.class = classOf(ctx, err, false, inContent)
		if one.class == "malformed" {
			log.Printf("not classified: %T: %v", err, err)
		}
	}
	one.requestSentNs, one.firstByteNs = wroteRequest.Load(), firstByte.Load()
	if one.requestSentNs > one.firstByteNs && one.firstByteNs != 0 {
		one.requestSentNs = 0 // another goroutine noted it, after the answer: not when it was
	}
	sent = wroteHeaders.Load() || one.status != 0
	overH1 := c.protocol == "h1" || c.program.OwnTLS && c.protocol != "h3"
	broken = err != nil && (overH1 || !sent || brokenBy(err) || one.connection.lost())
	return sent, broken
}
