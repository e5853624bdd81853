// Caddy with the modules of its releases: what its own cmd/caddy is, which go.mod can pin only from outside of it.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

func main() {
	caddycmd.Main()
}
