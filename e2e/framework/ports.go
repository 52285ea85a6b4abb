package framework

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
)

// The ports that tests take lie below those that the kernel gives to connections
// (net.ipv4.ip_local_port_range, from 32768 on) and below the node ports of Kubernetes
// (from 30000 on), and above those of Kubernetes' own programs (up to 10260): a port that
// is free now is free when its program listens.
//
// They are in blocks. A process claims a block before it uses the ports in it: it listens
// on the block's first port as long as it lives, which the kernel grants to one process of
// all on the machine, and takes back however that ends. So tests of two processes, even of
// two checkouts, never choose the same port, nor what is derived from it.
const (
	firstPort  = 11000
	blockSize  = 100
	blockCount = 180
)

// claims are the blocks of this process.
var claims struct {
	sync.Mutex
	next  int            // the block to try to claim next
	kept  []net.Listener // one for each block
	ports []int          // those of the claimed blocks that no one was given
}

// FreePort returns a port of loopback where nothing listens. No other call returns it
// again, in this process or another one that runs, so a program that is about to listen
// there loses it to no other test.
func FreePort(t testing.TB) int {
	t.Helper()
	claims.Lock()
	defer claims.Unlock()
	for {
		if len(claims.ports) == 0 {
			block := claimBlock(t)
			for port := firstPort + block*blockSize + 1; port < firstPort+(block+1)*blockSize; port++ {
				claims.ports = append(claims.ports, port)
			}
		}
		port := claims.ports[0]
		claims.ports = claims.ports[1:]
		// A program that a killed test left behind may listen there.
		if listener := listenOn(port); listener != nil {
			_ = listener.Close() // nothing has connected
			return port
		}
	}
}

// LoopbackIP returns an address of loopback for servers whose port is fixed. As with the
// ports, no other call returns it again.
func LoopbackIP(t testing.TB) string {
	t.Helper()
	port := FreePort(t)
	return fmt.Sprintf("127.%d.%d.1", 64+port>>8, port&0xff)
}

// claimBlock claims one more block and returns its number. The caller holds the lock.
func claimBlock(t testing.TB) int {
	t.Helper()
	for claims.next < blockCount {
		block := claims.next
		claims.next++
		if listener := listenOn(firstPort + block*blockSize); listener != nil {
			claims.kept = append(claims.kept, listener)
			return block
		}
	}
	t.Fatalf("each of the %d blocks of ports of 127.0.0.1 from %d on is claimed: wait until other tests end", blockCount, firstPort)
	return 0
}

// listenOn returns nil where something listens already.
func listenOn(port int) net.Listener {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil
	}
	return listener
}
