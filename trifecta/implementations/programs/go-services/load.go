package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const deadPathFailures = 20

// load is the client: a closed loop of connections x streams clients, each with a cycle in flight.
type load struct {
	*loadConfig
	bodies  [][]byte
	callers []*caller // one, or one for each kept connection
	ctx     context.Context

	started   atomic.Int64
	responded atomic.Bool
	failures  atomic.Int64
	dead      atomic.Bool

	mu    sync.Mutex
	rows  []row
	spans []span
	begun []int64
}

func newLoad(ctx context.Context, config *loadConfig) (*load, []string, error) {
	l := &load{loadConfig: config, ctx: ctx}
	if config.Message != nil {
		var err error
		if l.bodies, err = config.Message.bodies(); err != nil {
			return nil, nil, err
		}
	}
	if err := writeQlogs(config.QlogDir); err != nil {
		return nil, nil, err
	}
	peer, resolved, err := find(config.ServerName, config.Address, config.IP, config.Port)
	if err != nil {
		return nil, nil, fmt.Errorf("server_name: %w", err)
	}
	to := target{
		protocol: config.Protocol, reused: config.ConnectionMode == "reused", name: config.ServerName, peer: peer,
		ip: config.IP, caFile: config.CAFile, tlsVersion: config.TLSVersion,
		keyExchange: config.KeyExchange, cipher: config.Cipher, noDelay: config.TCPNoDelay, keylogFile: config.KeylogFile,
		connectTimeoutNs: config.ConnectTimeoutNs, requestTimeoutNs: config.RequestTimeoutNs, program: config.Program,
	}
	shared, err := newCaller(to, config.Connections, config.Streams)
	if err != nil {
		return nil, nil, err
	}
	l.callers = []*caller{shared}
	if shared.reused {
		// Every connection has clients of its own: none is left idle while another has two requests.
		l.callers = l.callers[:0]
		for range shared.connections {
			l.callers = append(l.callers, newCallerOn(shared.dialer, 1, shared.streams))
		}
	}
	return l, resolved, nil
}

// runLoad is the program `load`: it makes the cycles and ends. One among others is told when to begin.
func runLoad(ctx context.Context, line []byte, told <-chan []byte) error {
	config, err := read[loadConfig](line)
	if err != nil {
		return err
	}
	if err := config.check(); err != nil {
		return err
	}
	ctx, release := context.WithTimeoutCause(ctx, time.Duration(config.TotalTimeoutNs), errTotalTimeout)
	defer release()
	asked := nowNs()
	l, resolved, err := newLoad(ctx, config)
	if err != nil {
		return err
	}
	dnsNs := nowNs() - asked
	peer := l.callers[0].peer
	ready := map[string]any{"protocol": l.Protocol, "address": peer.Addr(), "port": peer.Port(), "process": 0}
	if err := say("ready", ready); err != nil {
		return err
	}
	if l.Among != nil {
		if err := l.awaitOthers(told); err != nil {
			return err
		}
	}
	startedNs := nowNs()
	userBefore, systemBefore, _ := usage()
	l.do()
	user, system, rss := usage()
	endedNs := nowNs()
	for _, one := range l.callers {
		one.closeAll()
	}
	if errors.Is(context.Cause(ctx), errStdinClosed) {
		return nil
	}
	if err := writeRows(l.SamplesFile, l.rows); err != nil {
		return err
	}
	if err := writeSpans(l.SpansFile, l.spans); err != nil {
		return err
	}
	summary := l.summary()
	summary["started_ns"], summary["ended_ns"] = startedNs, endedNs
	summary["cpu_user_ns"], summary["cpu_system_ns"], summary["max_rss_bytes"] = user, system, rss
	summary["busy_ratio"] = float64(user-userBefore+system-systemBefore) / float64(max(1, endedNs-startedNs))
	if resolved != nil {
		summary["resolved"], summary["dns_ns"] = resolved, dnsNs
	}
	return say("summary", summary)
}

// do makes all cycles and returns when each has ended.
func (l *load) do() {
	first := l.callers[0]
	clients := first.connections * first.streams
	if first.reused {
		clients = len(l.callers) * first.streams
		each(len(l.callers), func(i int) { l.callers[i].prepare(l.ctx) })
	}
	l.begun = make([]int64, clients)
	each(clients, func(i int) { l.client(i, l.callers[i%len(l.callers)]) })
}

func each(count int, do func(int)) {
	var group sync.WaitGroup
	for i := range count {
		group.Go(func() { do(i) })
	}
	group.Wait()
}

// client makes a cycle after the other.
func (l *load) client(number int, by *caller) {
	var rows []row
	var spans []span
	var measured int64
	for {
		ordinal, ok := l.next(measured)
		if !ok {
			break
		}
		if l.begun[number] != 0 {
			l.pause(time.Duration(l.Program.ThinkNs))
		}
		l.begun[number] = cmp.Or(l.begun[number], nowNs())
		made, hops := l.cycle(ordinal, number, by)
		if !made.warmup {
			measured++
		}
		if made.firstByteNs != 0 {
			l.responded.Store(true)
		} else if made.class != "" {
			if l.failures.Add(1) >= max(deadPathFailures, int64(len(l.begun))) && !l.responded.Load() {
				l.dead.Store(true)
			}
			l.pause(attemptsApart)
		}
		rows, spans = append(rows, made), append(spans, hops...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows, l.spans = append(l.rows, rows...), append(l.spans, spans...)
}

// awaitOthers waits for the time at which all clients begin.
func (l *load) awaitOthers(told <-chan []byte) error {
	select {
	case line := <-told:
		begin, err := read[beginConfig](line)
		if err != nil {
			return err
		}
		l.pause(time.Duration(begin.BeginNs - nowNs()))
	case <-l.ctx.Done():
	}
	return nil
}

func (l *load) pause(duration time.Duration) {
	if duration <= 0 {
		return
	}
	select {
	case <-time.After(duration):
	case <-l.ctx.Done():
	}
}

// next takes the next cycle; its ordinal, or false when none is left for a client that has made so many.
func (l *load) next(measured int64) (int64, bool) {
	if l.ctx.Err() != nil || l.dead.Load() {
		return 0, false
	}
	if l.RequestsPerClient > 0 {
		if measured >= l.RequestsPerClient {
			return 0, false
		}
		return l.started.Add(1) - 1, true
	}
	ordinal := l.started.Add(1) - 1
	if ordinal >= l.Requests+l.WarmupRequests {
		l.started.Add(-1)
		return 0, false
	}
	return ordinal, true
}

// cycle makes one request and reads the hops out of its answer, after the time was taken.
func (l *load) cycle(ordinal int64, client int, by *caller) (row, []span) {
	number := l.Among.spread(ordinal)
	fields := http.Header{cycleField: {cycleName(number)}}
	content := func(startedNs int64) []byte {
		if len(l.bodies) == 0 {
			return nil
		}
		own := clientEntry{l.Service, l.To, l.Method, l.Path, startedNs}
		return write(appendEntry(nil, own), l.bodies[ordinal%int64(len(l.bodies))])
	}
	if len(l.bodies) > 0 {
		fields.Set("Content-Type", jsonType)
	}
	one := by.call(l.ctx, l.Method, l.Path, fields, content)
	var calls []hop
	var arrivedNs, repliedNs int64
	sound := false
	if one.doneNs != 0 {
		var meta []byte
		if meta, sound = metaOf(l.Method, &one); sound {
			calls, arrivedNs, repliedNs, sound = hopsOf(meta, l.To)
		}
	}
	switch {
	case one.class != "":
	case one.status >= http.StatusBadRequest || l.ExpectStatus != nil && *l.ExpectStatus != one.status:
		one.class = "status"
	case !sound:
		one.class, calls = "content", nil
	}
	made := rowOf(number, int(l.Among.spread(int64(client))), ordinal < l.WarmupRequests, &one)
	made.connection = uint32(l.Among.spread(int64(made.connection)))
	first := span{
		row: &made,
		hop: hop{
			caller: l.Service, callee: l.To, method: l.Method, path: l.Path, startedNs: one.startedNs, arrivedNs: arrivedNs,
			repliedNs: repliedNs, returnedNs: one.doneNs, status: one.status, class: one.class,
		},
	}
	if one.first && one.connection.securedNs >= one.startedNs {
		first.securedNs = one.connection.securedNs
	}
	spans := []span{first}
	for place, call := range calls {
		spans = append(spans, span{row: &made, ordinal: place + 1, hop: call})
	}
	return made, spans
}

func (l *load) summary() map[string]any {
	slices.SortFunc(l.rows, func(a, b row) int { return int(a.ordinal - b.ordinal) })
	samples, failed := 0, 0
	var firstNs, lastNs int64
	for _, one := range l.rows {
		if one.warmup {
			continue
		}
		samples++
		if one.class != "" {
			failed++
		}
		if firstNs == 0 || one.startedNs < firstNs {
			firstNs = one.startedNs
		}
		lastNs = max(lastNs, one.doneNs)
	}
	var retried, lostIdle int64
	for _, one := range l.callers {
		retried += one.retried
		lostIdle += one.lostIdle.Load()
	}
	begun := slices.DeleteFunc(slices.Clone(l.begun), func(ns int64) bool { return ns == 0 })
	clients := map[string]any{"begun": len(begun), "first_begun_ns": 0, "last_begun_ns": 0}
	if len(begun) > 0 {
		clients["first_begun_ns"], clients["last_begun_ns"] = slices.Min(begun), slices.Max(begun)
	}
	by := l.callers[0]
	return map[string]any{
		"trial": l.Trial, "samples": samples, "errors": failed, "ended": l.ended(), "clients": clients,
		"measured_ns": max(0, lastNs-firstNs), "schedule_lag_ns": nil, "missed_slots": nil,
		"connections_opened": by.opened.Load(), "connections_lost_idle": lostIdle, "wire_bytes_out": nil,
		"wire_bytes_in": nil, "key_exchange": by.keyExchange(), "tcp": by.tcp.summary(), "quic": nil,
		"udp_receive_errors": nil, "declared": l.declared(retried),
	}
}

// declared are the switches of this program that were on, and what they did.
func (l *load) declared(retried int64) map[string]any {
	said := map[string]any{"certificate_verified": l.Program.Verify}
	if l.Program.Attempts > 1 {
		said["retried"] = retried
	}
	return said
}

func (l *load) ended() string {
	switch cause := context.Cause(l.ctx); {
	case errors.Is(cause, errInterrupted):
		return "signal"
	case errors.Is(cause, errTotalTimeout):
		return "total_timeout"
	case l.dead.Load():
		return "no_response"
	}
	return "requests"
}
