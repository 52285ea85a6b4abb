package remainder

import (
	"bytes"
	"slices"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// server is what a server of a release does to what etcd holds: it shows it in
// either version, and writes it. What there is none of yet is nil.
type server interface {
	read(*testing.T, []byte) v1alpha1.KubernetesAPIEndpoints
	readBeta(*testing.T, []byte) []v1beta1.Endpoint
	write(*testing.T, []byte, v1alpha1.KubernetesAPIEndpoints) []byte
	writeBeta(*testing.T, []byte, []v1beta1.Endpoint) []byte
}

var servers = map[string]server{"v0.3.0": v030{}, "this release": current{}}

// current is a server of this release.
type current struct{}

func (current) read(t *testing.T, data []byte) v1alpha1.KubernetesAPIEndpoints {
	out := &v1alpha1.Cluster{}
	current{}.convert(t, current{}.decode(t, data), out)
	return out.Spec.KubernetesAPIEndpoints
}

func (current) readBeta(t *testing.T, data []byte) []v1beta1.Endpoint {
	out := &v1beta1.Cluster{}
	current{}.convert(t, current{}.decode(t, data), out)
	return out.Spec.Endpoints
}

func (current) write(t *testing.T, data []byte, endpoints v1alpha1.KubernetesAPIEndpoints) []byte {
	written := &clusterregistry.Cluster{}
	current{}.convert(t, &v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{KubernetesAPIEndpoints: endpoints}}, written)
	if data != nil {
		form.Restore(form.V1alpha1, written, current{}.decode(t, data))
	}
	return current{}.encode(t, written)
}

func (current) writeBeta(t *testing.T, data []byte, endpoints []v1beta1.Endpoint) []byte {
	written := &clusterregistry.Cluster{}
	current{}.convert(t, &v1beta1.Cluster{Spec: v1beta1.ClusterSpec{Endpoints: endpoints}}, written)
	if data != nil {
		stored := current{}.decode(t, data)
		form.Restore(form.V1beta1, written, stored)
		form.RenewV1alpha1(&written.Spec, &stored.Spec)
		written.Status = stored.Status
	}
	return current{}.encode(t, written)
}

// report writes a status, which changes nothing of the spec.
func (current) report(t *testing.T, data []byte) []byte {
	stored := current{}.decode(t, data)
	stored.Status = &clusterregistry.ClusterStatus{Version: clusterregistry.ClusterVersion{Kubernetes: "v1"}}
	return current{}.encode(t, stored)
}

var storage = codec{plain(v1beta1.SchemeGroupVersion), form.V1beta1}

func (current) convert(t *testing.T, in, out any) {
	t.Helper()
	if err := scheme.Convert(in, out, nil); err != nil {
		t.Fatal(err)
	}
}

func (current) encode(t *testing.T, c *clusterregistry.Cluster) []byte {
	t.Helper()
	data, err := runtime.Encode(storage, c)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (current) decode(t *testing.T, data []byte) *clusterregistry.Cluster {
	t.Helper()
	out := &clusterregistry.Cluster{}
	if err := runtime.DecodeInto(storage, data, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// written are clusters as servers of both releases leave them behind, of the
// endpoints that wide and narrow return or in place of them.
func written(t *testing.T) map[string][]byte {
	old, now := v030{}, current{}
	both := []v1beta1.Endpoint{wide(), narrow()}
	moved := wide()
	moved.URL = "https://moved:6443"
	plain := v1alpha1.KubernetesAPIEndpoints{ServerEndpoints: []v1alpha1.ServerAddressByClientCIDR{{ClientCIDR: "10.0.0.0/8", ServerAddress: "near:6443"}, {ServerAddress: "east"}}, CABundle: []byte("ca")}
	return map[string][]byte{
		"nothing":                now.writeBeta(t, nil, nil),
		"v1beta1 through v0.3.0": old.writeBeta(t, nil, both),
		"v1beta1 through v0.3.0, with a status of this one's": now.report(t, old.writeBeta(t, nil, both)),
		"v1alpha1 through this one":                           now.write(t, nil, plain),
		"v1alpha1 through this one, then v1beta1 through it": func() []byte {
			data := now.write(t, nil, plain)
			endpoints := now.readBeta(t, data)
			endpoints[1].ProxyURL = "http://proxy"
			return now.writeBeta(t, data, endpoints)
		}(),
		"v1beta1 through this one":                            now.writeBeta(t, nil, both),
		"v1beta1 through this one, with a status":             now.report(t, now.writeBeta(t, nil, both)),
		"v1beta1 through v0.3.0, then unchanged through this": now.writeBeta(t, old.writeBeta(t, nil, both), both),
		"v1beta1 through this one, then through v0.3.0":       old.writeBeta(t, now.writeBeta(t, nil, both), []v1beta1.Endpoint{moved, narrow()}),
	}
}

func wide() v1beta1.Endpoint {
	return v1beta1.Endpoint{Name: "wide", URL: "https://wide:6443", ProxyURL: "http://proxy", TLSServerName: "east", CABundle: []byte("one")}
}

func narrow() v1beta1.Endpoint {
	return v1beta1.Endpoint{Name: "narrow", URL: "https://narrow", ClientCIDRs: []string{"10.0.0.0/8", "10.1.0.0/16"}, ProxyURL: "http://other", TLSServerName: "kubernetes", CABundle: []byte("two")}
}

// TestReleasesShowTheSame makes sure that what a client reads from a server of one
// release is no change when it writes it to one of the other.
func TestReleasesShowTheSame(t *testing.T) {
	for how, data := range written(t) {
		old, now := v030{}.read(t, data), current{}.read(t, data)
		if !apiequality.Semantic.DeepEqual(old, now) {
			t.Errorf("%s: v1alpha1 differs:\n%s", how, diff.Diff(old, now))
		}
		for reader, from := range servers {
			for writer, to := range servers {
				before := current{}.readBeta(t, data)
				after := current{}.readBeta(t, to.write(t, data, from.read(t, data)))
				if !apiequality.Semantic.DeepEqual(before, after) {
					t.Errorf("%s, read from %s and written to %s:\n%s", how, reader, writer, diff.Diff(before, after))
				}
			}
		}
		if again := (current{}).report(t, (current{}).report(t, data)); !bytes.Equal(again, (current{}).report(t, data)) {
			t.Errorf("%s: a report without a change is written", how)
		}
	}
}

// TestChangesCrossReleases lets a client of v1alpha1 read from a server of one
// release, change endpoints and write to one of the other. Whatever leads where it
// led does so in the same way.
func TestChangesCrossReleases(t *testing.T) {
	for how, data := range written(t) {
		for change, do := range map[string]func(*v1alpha1.KubernetesAPIEndpoints){
			"an entry more": func(e *v1alpha1.KubernetesAPIEndpoints) {
				e.ServerEndpoints = append(e.ServerEndpoints, v1alpha1.ServerAddressByClientCIDR{ClientCIDR: "192.0.2.0/24", ServerAddress: "new"})
			},
			"another address of a range": func(e *v1alpha1.KubernetesAPIEndpoints) {
				for i := range e.ServerEndpoints {
					if e.ServerEndpoints[i].ClientCIDR == "10.0.0.0/8" {
						e.ServerEndpoints[i].ServerAddress = "new"
					}
				}
			},
			"the CA": func(e *v1alpha1.KubernetesAPIEndpoints) { e.CABundle = []byte("new") },
		} {
			for reader, from := range servers {
				for writer, to := range servers {
					seen := from.read(t, data)
					seen.ServerEndpoints = slices.Clone(seen.ServerEndpoints)
					spelledOut := len(seen.ServerEndpoints) > 0 && seen.ServerEndpoints[len(seen.ServerEndpoints)-1].ClientCIDR == "::/0"
					do(&seen)
					result := to.write(t, data, seen)
					if spelledOut && writer == "v0.3.0" {
						// v0.3.0 takes the second of the two entries for any client for a new one:
						// docs/how-to/upgrade-a-registry.md says who must wait.
						continue
					}
					what := how + ", " + change + ", read from " + reader + " and written to " + writer
					kept(t, what, current{}.readBeta(t, data), current{}.readBeta(t, result), change == "the CA")
					if old, now := (v030{}).read(t, result), (current{}).read(t, result); !apiequality.Semantic.DeepEqual(old, now) || !apiequality.Semantic.DeepEqual(now, seen) {
						t.Errorf("%s: v1alpha1 shows\n%s%s", what, diff.Diff(seen, old), diff.Diff(seen, now))
					}
				}
			}
		}
	}
}

// kept makes sure that each range that led to a URL before still does so if it
// leads there at all, with all that belongs to it and in the same order.
func kept(t *testing.T, what string, before, after []v1beta1.Endpoint, newCA bool) {
	t.Helper()
	type way struct{ cidr, url string }
	ways := func(endpoints []v1beta1.Endpoint) (out []way, of map[way]v1beta1.Endpoint) {
		of = map[way]v1beta1.Endpoint{}
		for _, e := range endpoints {
			cidrs := e.ClientCIDRs
			if len(cidrs) == 0 {
				cidrs = []string{"any"}
			}
			for _, cidr := range cidrs {
				key := way{cidr, e.URL}
				out = append(out, key)
				e.Name, e.ClientCIDRs = "", nil
				if newCA {
					e.CABundle = nil
				}
				of[key] = e
			}
		}
		return out, of
	}
	was, wasOf := ways(before)
	is, isOf := ways(after)
	var missing int
	for _, key := range was {
		now, ok := isOf[key]
		if !ok {
			missing++
			continue
		}
		if !apiequality.Semantic.DeepEqual(now, wasOf[key]) {
			t.Errorf("%s: the way %v was %+v and is %+v", what, key, wasOf[key], now)
		}
	}
	if missing > 1 || len(is) < len(was) {
		t.Errorf("%s: %v became %v", what, was, is)
	}
}

// TestClientsOf2018SeeTheNewForm makes sure of what v1alpha1 shows once this
// release has written a cluster through v1beta1, which a rewrite of the storage does.
func TestClientsOf2018SeeTheNewForm(t *testing.T) {
	type list = []v1alpha1.ServerAddressByClientCIDR
	wanted := func(url string) list {
		return list{{ClientCIDR: "10.1.0.0/16", ServerAddress: "https://narrow"}, {ClientCIDR: "10.0.0.0/8", ServerAddress: "https://narrow"}, {ClientCIDR: "0.0.0.0/0", ServerAddress: url}, {ClientCIDR: "::/0", ServerAddress: url}}
	}
	asWritten := list{{ClientCIDR: "10.0.0.0/8", ServerAddress: "near:6443"}, {ServerAddress: "east"}}
	for how, data := range written(t) {
		want := wanted("https://wide:6443")
		switch how {
		case "nothing":
			want = nil
		case "v1alpha1 through this one", "v1alpha1 through this one, then v1beta1 through it":
			want = asWritten
		case "v1beta1 through this one, then through v0.3.0":
			want = wanted("https://moved:6443")
		}
		rewritten := current{}.writeBeta(t, data, current{}.readBeta(t, data))
		if got := (current{}).read(t, rewritten).ServerEndpoints; !apiequality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: v1alpha1 shows %v, want %v", how, got, want)
		}
		if c := (current{}).decode(t, rewritten); form.Outdated(&c.Spec) {
			t.Errorf("%s: a rewritten cluster would be rewritten again", how)
		}
		if again := (current{}).writeBeta(t, rewritten, current{}.readBeta(t, rewritten)); !bytes.Equal(again, rewritten) {
			t.Errorf("%s: a second rewrite changes it", how)
		}
		if form.Outdated(&(current{}).decode(t, data).Spec) == bytes.Equal(rewritten, data) {
			t.Errorf("%s: whether a rewrite changes it is %t, and that it is outdated says otherwise", how, !bytes.Equal(rewritten, data))
		}
	}
}
