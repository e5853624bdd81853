package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	attemptsApartNs  = 10_000_000 // a dead path must not spin
	deadPathFailures = 20
)

// run is one job on its way: a closed loop of connections x streams.
type run struct {
	job   *job
	dialer   *dialer
	template *http.Request
	verify   bool
	expected int64

	ctx       context.Context
	started   atomic.Int64
	responded atomic.Bool
	failures  atomic.Int64
	dead      atomic.Bool
	lostIdle  atomic.Int64

	mu   sync.Mutex
	rows []row
}

func newRun(ctx context.Context, e *job) (*run, error) {
	dialer, err := newDialer(e)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(fmt.Sprintf("https://%s:%d%s", e.ServerName, e.Port, e.Path))
	if err != nil {
		return nil, err
	}
	template, err := http.NewRequest(e.Method, address.String(), nil)
	if err != nil {
		return nil, err
	}
	return &run{
		job: e, dialer: dialer, template: template, verify: e.verifiesContent(), expected: e.expectedContent(), ctx: ctx,
	}, nil
}

// do makes all requests and returns when each has ended.
func (r *run) do() ending {
	var before, after unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &before)
	slots := make([]slot, r.job.Connections)
	if r.job.ConnectionMode == "reused" {
		// Requests begin when every connection is open or has failed once.
		each(len(slots), func(i int) { r.prepare(&slots[i]) })
		each(len(slots)*r.job.Streams, func(i int) { r.reuse(&slots[i%len(slots)]) })
	} else {
		each(len(slots)*r.job.Streams, func(int) { r.renew() })
	}
	_ = unix.Getrusage(unix.RUSAGE_SELF, &after)
	for i := range slots {
		if slots[i].connection != nil {
			slots[i].connection.close()
		}
	}
	return ending{
		Ended: r.ended(), ConnectionsOpened: r.dialer.opened.Load(), ConnectionsLostIdle: r.lostIdle.Load(),
		KeyExchange: r.dialer.keyExchange(), CPUNs: cpuNs(&after) - cpuNs(&before),
	}
}

func (r *run) ended() string {
	switch cause := context.Cause(r.ctx); {
	case r.started.Load() >= r.job.Requests:
		return "requests"
	case errors.Is(cause, errInterrupted):
		return "signal"
	case cause != nil:
		return "total_timeout"
	}
	return "no_response"
}

func each(count int, do func(int)) {
	var group sync.WaitGroup
	for i := range count {
		group.Go(func() { do(i) })
	}
	group.Wait()
}

func cpuNs(usage *unix.Rusage) int64 {
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// mayStart tells whether another request may begin.
func (r *run) mayStart() bool {
	return r.started.Load() < r.job.Requests && !r.dead.Load() && r.ctx.Err() == nil
}

// next takes the next request; its ordinal, or false when none is left.
func (r *run) next() (int64, bool) {
	if !r.mayStart() {
		return 0, false
	}
	ordinal := r.started.Add(1) - 1
	if ordinal >= r.job.Requests {
		r.started.Add(-1)
		return 0, false
	}
	return ordinal, true
}

// keep judges a row and keeps it.
func (r *run) keep(to []row, one *row) []row {
	if one.firstByteNs != 0 {
		r.responded.Store(true)
	} else if one.class != "" && r.failures.Add(1) >= deadPathFailures && !r.responded.Load() {
		r.dead.Store(true)
	}
	return append(to, *one)
}

func (r *run) hand(rows []row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, rows...)
}

// slot is the place of a connection that is used again and again, and replaced when it broke.
type slot struct {
	mu         sync.Mutex
	connection *connection
	failed     string // why the first attempt failed, until the first worker wrote the row
	first      *connection
}

func (r *run) prepare(s *slot) {
	c, class := r.dialer.open(r.ctx)
	if class != "" {
		s.first, s.failed = c, class
		return
	}
	s.connection = c
}

// take gives the slot's connection, opened anew if need be; nil, and why, when it cannot be opened. One tries at a time.
func (r *run) take(s *slot) (*connection, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != "" {
		c, class := s.first, s.failed
		s.first, s.failed = nil, ""
		r.pause()
		return c, class
	}
	if s.connection != nil && s.connection.lost() {
		r.lostIdle.Add(1)
		r.retire(s, s.connection)
	}
	if s.connection == nil {
		if r.ctx.Err() != nil {
			return &connection{number: r.dialer.number.Load(), connectNs: nowNs()}, classOfCause(context.Cause(r.ctx))
		}
		c, class := r.dialer.open(r.ctx)
		if class != "" {
			r.pause()
			return c, class
		}
		s.connection = c
	}
	s.connection.users++
	return s.connection, ""
}

func (r *run) pause() {
	select {
	case <-time.After(attemptsApartNs):
	case <-r.ctx.Done():
	}
}

// retire takes a connection out of use; it is closed when nobody has a request on it. The slot is locked.
func (r *run) retire(s *slot, c *connection) {
	if s.connection == c {
		s.connection = nil
	}
	if c.users == 0 {
		c.close()
	}
}

func (r *run) giveBack(s *slot, c *connection, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.users--
	if broken || s.connection != c {
		r.retire(s, c)
	}
}

// reuse is one of the streams of a slot's connection: a request after the other.
func (r *run) reuse(s *slot) {
	rows := make([]row, 0, 256)
	defer func() { r.hand(rows) }()
	w := r.newWorker()
	ordinal, unsent := int64(0), false
	for unsent || r.mayStart() {
		c, class := r.take(s)
		if !unsent {
			var ok bool
			if ordinal, ok = r.next(); !ok {
				if class == "" {
					r.giveBack(s, c, false)
				} else {
					r.lostIdle.Add(1) // no request needed it
				}
				return
			}
		}
		one := row{ordinal: ordinal, class: class}
		if class != "" {
			one.startedNs = c.connectNs
			c.describe(&one)
			rows, unsent = r.keep(rows, &one), false
			continue
		}
		one.startedNs = nowNs()
		sent, broken := w.exchange(c, &one)
		r.giveBack(s, c, broken)
		// A connection that ended before anything of the request was sent was lost idle; the request is sent on another,
		// once.
		if !sent && !unsent && one.class != "" && r.ctx.Err() == nil {
			r.lostIdle.Add(1)
			unsent = true
			continue
		}
		unsent = false
		c.describe(&one)
		rows = r.keep(rows, &one)
	}
}

// renew opens a connection for every request.
func (r *run) renew() {
	rows := make([]row, 0, 256)
	defer func() { r.hand(rows) }()
	w := r.newWorker()
	for {
		ordinal, ok := r.next()
		if !ok {
			return
		}
		c, class := r.dialer.open(r.ctx)
		one := row{ordinal: ordinal, startedNs: c.connectNs, class: class}
		if class == "" {
			w.exchange(c, &one)
			c.close()
		}
		c.describe(&one)
		rows = r.keep(rows, &one)
		if class != "" {
			r.pause()
		}
	}
}
