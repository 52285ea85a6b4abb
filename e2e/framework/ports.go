package framework

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// The ports that tests take lie below those that the kernel gives to connections
// (net.ipv4.ip_local_port_range, from 32768 on) and below the node ports of Kubernetes
// (from 30000 on): a port that is free now is free when its program listens.
const (
	firstPort = 10240
	portCount = 19000
)

var ports struct {
	sync.Mutex
	next int
}

// Tests of two processes at the same time begin at different ports.
func init() { ports.next = rand.IntN(portCount) }

// FreePort returns a port of loopback where nothing listens. No other call returns it
// again, so a program that is about to listen there loses it to no other.
func FreePort(t testing.TB) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	for range portCount {
		port := firstPort + ports.next
		ports.next = (ports.next + 1) % portCount
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = listener.Close() // nothing has connected
		return port
	}
	t.Fatalf("no port of 127.0.0.1 from %d to %d is free", firstPort, firstPort+portCount-1)
	return 0
}
