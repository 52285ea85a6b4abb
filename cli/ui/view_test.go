package ui

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
	"github.com/clusterregistry/operator/internal/contract"
)

// hostObjects are a host cluster with a registry that is being upgraded, and a backup.
const hostObjects = `
apiVersion: operator.clusterregistry.io/v1alpha1
kind: ClusterRegistry
metadata: {name: fleet, namespace: registries}
spec: {version: v0.2.0, mode: Aggregated, backup: {schedule: 0 * * * *, store: {s3: {bucket: b}}}}
status:
  version: v0.1.0
  etcd: {ready: 2/3, members: [{name: fleet-etcd-0, ready: true, leader: true, databaseSize: 820Mi, quota: 4Gi}, {name: fleet-etcd-1, learner: true}]}
  operation: {type: Upgrade, from: v0.1.0, to: v0.2.0, phase: Etcd, phaseStartedTime: "2026-11-23T11:58:00Z", progress: Etcd 2/3}
  certificates: [{name: fleet-serving, notAfter: "2026-11-24T12:00:00Z", renewalTime: "2026-11-23T13:00:00Z"}]
  conditions: [{type: Available, status: "True", reason: Available}, {type: Ready, status: "True", reason: Ready}]
---
apiVersion: operator.clusterregistry.io/v1alpha1
kind: ClusterRegistryBackup
metadata: {name: nightly, namespace: registries}
spec: {registryRef: {name: fleet}}
status: {phase: Completed, bytes: 1048576}
`

func cluster(name, available string) *v1beta1.Cluster {
	return &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "eu", "env": "prod"}},
		Status: &v1beta1.ClusterStatus{
			Version:    v1beta1.ClusterVersion{Kubernetes: "v1.37.1"},
			Conditions: []metav1.Condition{{Type: "Available", Status: metav1.ConditionStatus(available), Reason: "Probed"}},
		},
	}
}

// authority returns a CA certificate, in PEM.
func authority(t *testing.T, notAfter time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: notAfter}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

func TestRow(t *testing.T) {
	early, late := commandtest.Now.Add(24*time.Hour), commandtest.Now.Add(48*time.Hour)
	c := cluster("east", "True")
	c.Spec.Endpoints = []v1beta1.Endpoint{{Name: "main", CABundle: append(authority(t, late), authority(t, late.Add(time.Hour))...)}}
	seen := metav1.NewTime(commandtest.Now)
	c.Status.Reporters = []v1beta1.Reporter{{Name: "a", LastSeen: &metav1.Time{Time: seen.Add(-time.Hour)}}, {Name: "b", LastSeen: &seen}, {Name: "c"}}
	row := rowOf(c)
	if row.State != "True" || row.Region != "eu" || row.Version != "v1.37.1" || !row.Expires.Equal(late) || !row.Seen.Equal(seen.Time) {
		t.Errorf("%s", asJSON(t, row))
	}
	c.Status.Properties = []v1beta1.Property{{Name: contract.ExpiryProperty, Value: early.Format(time.RFC3339)}}
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "IdentityVerified", Status: "False", Reason: "OtherCluster"})
	if row = rowOf(c); !row.Expires.Equal(early) || row.State != "identity differs" || row.Reason != "OtherCluster" {
		t.Errorf("%s", asJSON(t, row))
	}
}

// TestRowIsBounded has an entry that is as large as entries get cost no more than a row.
func TestRowIsBounded(t *testing.T) {
	c := cluster("east", "False")
	c.Spec.DisplayName = strings.Repeat("\u202e<img src=x onerror=alert(1)>", 5000)
	c.Status.Conditions[0].Message = strings.Repeat("m", 32<<10)
	for i := range 5000 {
		c.Labels[fmt.Sprintf("key-%04d", i)] = strings.Repeat("v", 63)
	}
	got := asJSON(t, rowOf(c))
	if len(got) > 8<<10 {
		t.Errorf("the row has %d bytes", len(got))
	}
	if strings.Contains(got, "\u202e") || !strings.Contains(got, `\u003cimg src=x onerror=alert(1)\u003e`) {
		t.Errorf("the name is %.200s", got)
	}
}

// TestDetail shows how to sign in, and none of the values that are for programs.
func TestDetail(t *testing.T) {
	c := cluster("east", "True")
	c.Spec.Endpoints = []v1beta1.Endpoint{{Name: "main", URL: "https://east.example:6443", CABundle: authority(t, commandtest.Now)}}
	c.Spec.Access = []v1beta1.Access{
		{Name: "users", Audience: "User", Exec: &v1beta1.ExecAccess{Command: "aws", Args: []string{"eks", "get-token"}, Env: []v1beta1.ExecEnvVar{{Name: "AWS_PROFILE", Value: "hidden"}}}},
		{Name: "object", Audience: "Controller", ObjectRef: &v1beta1.ObjectReference{Kind: "Secret", Namespace: "n", Name: "s"}},
		{Name: "provider", Audience: "User", Provider: &v1beta1.ProviderAccess{Type: "vendor", Config: map[string]string{"k": "hidden"}}},
		{Name: "sso", Audience: "User", OIDC: &v1beta1.OIDCAccess{IssuerURL: "https://sso.example", ClientID: "kube"}},
	}
	got := asJSON(t, detailOf(c))
	for _, text := range []string{`"how":"aws eks get-token"`, `"how":"Secret n/s"`, `"how":"vendor"`, `"how":"https://sso.example, client kube"`, `"subject":"CN=ca"`, `"url":"https://east.example:6443"`} {
		if !strings.Contains(got, text) {
			t.Errorf("it has no %s: %s", text, got)
		}
	}
	if strings.Contains(got, "hidden") {
		t.Errorf("it has a value: %s", got)
	}
}

// TestRegistry reads the view of a registry twice: what needs attention depends on the time.
func TestRegistry(t *testing.T) {
	objects := commandtest.Objects(t, hostObjects)
	view := registryOf(objects[0]).(timed)
	first := view(commandtest.Now).(Registry)
	if first.Operation != "Upgrade v0.1.0 -> v0.2.0: Etcd 2/3" || first.Phase.Name != "Etcd" || first.Members[0].Role != "leader" || first.Members[1].Role != "learner" || first.Members[0].Quota != 4<<30 || len(first.Problems) != 0 {
		t.Errorf("%s", asJSON(t, first))
	}
	if later := view(commandtest.Now.Add(48 * time.Hour)).(Registry); len(later.Problems) != 1 || !strings.Contains(later.Problems[0].Message, "has expired") {
		t.Errorf("%s", asJSON(t, later.Problems))
	}
	if b := backupOf(objects[1]).(Backup); b.Registry != "registries/fleet" || b.Phase != "Completed" || b.Bytes != 1<<20 {
		t.Errorf("%s", asJSON(t, b))
	}
	objects[0].Object["spec"] = "nonsense"
	if broken := registryOf(objects[0]).(Registry); broken.Error == "" || broken.Key != "registries/fleet" {
		t.Errorf("%s", asJSON(t, broken))
	}
}
