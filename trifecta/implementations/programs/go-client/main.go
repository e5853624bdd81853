// Command go-client is Go's net/http (HTTP/1.1, HTTP/2) and quic-go (HTTP/3) as a client that is measured.
//
// It does the job in the JSON file that it is given and writes a row for each request to standard output when all have
// ended; see trifecta/implementations/clients/lines.py. With --own-tls before it, net/http is set up as in code that gives
// a Transport its own TLS configuration and believes that HTTP/2 is spoken. Exit codes: 0 done, 2 bad input, 3 cannot.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
)

func main() {
	os.Exit(program(os.Args[1:]))
}

func program(arguments []string) int {
	log.SetFlags(0)
	if len(arguments) == 1 && arguments[0] == "--version" {
		return tellVersions()
	}
	ownTLS := len(arguments) == 2 && arguments[0] == "--own-tls"
	if ownTLS {
		arguments = arguments[1:]
	}
	if len(arguments) != 1 {
		fmt.Fprintln(os.Stderr, "error: one argument is needed: the file of the job")
		return 2
	}
	e, err := readJob(arguments[0])
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 2
	}
	if ownTLS {
		e.ownTLSConfig()
	}
	ctx, interrupt := context.WithCancelCause(context.Background())
	ctx, release := context.WithDeadlineCause(ctx, timeAt(e.DeadlineNs), errTotalTimeout)
	defer release()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		interrupt(errInterrupted)
	}()
	r, err := newRun(ctx, e)
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 2
	}
	end := r.do()
	if err := writeRows(os.Stdout, r.rows, end); err != nil {
		fmt.Fprintf(os.Stderr, "error: standard output: %v\n", err)
		return 3
	}
	return 0
}

// tellVersions says what is inside: quic-go from its module, net/http and crypto/tls with Go.
func tellVersions() int {
	versions := map[string]string{"go": strings.TrimPrefix(runtime.Version(), "go")}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == "github.com/quic-go/quic-go" {
				versions["quic_go"] = strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(versions); err != nil {
		return 3
	}
	return 0
}
