package servers

import (
	"context"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/handshake"
	"github.com/clusterregistry/operator/operator/operand"
)

// Handshake is what a server shows to clients.
type Handshake struct {
	Pod string
	handshake.Shown
	Err error
}

// Handshakes asks what every ready server shows to clients, at its own address.
func (a Access) Handshakes(ctx context.Context, pods []corev1.Pod) []Handshake {
	var out []Handshake
	var addresses []string
	for _, pod := range operand.Ready(pods) {
		out = append(out, Handshake{Pod: pod.Name})
		addresses = append(addresses, net.JoinHostPort(pod.Status.PodIP, contract.ServerPort))
	}
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() { out[i].Shown, out[i].Err = a.Handshake(ctx, handshake.Server{Address: addresses[i]}) })
	}
	all.Wait()
	return out
}
