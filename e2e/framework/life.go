package framework

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
)

// Life is what one cluster goes through under load, and what of it was
// acknowledged.
type Life struct {
	Name string
	// Acknowledged is the cluster as the server last confirmed it; nil when it
	// is deleted, or not created yet.
	Acknowledged *v1alpha1.Cluster
	// Writes counts the acknowledged writes.
	Writes int
	// InDoubt is true when a write failed, of which nobody knows whether it was
	// applied. It was the last.
	InDoubt bool

	step  int
	stays bool
}

// step is one request of a life, and what it makes of the cluster.
type step struct {
	method, suffix, contentType string
	// list asks for all clusters of the name instead of the one.
	list   bool
	body   func(*Life) any
	status int
	change func(*v1alpha1.Cluster)
}

func (s step) writes() bool { return s.method != http.MethodGet }

// url returns where the step's request for a cluster goes, below the address of
// all clusters.
func (s step) url(clusters, name string) string {
	switch {
	case s.method == http.MethodPost:
		return clusters
	case s.list:
		return clusters + "?fieldSelector=metadata.name=" + name
	}
	return clusters + "/" + name + s.suffix
}

// parse returns the cluster in an answer.
func (s step) parse(body []byte) (*v1alpha1.Cluster, error) {
	if !s.list {
		got := &v1alpha1.Cluster{}
		return got, json.Unmarshal(body, got)
	}
	var got v1alpha1.ClusterList
	if err := json.Unmarshal(body, &got); err != nil {
		return nil, err
	}
	if len(got.Items) != 1 {
		return nil, fmt.Errorf("it lists %d clusters", len(got.Items))
	}
	return &got.Items[0], nil
}

// appendEndpoint is a patch without a precondition: were it applied twice, the
// address would be there twice.
func appendEndpoint(address string) step {
	return step{
		method: http.MethodPatch, contentType: string(types.JSONPatchType), status: http.StatusOK,
		body: func(*Life) any {
			return []any{map[string]any{"op": "add", "path": "/spec/kubernetesApiEndpoints/serverEndpoints/-", "value": map[string]string{"serverAddress": address}}}
		},
		change: func(c *v1alpha1.Cluster) {
			list := &c.Spec.KubernetesAPIEndpoints.ServerEndpoints
			*list = append(*list, v1alpha1.ServerAddressByClientCIDR{ServerAddress: address})
			c.Generation++
		},
	}
}

// replace is a PUT of the version that was acknowledged last, and of no other.
func replace(change func(*v1alpha1.Cluster)) step {
	return step{method: http.MethodPut, contentType: "application/json", status: http.StatusOK, change: change, body: func(l *Life) any {
		c := l.Acknowledged.DeepCopy()
		change(c)
		return c
	}}
}

var (
	read   = step{method: http.MethodGet, status: http.StatusOK}
	list   = step{method: http.MethodGet, list: true, status: http.StatusOK}
	absent = step{method: http.MethodGet, status: http.StatusNotFound}
	remove = step{method: http.MethodDelete, status: http.StatusOK, change: func(*v1alpha1.Cluster) {}}
	create = step{method: http.MethodPost, contentType: "application/json", status: http.StatusCreated, body: func(l *Life) any {
		c := &v1alpha1.Cluster{TypeMeta: metav1.TypeMeta{APIVersion: "clusterregistry.k8s.io/v1alpha1", Kind: "Cluster"}, ObjectMeta: metav1.ObjectMeta{Name: l.Name, Labels: map[string]string{"load": "yes"}}}
		c.Spec.KubernetesAPIEndpoints.ServerEndpoints = []v1alpha1.ServerAddressByClientCIDR{{ServerAddress: l.Name + ".example"}}
		return c
	}}
	relabel = replace(func(c *v1alpha1.Cluster) { c.Labels["step"] = "relabelled" })
	move    = replace(func(c *v1alpha1.Cluster) {
		c.Spec.KubernetesAPIEndpoints.ServerEndpoints[0].ServerAddress = "moved.example"
		c.Generation++
	})
	report = step{
		method: http.MethodPatch, suffix: "/status", contentType: string(types.MergePatchType), status: http.StatusOK,
		body: func(*Life) any {
			return map[string]any{"status": map[string]any{"version": map[string]string{"kubernetes": "v1.37.1"}}}
		},
		change: func(c *v1alpha1.Cluster) {
			c.Status = &v1alpha1.ClusterStatus{Version: v1alpha1.ClusterVersion{Kubernetes: "v1.37.1"}}
		},
	}

	// steps make a whole life. Every second cluster is left at its end, to be
	// read back; the others are removed.
	steps = []step{create, appendEndpoint("one.example"), list, read, move, list, report, appendEndpoint("two.example"), relabel, read}
	ends  = []step{remove, absent}
)

// next returns the life's next step, or false at its end.
func (l *Life) next() (step, bool) {
	all := steps
	if !l.stays {
		all = slices.Concat(steps, ends)
	}
	if l.step >= len(all) {
		return step{}, false
	}
	return all[l.step], true
}

// took checks an answer to a step and takes it as what is so from now on.
func (l *Life) took(s step, status int, body []byte) error {
	what := fmt.Sprintf("%s %s%s, step %d", s.method, l.Name, s.suffix, l.step)
	if status != s.status {
		return fmt.Errorf("%s: status %d: %s", what, status, strings.TrimSpace(string(body)))
	}
	l.step++
	if s.writes() {
		l.Writes++
	}
	if s.method == http.MethodDelete || s.status == http.StatusNotFound {
		l.Acknowledged = nil
		return nil
	}
	got, err := s.parse(body)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", what, err, body)
	}
	before := l.Acknowledged
	l.Acknowledged = got
	if before == nil {
		return nil
	}
	want := before.DeepCopy()
	if s.change != nil {
		s.change(want)
	}
	if (got.ResourceVersion == before.ResourceVersion) == s.writes() {
		return fmt.Errorf("%s: it went from version %s to %s", what, before.ResourceVersion, got.ResourceVersion)
	}
	if err := Same(want, got); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// survived returns what is lost of a life whose last write is in doubt, or nil:
// all before it must be there, unless it was the removal.
func (l *Life) survived(stored *v1alpha1.Cluster) error {
	if l.Acknowledged == nil {
		return nil
	}
	if stored == nil {
		if l.step < len(steps) {
			return fmt.Errorf("the acknowledged cluster %s is lost", l.Name)
		}
		return nil
	}
	if stored.UID != l.Acknowledged.UID || stored.Generation < l.Acknowledged.Generation {
		return fmt.Errorf("cluster %s is %+v, which is not after %+v", l.Name, stored, l.Acknowledged)
	}
	return nil
}

// Same returns how two states of a cluster differ, or nil: in content, identity
// or the number of changes, but for their version.
func Same(want, got *v1alpha1.Cluster) error {
	if want.UID != got.UID || want.Generation != got.Generation || !apiequality.Semantic.DeepEqual(want.Labels, got.Labels) ||
		!apiequality.Semantic.DeepEqual(want.Spec, got.Spec) || !apiequality.Semantic.DeepEqual(want.Status, got.Status) {
		return fmt.Errorf("cluster %s is %+v, not %+v", want.Name, got, want)
	}
	return nil
}
