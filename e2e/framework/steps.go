package framework

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
)

// step is one request of a life, and what it makes of the cluster.
type step struct {
	method, suffix, contentType string
	// list asks for all clusters of the name instead of the one, and page for the
	// first of all clusters, up to that many; which ones does not matter.
	list   bool
	page   int
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
	case s.page > 0:
		return clusters + "?limit=" + strconv.Itoa(s.page)
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

// checkPage expects some clusters in an answer, and no more than were asked for.
func (s step) checkPage(body []byte) error {
	var got struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return err
	}
	if len(got.Items) == 0 || len(got.Items) > s.page || got.Items[0].Metadata.Name == "" {
		return fmt.Errorf("it does not list 1 to %d clusters: %s", s.page, body)
	}
	return nil
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

// report is what a cluster's agent says of its version.
func report(kubernetes string) step {
	return step{
		method: http.MethodPatch, suffix: "/status", contentType: string(types.MergePatchType), status: http.StatusOK,
		body: func(*Life) any {
			return map[string]any{"status": map[string]any{"version": map[string]string{"kubernetes": kubernetes}}}
		},
		change: func(c *v1alpha1.Cluster) {
			c.Status = &v1alpha1.ClusterStatus{Version: v1alpha1.ClusterVersion{Kubernetes: kubernetes}}
		},
	}
}

var (
	read   = step{method: http.MethodGet, status: http.StatusOK}
	list   = step{method: http.MethodGet, list: true, status: http.StatusOK}
	page   = step{method: http.MethodGet, page: 20, status: http.StatusOK}
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

	// steps make a whole life. Every second cluster is left at its end, to be
	// read back; the others are removed.
	steps = []step{create, appendEndpoint("one.example"), list, read, move, list, report("v1.37.1"), appendEndpoint("two.example"), relabel, read, page}
	ends  = []step{remove, absent}
)

// round is what a cluster goes through once more: each round is different, and
// none makes it grow.
func round(n int) []step {
	return []step{
		replace(func(c *v1alpha1.Cluster) { c.Labels["round"] = strconv.Itoa(n) }), page, report(fmt.Sprintf("v1.38.%d", n)), read,
		replace(func(c *v1alpha1.Cluster) {
			c.Spec.KubernetesAPIEndpoints.ServerEndpoints[0].ServerAddress = fmt.Sprintf("round-%d.example", n)
			c.Generation++
		}), list,
	}
}
