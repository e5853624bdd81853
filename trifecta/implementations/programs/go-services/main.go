// Command go-services is the services of docs/services.md, and their client, on Go's net/http (HTTP/1.1, HTTP/2) and
// quic-go (HTTP/3).
//
// It speaks the engine's contract (docs/architecture.md, section 1): `go-services {load|origin} -` reads one line of JSON
// from standard input, says {"ready": ...} and at its end {"summary": ...}, and ends on SIGTERM, SIGINT, or when standard
// input is closed. Exit codes: 0 done, 2 bad input, 3 cannot.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	exitBadInput = 2
	exitCannot   = 3
)

// badInput is an error of the configuration.
type badInput struct{ error }

var errStdinClosed = errors.New("standard input was closed")

func main() {
	log.SetFlags(0)
	withoutUsersSettings()
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	if err := program(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		if _, bad := errors.AsType[badInput](err); bad {
			os.Exit(exitBadInput)
		}
		os.Exit(exitCannot)
	}
}

func program(arguments []string) error {
	switch {
	case len(arguments) == 1 && arguments[0] == "--version":
		versions := map[string]string{"go": strings.TrimPrefix(runtime.Version(), "go"), "quic_go": quicGoVersion()}
		return json.NewEncoder(os.Stdout).Encode(versions)
	case len(arguments) != 2 || arguments[1] != "-":
		return badInput{errors.New("needs two arguments: load or origin, and -")}
	}
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err != nil && len(bytes.TrimSpace(line)) == 0 {
		return nil // nobody wants it
	}
	ctx, told := wanted(input)
	switch arguments[0] {
	case "load":
		return runLoad(ctx, line, told)
	case "origin":
		return runService(ctx, line)
	}
	return badInput{fmt.Errorf("%q is neither load nor origin", arguments[0])}
}

// wanted is a context that ends, with the cause, when the program is asked to end, and what it is told next.
func wanted(input *bufio.Reader) (context.Context, <-chan []byte) {
	ctx, end := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		end(errInterrupted)
	}()
	told := make(chan []byte, 1)
	go func() {
		if line, err := input.ReadBytes('\n'); err == nil {
			told <- line
			_, _ = io.Copy(io.Discard, input)
		}
		end(errStdinClosed)
	}()
	return ctx, told
}

// withoutUsersSettings starts the program again where the environment would change the runtime or write keys.
func withoutUsersSettings() {
	names := []string{"GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOTRACEBACK", "SSLKEYLOGFILE", "QLOGDIR"}
	found := false
	for _, name := range names {
		_, set := os.LookupEnv(name)
		found = found || set
		_ = os.Unsetenv(name)
	}
	if found {
		err := syscall.Exec("/proc/self/exe", os.Args, os.Environ())
		log.Fatalf("error: cannot start without %s: %v", strings.Join(names, ", "), err)
	}
}

// say writes a line of the contract.
func say(key string, document any) error {
	text, err := json.Marshal(map[string]any{key: document})
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(text, '\n'))
	return err
}

// usage is CPU time in user and system in ns, and the largest resident memory in octets.
func usage() (user, system, rss int64) {
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used)
	return used.Utime.Nano(), used.Stime.Nano(), used.Maxrss << 10
}
