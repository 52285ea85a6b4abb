package cluster

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// table shows clusters to people, as kubectl get asks for it.
type table struct{}

// Columns with priority 1 are shown by "kubectl get -o wide".
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the cluster"},
	{Name: "Server", Type: "string", Description: "Address of the cluster's API server; (+N) when there are N more"},
	{Name: "Version", Type: "string", Description: "Kubernetes version of the cluster's API server, as reported"},
	{Name: "Ready", Type: "string", Description: "Status of the condition Ready, as reported"},
	{Name: "Age", Type: "string", Description: "Time since the cluster was registered"},
	{Name: "CIDRs", Type: "string", Priority: 1, Description: "Ranges of client addresses that have an address of their own"},
	{Name: "Auth", Type: "string", Priority: 1, Description: "Types of the ways to get credentials"},
	{Name: "CA Expires", Type: "string", Priority: 1, Description: "Time until the first of the cluster's CA certificates expires"},
}

// ConvertToTable shows a cluster or a list of clusters as rows.
func (table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		out.ColumnDefinitions = columns
	}
	if list, err := meta.ListAccessor(object); err == nil {
		out.ResourceVersion, out.Continue, out.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(), list.GetRemainingItemCount()
	} else if single, err := meta.CommonAccessor(object); err == nil {
		out.ResourceVersion = single.GetResourceVersion()
	}
	var err error
	out.Rows, err = metatable.MetaToTableRow(object, func(obj runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
		c, ok := obj.(*clusterregistry.Cluster)
		if !ok {
			return nil, fmt.Errorf("%T is no Cluster", obj)
		}
		return row(c, name, age, time.Now()), nil
	})
	return out, err
}

const none = "<none>"

func row(c *clusterregistry.Cluster, name, age string, now time.Time) []any {
	version, ready := "", ""
	if c.Status != nil {
		version = c.Status.Version.Kubernetes
		if condition := meta.FindStatusCondition(c.Status.Conditions, "Ready"); condition != nil {
			ready = string(condition.Status)
		}
	}
	var cidrs, types []string
	for _, endpoint := range c.Spec.KubernetesAPIEndpoints.ServerEndpoints {
		if endpoint.ClientCIDR != "" {
			cidrs = append(cidrs, endpoint.ClientCIDR)
		}
	}
	for _, provider := range c.Spec.AuthInfo.Providers {
		if provider.Type.Name != "" {
			types = append(types, provider.Type.Name)
		}
	}
	cells := []any{name, server(c), version, ready, age, strings.Join(cidrs, ","), strings.Join(types, ","), caExpiry(c.Spec.KubernetesAPIEndpoints.CABundle, now)}
	for i, cell := range cells {
		if cell == "" {
			cells[i] = none
		}
	}
	return cells
}

func server(c *clusterregistry.Cluster) string {
	endpoints := c.Spec.KubernetesAPIEndpoints.ServerEndpoints
	switch len(endpoints) {
	case 0:
		return ""
	case 1:
		return endpoints[0].ServerAddress
	}
	return fmt.Sprintf("%s (+%d)", endpoints[0].ServerAddress, len(endpoints)-1)
}

// caExpiry returns the time until the first certificate of a bundle expires.
func caExpiry(bundle []byte, now time.Time) string {
	var first time.Time
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (first.IsZero() || cert.NotAfter.Before(first)) {
			first = cert.NotAfter
		}
	}
	switch {
	case first.IsZero():
		return ""
	case !first.After(now):
		return "expired"
	}
	return duration.HumanDuration(first.Sub(now))
}
