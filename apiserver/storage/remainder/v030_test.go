package remainder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// v030 does to what etcd holds what a server of v0.3.0 does. It is a copy of that
// release's conversion, as far as endpoints go, and never changes.
type v030 struct{}

func (v030) read(t *testing.T, data []byte) v1alpha1.KubernetesAPIEndpoints {
	raw, content := v030{}.decode(t, data)
	if content != nil {
		return content.Spec.KubernetesAPIEndpoints
	}
	return v030{}.shown(raw.Spec.Endpoints)
}

func (v030) readBeta(t *testing.T, data []byte) []v1beta1.Endpoint {
	raw, _ := v030{}.decode(t, data)
	return raw.Spec.Endpoints
}

func (v030) write(t *testing.T, data []byte, written v1alpha1.KubernetesAPIEndpoints) []byte {
	raw, _ := v030{}.decode(t, data)
	if before := (v030{}).read(t, data); !apiequality.Semantic.DeepEqual(written, before) {
		raw.Spec.Endpoints = v030{}.endpoints(written, before, raw.Spec.Endpoints)
	}
	return v030{}.encode(t, raw, written)
}

func (v030) writeBeta(t *testing.T, data []byte, written []v1beta1.Endpoint) []byte {
	raw := &v1beta1.Cluster{}
	form := v030{}.shown(written)
	if data != nil {
		raw, _ = v030{}.decode(t, data)
		form = v030{}.spelled(form, v030{}.shown(raw.Spec.Endpoints), v030{}.read(t, data))
	}
	raw.Spec.Endpoints = written
	return v030{}.encode(t, raw, form)
}

func (v030) decode(t *testing.T, data []byte) (*v1beta1.Cluster, *alpha) {
	t.Helper()
	object, _, err := protobuf.NewSerializer(scheme, scheme).Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw := object.(*v1beta1.Cluster)
	members := map[string]*alpha{}
	if remainder := raw.Annotations[clusterregistry.RemainderAnnotation]; remainder != "" {
		if err := json.Unmarshal([]byte(remainder), &members); err != nil {
			t.Fatal(err)
		}
	}
	return raw, members["v1alpha1"]
}

func (v030) encode(t *testing.T, raw *v1beta1.Cluster, form v1alpha1.KubernetesAPIEndpoints) []byte {
	t.Helper()
	raw.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("Cluster"))
	raw.Annotations = nil
	if !apiequality.Semantic.DeepEqual(form, v030{}.shown(raw.Spec.Endpoints)) {
		remainder, err := json.Marshal(map[string]alpha{"v1alpha1": {Spec: v1alpha1.ClusterSpec{KubernetesAPIEndpoints: form}}})
		if err != nil {
			t.Fatal(err)
		}
		raw.Annotations = map[string]string{clusterregistry.RemainderAnnotation: string(remainder)}
	}
	data, err := runtime.Encode(protobuf.NewSerializer(scheme, scheme), raw)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (v030) shown(endpoints []v1beta1.Endpoint) (out v1alpha1.KubernetesAPIEndpoints) {
	var bundles [][]byte
	for _, endpoint := range endpoints {
		for _, cidr := range (v030{}).ranges(endpoint) {
			out.ServerEndpoints = append(out.ServerEndpoints, v1alpha1.ServerAddressByClientCIDR{ClientCIDR: cidr, ServerAddress: v030{}.address(endpoint.URL)})
		}
		if len(endpoint.CABundle) > 0 && !slices.ContainsFunc(bundles, func(b []byte) bool { return bytes.Equal(b, endpoint.CABundle) }) {
			bundles = append(bundles, endpoint.CABundle)
		}
	}
	for _, bundle := range bundles {
		if n := len(out.CABundle); n > 0 && out.CABundle[n-1] != '\n' {
			out.CABundle = append(out.CABundle, '\n')
		}
		out.CABundle = append(out.CABundle, bundle...)
	}
	return out
}

func (v030) ranges(endpoint v1beta1.Endpoint) []string {
	if len(endpoint.ClientCIDRs) == 0 {
		return []string{""}
	}
	return endpoint.ClientCIDRs
}

func (v030) address(url string) string {
	host, ok := strings.CutPrefix(url, "https://")
	if !ok || host == "" || strings.ContainsAny(host, "/?#@") {
		return url
	}
	return host
}

func (v030) url(address string) string {
	switch ip, err := netip.ParseAddr(address); {
	case address == "", strings.Contains(address, "://"):
		return address
	case err == nil && ip.Is6():
		return "https://[" + address + "]"
	}
	return "https://" + address
}

type v030Entry struct {
	cidr, url string
	endpoint  int
}

func (v030) match(written []v1alpha1.ServerAddressByClientCIDR, stored []v1beta1.Endpoint) []int {
	var left []v030Entry
	for i, endpoint := range stored {
		for _, cidr := range (v030{}).ranges(endpoint) {
			left = append(left, v030Entry{cidr, endpoint.URL, i})
		}
	}
	out := slices.Repeat([]int{-1}, len(written))
	for _, same := range []func(written, stored v030Entry) bool{
		func(w, s v030Entry) bool { return w.cidr == s.cidr && w.url == s.url },
		func(w, s v030Entry) bool { return w.cidr == s.cidr },
		func(w, s v030Entry) bool { return w.url == s.url },
	} {
		for i, w := range written {
			if out[i] >= 0 {
				continue
			}
			wanted := v030Entry{cidr: w.ClientCIDR, url: v030{}.url(w.ServerAddress)}
			if j := slices.IndexFunc(left, func(s v030Entry) bool { return same(wanted, s) }); j >= 0 {
				out[i] = left[j].endpoint
				left = slices.Delete(left, j, j+1)
			}
		}
	}
	return out
}

// endpoints gives new names to all that v0.3.0 renames: names don't matter here.
func (v030) endpoints(written, stored v1alpha1.KubernetesAPIEndpoints, rich []v1beta1.Endpoint) []v1beta1.Endpoint {
	type group struct {
		endpoint int
		url      string
	}
	sameCA := bytes.Equal(written.CABundle, stored.CABundle)
	made, names := map[group]int{}, map[string]bool{}
	var out []v1beta1.Endpoint
	for i, from := range (v030{}).match(written.ServerEndpoints, rich) {
		address := written.ServerEndpoints[i]
		url := v030{}.url(address.ServerAddress)
		key := group{from, url}
		if at, ok := made[key]; ok && address.ClientCIDR != "" && len(out[at].ClientCIDRs) > 0 {
			out[at].ClientCIDRs = append(out[at].ClientCIDRs, address.ClientCIDR)
			continue
		}
		endpoint := v1beta1.Endpoint{CABundle: written.CABundle}
		if from >= 0 {
			endpoint = rich[from]
			endpoint.ClientCIDRs = nil
		}
		if !sameCA {
			endpoint.CABundle = written.CABundle
		}
		if from < 0 || endpoint.URL != url || names[endpoint.Name] {
			endpoint.Name = fmt.Sprintf("endpoint-%d", i+1)
		}
		names[endpoint.Name] = true
		endpoint.URL = url
		if address.ClientCIDR != "" {
			endpoint.ClientCIDRs = []string{address.ClientCIDR}
		}
		if from >= 0 {
			made[key] = len(out)
		}
		out = append(out, endpoint)
	}
	return out
}

func (v030) spelled(shown, before, stored v1alpha1.KubernetesAPIEndpoints) v1alpha1.KubernetesAPIEndpoints {
	out := shown
	if bytes.Equal(shown.CABundle, before.CABundle) {
		out.CABundle = stored.CABundle
	}
	if slices.Equal(shown.ServerEndpoints, before.ServerEndpoints) {
		out.ServerEndpoints = stored.ServerEndpoints
		return out
	}
	left := slices.Clone(stored.ServerEndpoints)
	for i, now := range out.ServerEndpoints {
		j := slices.IndexFunc(left, func(s v1alpha1.ServerAddressByClientCIDR) bool {
			return s.ClientCIDR == now.ClientCIDR && v030{}.url(s.ServerAddress) == v030{}.url(now.ServerAddress)
		})
		if j >= 0 {
			out.ServerEndpoints[i] = left[j]
			left = slices.Delete(left, j, j+1)
		}
	}
	return out
}
