package bundle

import (
	"fmt"
	"runtime"
	"testing"

	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// BenchmarkHeap prints what memory a decoded cluster takes, with and without this
// package: clusters that share one CA of 2 KB, and clusters that have one each.
func BenchmarkHeap(b *testing.B) {
	const clusters, size = 10_000, 2 << 10
	with, without := stored(b, v1beta1.SchemeGroupVersion)
	for _, fleet := range []struct {
		name string
		ca   func(i int) string
	}{
		{"one CA", func(int) string { return "ca" }},
		{"a CA each", func(i int) string { return fmt.Sprintf("ca-%d", i) }},
	} {
		b.Run(fleet.name, func(b *testing.B) {
			data := make([][]byte, clusters)
			for i := range data {
				data[i] = encode(b, with, cluster(fmt.Sprintf("cluster-%d", i), authority(fleet.ca(i), size)))
			}
			for b.Loop() {
				before, after := heapOf(b, without, data), heapOf(b, with, data)
				b.ReportMetric(before, "B/cluster-before")
				b.ReportMetric(after, "B/cluster")
				b.ReportMetric(after/before, "ratio")
			}
		})
	}
}

// heapOf returns how much memory each of some clusters takes once they are decoded.
func heapOf(b *testing.B, codec apiruntime.Codec, data [][]byte) float64 {
	b.Helper()
	held := make([]*clusterregistry.Cluster, len(data))
	inUse := func() float64 {
		runtime.GC()
		runtime.GC() // what the first one found to be unused is gone
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	before := inUse()
	for i := range data {
		held[i] = decode(b, codec, data[i])
	}
	after := inUse()
	runtime.KeepAlive(held)
	return (after - before) / float64(len(data))
}

// BenchmarkDecode prints what sharing costs a decoder, in time.
func BenchmarkDecode(b *testing.B) {
	with, without := stored(b, v1beta1.SchemeGroupVersion)
	data := encode(b, with, cluster("one", authority("ca", 2<<10)))
	for name, codec := range map[string]apiruntime.Codec{"with": with, "without": without} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			held := decode(b, codec, data)
			for b.Loop() {
				decode(b, codec, data)
			}
			runtime.KeepAlive(held)
		})
	}
}
