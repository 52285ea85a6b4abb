package cluster

import (
	"context"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apiserver/storage/table"
)

// convertor shows clusters to people, in the columns of the request's version.
type convertor struct{}

// ConvertToTable shows a cluster or a list of clusters.
func (convertor) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	if versionOf(ctx) == form.V1alpha1 {
		return alphaTable.ConvertToTable(ctx, object, options)
	}
	return betaTable.ConvertToTable(ctx, object, options)
}

var alphaTable = table.Convertor[*clusterregistry.Cluster]{
	Columns: columns,
	Row:     func(c *clusterregistry.Cluster, name, age string) []any { return row(c, name, age, time.Now()) },
}

var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the cluster"},
	{Name: "Server", Type: "string", Description: "Address of the cluster's API server; (+N) when there are N more"},
	{Name: "Version", Type: "string", Description: "Kubernetes version of the cluster's API server, as reported"},
	{Name: "Ready", Type: "string", Description: "Status of the condition Ready, as reported, or of Available where there is none"},
	{Name: "Age", Type: "string", Description: "Time since the cluster was registered"},
	{Name: "CIDRs", Type: "string", Priority: 1, Description: "Ranges of client addresses that have an address of their own"},
	{Name: "Auth", Type: "string", Priority: 1, Description: "Types of the ways to get credentials"},
	{Name: "CA Expires", Type: "string", Priority: 1, Description: "Time until the first of the cluster's CA certificates expires"},
}

func row(c *clusterregistry.Cluster, name, age string, now time.Time) []any {
	version, ready := "", ""
	if c.Status != nil {
		version = c.Status.Version.Kubernetes
		// Controllers of v1beta1 report Available.
		for _, name := range []string{"Available", "Ready"} {
			if condition := meta.FindStatusCondition(c.Status.Conditions, name); condition != nil {
				ready = string(condition.Status)
			}
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
	return []any{name, server(c), version, ready, age, strings.Join(cidrs, ","), strings.Join(types, ","), caExpiry(c.Spec.KubernetesAPIEndpoints.CABundle, now)}
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
		if end := notAfter(block.Bytes); !end.IsZero() && (first.IsZero() || end.Before(first)) {
			first = end
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

// notAfter returns the end of a certificate, or zero. A list of all clusters asks
// for each of theirs, so that it reads no further than there: keys and extensions
// are most of the work.
func notAfter(der []byte) time.Time {
	var certificate struct {
		Content struct {
			Version                   int `asn1:"optional,explicit,default:0,tag:0"`
			Serial, Algorithm, Issuer asn1.RawValue
			Validity                  struct{ NotBefore, NotAfter time.Time }
		}
	}
	if _, err := asn1.Unmarshal(der, &certificate); err != nil {
		return time.Time{}
	}
	return certificate.Content.Validity.NotAfter
}
