package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

var (
	teams    = []string{"payments", "search", "ads", "core", "media"}
	regions  = []string{"eu-central", "eu-west", "us-east", "us-west", "ap-south"}
	sets     = []string{"production", "staging", "", "search"}
	versions = []string{"v1.37.1", "v1.36.3", "v1.35.9"}
	tiers    = []string{"web", "batch"}
)

// authorities are how many CAs the clusters have in all.
const authorities = 20

// registries are the ClusterRegistries and backups of the host cluster, where "@-5m" is the time
// five minutes ago.
//
//go:embed registries.yaml
var registries string

var relative = regexp.MustCompile(`@(-?[0-9a-z]+)`)

// fleet returns so many clusters, and the host cluster's registries.
func fleet(clusters int, now time.Time) ([]object, error) {
	var out []object
	var cas [][]byte
	for i := range authorities {
		ca, err := authority(now.Add(time.Duration(i*i*20+15) * 24 * time.Hour)) // the first one soon
		if err != nil {
			return nil, err
		}
		cas = append(cas, ca)
	}
	for i := range clusters {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(member(i, cas, now))
		if err != nil {
			return nil, err
		}
		out = append(out, content)
	}
	text := relative.ReplaceAllStringFunc(registries, func(s string) string {
		d, err := time.ParseDuration(s[1:])
		if err != nil {
			panic(err) // the file is a part of this program
		}
		return `"` + now.Add(d).UTC().Format(time.RFC3339) + `"`
	})
	for _, document := range bytes.Split([]byte(text), []byte("\n---\n")) {
		o := object{}
		if err := yaml.Unmarshal(document, &o); err != nil {
			return nil, fmt.Errorf("registries.yaml: %w", err)
		}
		content, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		o = object{}
		if err := json.Unmarshal(content, &o); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// member returns a cluster of the fleet, always the same one for a number.
func member(i int, cas [][]byte, now time.Time) *v1beta1.Cluster {
	team, region := teams[i%len(teams)], regions[i/len(teams)%len(regions)]
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	c := &v1beta1.Cluster{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%s-%04d", team, region, i), CreationTimestamp: at(time.Duration(i%300) * time.Hour),
			Labels: map[string]string{"team": team, "region": region, "env": "prod", "tier": tiers[i%7%2]},
		},
		Spec: v1beta1.ClusterSpec{
			ID: fmt.Sprintf("id-%d", i), ClusterSet: sets[i%11%len(sets)], Heartbeat: &v1beta1.Heartbeat{PeriodSeconds: 60},
			Endpoints: []v1beta1.Endpoint{{Name: "main", URL: fmt.Sprintf("https://%s-%04d.example:6443", team, i), CABundle: cas[(i*7+3)%len(cas)]}},
			Access: []v1beta1.Access{
				{Name: "users", Audience: "User", OIDC: &v1beta1.OIDCAccess{IssuerURL: "https://login.example", ClientID: "kubernetes"}},
				{Name: "controllers", Audience: "Controller", ObjectRef: &v1beta1.ObjectReference{Kind: "Secret", Namespace: "fleet", Name: fmt.Sprintf("access-%d", i)}},
			},
		},
	}
	condition := metav1.Condition{Type: "Available", Status: metav1.ConditionTrue, Reason: "Probed", Message: "The API server answers.", LastTransitionTime: at(time.Duration(i%50+1) * time.Hour)}
	seen := at(time.Duration(i%50) * time.Second)
	switch {
	case i%83 == 7:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "ConnectionRefused", "dial tcp 203.0.113.7:6443: connect: connection refused"
		seen = at(time.Duration(i%40+3) * time.Minute)
	case i%211 == 9:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionUnknown, "HeartbeatMissing", "No sign of life for 3 minutes."
	case i%307 == 5:
		return c
	}
	c.Status = &v1beta1.ClusterStatus{
		Version:    v1beta1.ClusterVersion{Kubernetes: versions[i%9%len(versions)]},
		Conditions: []metav1.Condition{condition},
		Nodes:      &v1beta1.NodeCount{Total: int32(i%40 + 3), Ready: int32(i%40 + 3)},
		Reporters:  []v1beta1.Reporter{{Name: "fleet-controller", LastSeen: &seen, Conditions: []metav1.Condition{condition}}},
		Properties: []v1beta1.Property{{Name: "kubernetes.io/distribution", Value: "kubeadm"}},
	}
	return c
}

// authority returns a CA certificate, in PEM.
func authority(notAfter time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotAfter: notAfter}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), nil
}
