package remainder

import (
	"bytes"
	"slices"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// server does to what etcd holds what a server that stores a version does: it shows it in
// either version, and writes it. What there is none of yet is nil.
type server struct{ codec }

// servers are those of a rolling update: some store the one version, some the other.
var servers = []server{
	{codec{plain(v1alpha1.SchemeGroupVersion), form.V1alpha1}},
	{codec{plain(v1beta1.SchemeGroupVersion), form.V1beta1}},
}

func (s server) read(t *testing.T, data []byte) *v1alpha1.Cluster {
	t.Helper()
	return convert(t, s.decode(t, data), &v1alpha1.Cluster{})
}

func (s server) readBeta(t *testing.T, data []byte) *v1beta1.Cluster {
	t.Helper()
	return convert(t, s.decode(t, data), &v1beta1.Cluster{})
}

// write replaces a cluster, as a client of a version does.
func (s server) write(t *testing.T, data []byte, version string, object runtime.Object) []byte {
	t.Helper()
	written := convert(t, object, &clusterregistry.Cluster{})
	if data != nil {
		stored := s.decode(t, data)
		form.Restore(version, written, stored)
		written.Status = stored.Status
	}
	return s.encode(t, written)
}

// report writes a status, which changes nothing of the spec.
func (s server) report(t *testing.T, data []byte) []byte {
	t.Helper()
	stored := s.decode(t, data)
	stored.Status = &clusterregistry.ClusterStatus{Version: clusterregistry.ClusterVersion{Kubernetes: "v1"}, Nodes: &clusterregistry.NodeCount{Total: 3}}
	return s.encode(t, stored)
}

func (s server) encode(t *testing.T, c *clusterregistry.Cluster) []byte {
	t.Helper()
	data, err := runtime.Encode(s.codec, c)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (s server) decode(t *testing.T, data []byte) *clusterregistry.Cluster {
	t.Helper()
	out := &clusterregistry.Cluster{}
	if err := runtime.DecodeInto(s.codec, data, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func convert[T any](t *testing.T, in any, out T) T {
	t.Helper()
	if err := scheme.Convert(in, out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

func wide() v1beta1.Endpoint {
	return v1beta1.Endpoint{Name: "wide", URL: "https://wide:6443", ProxyURL: "http://proxy", TLSServerName: "east", CABundle: []byte("one")}
}

func narrow() v1beta1.Endpoint {
	return v1beta1.Endpoint{Name: "narrow", URL: "https://narrow", ClientCIDRs: []string{"10.0.0.0/8", "10.1.0.0/16"}, ProxyURL: "http://other", TLSServerName: "kubernetes", CABundle: []byte("two")}
}

// rich is a cluster that uses what only v1beta1 has.
func rich() *v1beta1.Cluster {
	return &v1beta1.Cluster{Spec: v1beta1.ClusterSpec{DisplayName: "East", ClusterSet: "blue", Endpoints: []v1beta1.Endpoint{wide(), narrow()}, Access: []v1beta1.Access{
		{Name: "login", Audience: v1beta1.AudienceUser, Exec: &v1beta1.ExecAccess{Command: "login", InteractiveMode: v1beta1.InteractiveNever}},
	}}}
}

// spelled is a cluster that uses what only v1alpha1 has.
func spelled() *v1alpha1.Cluster {
	return &v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{
		KubernetesAPIEndpoints: v1alpha1.KubernetesAPIEndpoints{ServerEndpoints: []v1alpha1.ServerAddressByClientCIDR{{ClientCIDR: "10.0.0.0/8", ServerAddress: "near:6443"}, {ServerAddress: "east"}}, CABundle: []byte("ca")},
		AuthInfo:               v1alpha1.AuthInfo{Providers: []v1alpha1.AuthProviderConfig{{}}},
	}}
}

// TestRewritesCrossServers lets a client of either version read what one server has stored
// and write it to another: that changes nothing but the version that it is stored in.
func TestRewritesCrossServers(t *testing.T) {
	for _, maker := range servers {
		data := map[string][]byte{
			"nothing":  maker.write(t, nil, form.V1beta1, &v1beta1.Cluster{}),
			"v1beta1":  maker.write(t, nil, form.V1beta1, rich()),
			"v1alpha1": maker.write(t, nil, form.V1alpha1, spelled()),
			"reported": maker.report(t, maker.write(t, nil, form.V1beta1, rich())),
		}
		mixed := maker.readBeta(t, data["v1alpha1"])
		mixed.Spec.Endpoints[1].ProxyURL = "http://proxy"
		data["v1alpha1, then v1beta1"] = maker.write(t, data["v1alpha1"], form.V1beta1, mixed)
		for how, stored := range data {
			for _, reader := range servers {
				for _, writer := range servers {
					for version, seen := range map[string]runtime.Object{form.V1alpha1: reader.read(t, stored), form.V1beta1: reader.readBeta(t, stored)} {
						what := how + ", stored as " + maker.version + ", read through " + version + " from a server that stores " + reader.version + " and written to one that stores " + writer.version
						after := writer.write(t, stored, version, seen)
						if want, got := maker.decode(t, stored), reader.decode(t, after); !apiequality.Semantic.DeepEqual(got, want) {
							t.Errorf("%s:\n%s", what, diff.Diff(want, got))
						}
						if raw, kind, err := protobuf.NewSerializer(scheme, scheme).Decode(after, nil, nil); err != nil || kind.Version != writer.version {
							t.Errorf("%s: it is stored as %v, %v", what, raw, err)
						}
						if writer == maker && !bytes.Equal(after, stored) {
							t.Errorf("%s: it is written", what)
						}
					}
				}
			}
		}
	}
}

// TestChangesCrossServers lets a client of v1alpha1 read from one server, change endpoints
// and write to another. What he doesn't see stays, and all servers show the same of it.
func TestChangesCrossServers(t *testing.T) {
	type endpoints = v1alpha1.KubernetesAPIEndpoints
	with := func(e v1beta1.Endpoint, change func(*v1beta1.Endpoint)) v1beta1.Endpoint {
		change(&e)
		return e
	}
	for _, test := range []struct {
		reason string
		change func(*endpoints)
		want   []v1beta1.Endpoint
	}{
		{"an entry more", func(e *endpoints) {
			e.ServerEndpoints = append(e.ServerEndpoints, v1alpha1.ServerAddressByClientCIDR{ClientCIDR: "192.0.2.0/24", ServerAddress: "new"})
		}, []v1beta1.Endpoint{wide(), narrow(), {Name: "endpoint-3", URL: "https://new", ClientCIDRs: []string{"192.0.2.0/24"}, CABundle: []byte("one\ntwo")}}},
		{"another address of a range", func(e *endpoints) { e.ServerEndpoints[1].ServerAddress = "new" }, []v1beta1.Endpoint{
			wide(), with(narrow(), func(e *v1beta1.Endpoint) { e.ClientCIDRs = e.ClientCIDRs[1:] }),
			with(narrow(), func(e *v1beta1.Endpoint) {
				e.Name, e.URL, e.ClientCIDRs = "endpoint-3", "https://new", e.ClientCIDRs[:1]
			}),
		}},
		{"the CA", func(e *endpoints) { e.CABundle = []byte("new") }, []v1beta1.Endpoint{
			with(wide(), func(e *v1beta1.Endpoint) { e.CABundle = []byte("new") }), with(narrow(), func(e *v1beta1.Endpoint) { e.CABundle = []byte("new") }),
		}},
	} {
		for _, maker := range servers {
			for _, reader := range servers {
				for _, writer := range servers {
					stored := maker.report(t, maker.write(t, nil, form.V1beta1, rich()))
					seen := reader.read(t, stored)
					seen.Spec.KubernetesAPIEndpoints.ServerEndpoints = slices.Clone(seen.Spec.KubernetesAPIEndpoints.ServerEndpoints)
					test.change(&seen.Spec.KubernetesAPIEndpoints)
					stored = writer.write(t, stored, form.V1alpha1, seen)
					want := rich()
					want.Spec.Endpoints, want.Status = test.want, &v1beta1.ClusterStatus{Version: v1beta1.ClusterVersion{Kubernetes: "v1"}, Nodes: &v1beta1.NodeCount{Total: 3}}
					for _, last := range servers {
						if got := last.read(t, stored); !apiequality.Semantic.DeepEqual(got, seen) {
							t.Errorf("%s: v1alpha1 shows\n%s", test.reason, diff.Diff(seen, got))
						}
						if got := last.readBeta(t, stored); !apiequality.Semantic.DeepEqual(got, want) {
							t.Errorf("%s: v1beta1 shows\n%s", test.reason, diff.Diff(want, got))
						}
					}
				}
			}
		}
	}
}
