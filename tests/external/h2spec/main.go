// Command h2spec asks an HTTP/2 server over TLS what https://github.com/summerwind/h2spec asks, and writes a JUnit report.
//
// Its exit code is 0 whatever failed: the test that runs it knows what may.
package main

import (
	"flag"
	"log"
	"time"

	"github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"
)

func main() {
	host := flag.String("host", "127.0.0.1", "the server's address")
	port := flag.Int("port", 0, "its port")
	path := flag.String("path", "/", "a path that it answers with content")
	timeout := flag.Duration("timeout", 2*time.Second, "how long to wait for each answer")
	report := flag.String("report", "", "the JUnit report to write")
	flag.Parse()
	_, err := h2spec.Run(&config.Config{
		Host: *host, Port: *port, Path: *path, Timeout: *timeout, MaxHeaderLen: 4000, JUnitReport: *report,
		Strict: true, TLS: true, Insecure: true,
	})
	if err != nil {
		log.Fatal(err)
	}
}
