// Command coredns is CoreDNS with just the plugins that cluster DNS needs. The
// full build links every cloud provider's SDK and takes minutes longer.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// The order is the order in which a query passes the plugins.
	dnsserver.Directives = []string{"ready", "health", "errors", "cache", "kubernetes"}
	coremain.Run()
}
