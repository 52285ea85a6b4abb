package main

import (
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	clusterregistryv1alpha1 "github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/hack/cluster/pki"
)

func condition(kind, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
}

// TestProgress tells a story in steps: each adds the lines that it wants.
func TestProgress(t *testing.T) {
	seen := progress{}
	for _, step := range []struct {
		reason     string
		since      time.Duration
		conditions []metav1.Condition
		want       []string
	}{
		{"nothing is reported yet", 0, nil, nil},
		{"all that is new, in order", 1400 * time.Millisecond, []metav1.Condition{condition("EtcdReady", "False", "MembersNotReady", "1 of 3"), condition("Ready", "False", "Waiting", "etcd")},
			[]string{"    1s  EtcdReady           False    MembersNotReady         1 of 3", "    1s  Ready               False    Waiting                 etcd"}},
		{"nothing has changed", 2 * time.Second, []metav1.Condition{condition("EtcdReady", "False", "MembersNotReady", "1 of 3"), condition("Ready", "False", "Waiting", "etcd")}, nil},
		{"a message of several lines, with one", 3 * time.Second, []metav1.Condition{condition("EtcdReady", "False", "MembersNotReady", "2 of 3:\n  etcd-2"), condition("Ready", "False", "Waiting", "etcd")},
			[]string{"    3s  EtcdReady           False    MembersNotReady         2 of 3: etcd-2"}},
		{"a status, minutes later", 75 * time.Second, []metav1.Condition{condition("EtcdReady", "False", "MembersNotReady", "2 of 3:\n  etcd-2"), condition("Ready", "True", "Waiting", "etcd")},
			[]string{" 1m15s  Ready               True     Waiting                 etcd"}},
	} {
		if got := seen.changes(step.since, step.conditions); !slices.Equal(got, step.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", step.reason, strings.Join(got, "\n"), strings.Join(step.want, "\n"))
		}
	}
}

func TestReady(t *testing.T) {
	for _, test := range []struct {
		reason     string
		observed   int64
		conditions []metav1.Condition
		says       string
	}{
		{"untouched", 0, nil, "has not reported on it yet"},
		{"ready before a change", 1, []metav1.Condition{condition("Ready", "True", "Ready", "")}, "has not seen its newest spec"},
		{"not ready", 2, []metav1.Condition{condition("Ready", "False", "Waiting", "for etcd")}, "condition Ready is False: Waiting: for etcd"},
		{"ready", 2, []metav1.Condition{condition("Ready", "True", "Ready", "")}, ""},
	} {
		r := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: operatorv1alpha1.ClusterRegistryStatus{ObservedGeneration: test.observed, Conditions: test.conditions}}
		err := ready(r)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q", test.reason, err, test.says)
		}
	}
}

func TestFailure(t *testing.T) {
	for _, test := range []struct {
		reason     string
		conditions []metav1.Condition
		says       string
	}{
		{"an operator that does nothing", nil, "none: the operator has not acted on it"},
		{"conditions are repeated", []metav1.Condition{condition("EtcdReady", "False", "MembersNotReady", "1 of 3")}, "MembersNotReady         1 of 3"},
	} {
		got := failure(patience, test.conditions)
		for _, text := range []string{test.says, "kubectl describe creg fleet", "logs deployment/clusterregistry-operator"} {
			if !strings.Contains(got, text) {
				t.Errorf("%s: it does not say %q:\n%s", test.reason, text, got)
			}
		}
	}
}

// TestClustersAreValid holds the entries to the registry's own rules, of which
// one is that there are no credentials in them.
func TestClustersAreValid(t *testing.T) {
	store := pki.Store{Dir: t.TempDir()}
	if _, err := store.Authority("ca"); err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(store.Cert("ca"))
	if err != nil {
		t.Fatal(err)
	}
	host, err := hostEntry(&rest.Config{Host: "https://10.200.0.1:6443", BearerToken: "secret", Password: "secret",
		TLSClientConfig: rest.TLSClientConfig{CAFile: store.Cert("ca"), CertData: []byte("secret"), KeyData: []byte("secret")}})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(host), "secret") || strings.Contains(string(host), base64.StdEncoding.EncodeToString([]byte("secret"))) {
		t.Errorf("credentials are in it:\n%s", host)
	}
	samples, err := os.ReadFile("clusters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for document := range strings.SplitSeq(string(host)+"---\n"+string(samples), "---\n") {
		var cluster clusterregistryv1alpha1.Cluster
		if err := yaml.UnmarshalStrict([]byte(document), &cluster); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		var hub clusterregistry.Cluster
		if err := clusterregistryv1alpha1.Convert_v1alpha1_Cluster_To_clusterregistry_Cluster(&cluster, &hub, nil); err != nil {
			t.Fatal(err)
		}
		for _, fault := range validation.Cluster(&hub, clusterregistryv1alpha1.SchemeGroupVersion.Version) {
			t.Errorf("%s: %v", cluster.Name, fault)
		}
		names = append(names, cluster.Name)
		if bundle := cluster.Spec.KubernetesAPIEndpoints.CABundle; cluster.Name == "host" && string(bundle) != string(authority) {
			t.Errorf("the host's CA is %q", bundle)
		}
	}
	if !slices.Equal(names, []string{"host", "east", "west"}) {
		t.Errorf("the clusters are %v", names)
	}
}

func TestHostWithoutCA(t *testing.T) {
	if _, err := hostEntry(&rest.Config{Host: "https://10.200.0.1:6443"}); err == nil || !strings.Contains(err.Error(), "names no CA") {
		t.Errorf("got %v", err)
	}
}

// TestTyped lets a shell take each command apart again.
func TestTyped(t *testing.T) {
	for _, args := range [][]string{
		{"get", "crc", "-l", "region=eu"},
		{"get", "creg", "-o", `jsonpath={range .status.conditions[*]}{.type}: {.message}{"\n"}{end}`},
		{"label", "it's", "", "$HOME", "a\nb"},
	} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", `kubectl() { printf '%s\0' "$@"; }; `+typed(args)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, args) {
			t.Errorf("%s is taken as %q, want %q", typed(args), got, args)
		}
	}
	if got := typed([]string{"get", "crc", "-l", "region=eu"}); got != "kubectl get crc -l region=eu" {
		t.Errorf("more quotes than needed: %s", got)
	}
}

// TestWatch lets a script play kubectl, which goes on when the label is set.
func TestWatch(t *testing.T) {
	const follow = `#!/bin/sh
case $1 in
get) echo "EVENT  NAME"; echo "ADDED  east"; while [ ! -e "$0.labeled" ]; do sleep 0.01; done; %s ;;
label) : > "$0.labeled"; echo labeled ;;
esac
`
	for _, test := range []struct{ reason, then, says, fails string }{
		{"the event ends it", `echo "MODIFIED  east"; exec sleep 600`, "$ kubectl get east &\nEVENT  NAME\nADDED  east\n$ kubectl label east\nlabeled\nMODIFIED  east\n", ""},
		{"a watch that ends without", `echo broken >&2`, "labeled\n", "before the change was seen: broken"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "kubectl")
			if err := os.WriteFile(program, []byte(strings.Replace(follow, "%s", test.then, 1)), 0o755); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			ctx, cancel := context.WithTimeout(t.Context(), eventTime)
			defer cancel()
			err := shell{program: program, out: &out}.watch(ctx, []string{"get", "east"}, []string{"label", "east"})
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("got %v, want %q", err, test.fails)
			}
			if !strings.HasSuffix(out.String(), test.says) {
				t.Errorf("it prints\n%s\nwant\n%s", out.String(), test.says)
			}
		})
	}
}
