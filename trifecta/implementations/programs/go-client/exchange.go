package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

const contentReadOctets = 64 << 10

// worker makes one request at a time.
type worker struct {
	run    *run
	buffer []byte
}

func (r *run) newWorker() *worker {
	return &worker{run: r, buffer: make([]byte, contentReadOctets)}
}

// exchange makes one request on a connection. sent: something of it went to the connection; broken: the connection is
// of no use any more.
func (w *worker) exchange(c *connection, one *row) (sent, broken bool) {
	r := w.run
	ctx, cancel := context.WithTimeoutCause(r.ctx, time.Duration(r.job.RequestTimeoutNs), errRequestTimeout)
	defer cancel()
	var wroteHeaders atomic.Bool // called back from goroutines of the connection, as all these
	var wroteRequest, firstByte atomic.Int64
	request := r.template.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { wroteHeaders.Store(true) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				wroteRequest.Store(nowNs())
			}
		},
		GotFirstResponseByte: func() { firstByte.CompareAndSwap(0, nowNs()) },
	}))
	var body *patternReader
	if r.job.RequestBodyBytes > 0 {
		body = &patternReader{octets: r.job.RequestBodyBytes}
		request.Body, request.ContentLength = body, r.job.RequestBodyBytes
	}
	response, err := c.roundTripper.RoundTrip(request)
	inContent, right := err == nil, true
	if err == nil {
		one.status = response.StatusCode
		if r.job.ownTLS && c.protocol == "" {
			c.protocol = fmt.Sprintf("h%d", response.ProtoMajor) // without ALPN the answer tells what was spoken
		}
		right, err = w.read(response.Body, one)
		_ = response.Body.Close()
	}
	if err == nil {
		one.class = r.judge(one, right)
	} else {
		one.class = classOf(ctx, err, false, inContent)
		if one.class == "malformed" {
			log.Printf("not classified: %T: %v", err, err)
		}
	}
	one.requestSentNs, one.firstByteNs = wroteRequest.Load(), firstByte.Load()
	if body != nil {
		one.bytesOut = body.given.Load()
	} else if one.requestSentNs > one.firstByteNs && one.firstByteNs != 0 {
		one.requestSentNs = 0 // another goroutine noted it, after the answer: not when it was
	}
	sent = wroteHeaders.Load()
	broken = err != nil && (r.job.Protocol == "h1" || !sent || brokenBy(err) || c.lost())
	return sent, broken
}

// read takes the content and compares it with the pattern; whether it is right.
func (w *worker) read(content io.Reader, one *row) (bool, error) {
	right := true
	for {
		octets, err := content.Read(w.buffer)
		if w.run.verify && right {
			right = matches(one.bytesIn, w.buffer[:octets])
		}
		one.bytesIn += int64(octets)
		if err == io.EOF {
			one.doneNs = nowNs()
			return right, nil
		}
		if err != nil {
			return right, err
		}
	}
}

func (r *run) judge(one *row, right bool) string {
	switch {
	case r.job.ExpectStatus != nil && *r.job.ExpectStatus != one.status:
		return "status"
	case r.expected >= 0 && r.expected != one.bytesIn:
		return "length"
	case !right:
		return "content"
	}
	return ""
}
