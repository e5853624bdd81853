// Command quic-go-server serves a folder over HTTP/1.1 and HTTP/2 (net/http) and HTTP/3 (quic-go) on one port.
//
// GET and HEAD answer with the file; POST, PUT and PATCH read the content and then answer with the file, or with
// nothing where there is none; DELETE answers 204 and deletes nothing.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/qlog"
)

// site answers requests with files of a folder, which no path leaves (os.Root).
type site struct{ root *os.Root }

func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, "the content ended early", http.StatusBadRequest)
			return
		}
	default:
		w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	if r.Method == http.MethodDelete {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	file, size, err := s.open(path.Clean("/" + r.URL.Path)[1:])
	switch {
	case err == nil:
		defer file.Close()
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(http.StatusOK)
	if file != nil && r.Method != http.MethodHead {
		io.Copy(w, file) // an error here is the client's going away: there is nobody left to tell
	}
}

func (s site) open(name string) (*os.File, int64, error) {
	file, err := s.root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// listener sets TCP_NODELAY as asked: Go turns it on by itself.
type listener struct {
	*net.TCPListener
	noDelay bool
}

func (l listener) Accept() (net.Conn, error) {
	connection, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return connection, connection.SetNoDelay(l.noDelay)
}

func main() {
	log.SetFlags(0)
	address := flag.String("address", "", "IP address and port, for TCP and UDP")
	folder := flag.String("folder", "", "what is served")
	certificate := flag.String("certificate", "", "certificate chain (PEM)")
	key := flag.String("key", "", "private key (PEM)")
	version := flag.String("tls", "1.3", "the only TLS version over TCP, 1.2 or 1.3; QUIC has 1.3")
	streams := flag.Int("streams", 250, "concurrent requests a connection, over HTTP/2 and HTTP/3")
	noDelay := flag.Bool("no-delay", true, "TCP_NODELAY")
	early := flag.Bool("early", false, "accept 0-RTT over HTTP/3")
	qlogs := flag.String("qlog", "", "a folder for a qlog file a QUIC connection")
	tell := flag.Bool("version", false, "tell the versions and end")
	flag.Parse()
	if *tell {
		fmt.Println(quicGoVersion(), runtime.Version())
		return
	}
	if err := serve(*address, *folder, *certificate, *key, *version, *streams, *noDelay, *early, *qlogs); err != nil {
		log.Fatal("quic-go-server: ", err)
	}
}

func serve(address, folder, certificate, key, version string, streams int, noDelay, early bool, qlogs string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	pinned, known := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[version]
	if !known {
		return fmt.Errorf("-tls %s: 1.2 or 1.3", version)
	}
	settings := func(version uint16) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: version, MaxVersion: version}
	}
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	udp, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	overTCP := &http.Server{
		Handler:   site{root},
		TLSConfig: settings(pinned),
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: streams},
	}
	overUDP := &http3.Server{
		Handler:    site{root},
		TLSConfig:  settings(tls.VersionTLS13),
		QUICConfig: &quic.Config{MaxIncomingStreams: int64(streams), Allow0RTT: early},
	}
	if qlogs != "" {
		if err := os.Setenv("QLOGDIR", qlogs); err != nil { // where quic-go's tracer writes
			return err
		}
		overUDP.QUICConfig.Tracer = qlog.DefaultConnectionTracer
	}
	ended := make(chan error, 2)
	go func() { ended <- overTCP.ServeTLS(listener{tcp.(*net.TCPListener), noDelay}, "", "") }()
	go func() { ended <- overUDP.Serve(udp) }()
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	select {
	case err = <-ended: // neither ends by itself but for an error
	case <-asked.Done():
	}
	return errors.Join(err, overTCP.Close(), overUDP.Close())
}

func quicGoVersion() string {
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, module := range built.Deps {
			if module.Path == "github.com/quic-go/quic-go" {
				return module.Version
			}
		}
	}
	return "unknown"
}
