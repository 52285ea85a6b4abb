package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

func TestOptions(t *testing.T) {
	directory := t.TempDir()
	file, empty, feed := filepath.Join(directory, "exports.json"), filepath.Join(directory, "empty.json"), filepath.Join(directory, "feed.json")
	for path, content := range map[string]string{file: `[{"namespace": "a", "format": "ClusterProfile"}]`, empty: "[]", feed: "{}"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := strings.NewReplacer("FILE", file, "EMPTY", empty, "FEED", feed)
	for _, test := range []struct {
		reason, args, says string
	}{
		{"health alone", "--namespace=fleet --health", ""},
		{"both", "--namespace=fleet --health --register-host=host --register-host-url=https://api", ""},
		{"Cluster API alone", "--namespace=fleet --registry-name=hub --cluster-api --cluster-api-namespaces=a,fleet --cluster-api-selector=tier=gold --cluster-api-labels=env,example.com/* --cluster-api-name-template={namespace}-{name}", ""},
		{"Cluster API of no namespace", "--namespace=fleet --registry-name=hub --cluster-api", "--cluster-api-namespaces is not set"},
		{"namespaces without Cluster API", "--namespace=fleet --health --cluster-api-namespaces=a", "without --cluster-api"},
		{"Cluster API for no registry", "--namespace=fleet --cluster-api --cluster-api-namespaces=a", "--registry-name"},
		{"a namespace twice", "--namespace=fleet --registry-name=hub --cluster-api --cluster-api-namespaces=a,a", "twice"},
		{"a namespace that is none", "--namespace=fleet --registry-name=hub --cluster-api --cluster-api-namespaces=a/b", "--cluster-api-namespaces"},
		{"a registry that is none", "--namespace=fleet --registry-name=Hub --cluster-api --cluster-api-namespaces=a", "--registry-name"},
		{"a policy that is none", "--namespace=fleet --registry-name=hub --cluster-api --cluster-api-namespaces=a --cluster-api-deletion-policy=Keep", "Retain or Delete"},
		{"negative grace", "--namespace=fleet --registry-name=hub --cluster-api --cluster-api-namespaces=a --cluster-api-grace-period=-1s", "negative"},
		{"looks too often", "--namespace=fleet --registry-name=hub --cluster-api --cluster-api-namespaces=a --cluster-api-period=1ms", "at least 1s"},
		{"a selector that is none", "--namespace=fleet --registry-name=hub --cluster-api --cluster-api-namespaces=a --cluster-api-selector=a=b=c", "--cluster-api-selector"},
		{"one name for all", "--namespace=fleet --registry-name=hub --cluster-api --cluster-api-namespaces=a --cluster-api-name-template={namespace}", "--cluster-api-name-template"},
		{"all labels", "--namespace=fleet --registry-name=hub --cluster-api --cluster-api-namespaces=a --cluster-api-labels=*", "--cluster-api-labels"},
		{"no Lease", "--leader-elect=false --register-host=host", ""},
		{"given ranges", "--namespace=fleet --health --read-host-cidrs=false --host-cidrs=10.96.0.0/12,fd00::/8", ""},
		{"nothing to do", "--namespace=fleet", "no function is on"},
		{"no place for the Lease", "--health", "--namespace"},
		{"no ranges", "--namespace=fleet --health --read-host-cidrs=false", "--host-cidrs must have"},
		{"a range that is none", "--namespace=fleet --health --health-allowed-cidrs=10.0.0.1", "--health-allowed-cidrs has \"10.0.0.1\""},
		{"a mapped range", "--namespace=fleet --health --host-cidrs=::ffff:10.0.0.0/104", "--host-cidrs"},
		{"a proxy", "--namespace=fleet --health --health-allowed-proxies=http://proxy:3128,https://p.example.com", ""},
		{"a proxy of another kind", "--namespace=fleet --health --health-allowed-proxies=socks5://proxy:1080", "--health-allowed-proxies"},
		{"a proxy with a password", "--namespace=fleet --health --health-allowed-proxies=http://a:b@proxy:3128", "--health-allowed-proxies"},
		{"an address that is none", "--namespace=fleet --health --health-client-address=here", "--health-client-address"},
		{"too often", "--namespace=fleet --health --health-period=10ms", "at least 1s"},
		{"no probes at all", "--namespace=fleet --health --health-concurrency=0", "--health-concurrency"},
		{"exports alone", "--namespace=fleet --registry-name=hub --exports-file=FILE", ""},
		{"exports of no registry", "--namespace=fleet --exports-file=FILE", "--exports-file needs --registry-name"},
		{"exports of a registry nowhere", "--leader-elect=false --registry-name=hub --exports-file=FILE", "--exports-file needs --registry-name and --namespace"},
		{"exports too often", "--namespace=fleet --registry-name=hub --exports-file=FILE --exports-period=1ms", "--exports-period"},
		{"exports that are not there", "--namespace=fleet --registry-name=hub --exports-file=/none", "--exports-file: open /none"},
		{"exports that are none", "--namespace=fleet --registry-name=hub --exports-file=EMPTY", "it has no export"},
		{"exports without ranges", "--namespace=fleet --registry-name=hub --exports-file=FILE --read-host-cidrs=false", "--host-cidrs must have"},
		{"a feed alone", "--namespace=fleet --registry-name=hub --feed-file=FEED --feed-tls-cert-file=a --feed-tls-private-key-file=b --feed-visibility=All", ""},
		{"a feed of no registry", "--namespace=fleet --feed-file=FEED --feed-tls-cert-file=a --feed-tls-private-key-file=b", "--feed-file needs --registry-name"},
		{"a feed without a certificate", "--namespace=fleet --registry-name=hub --feed-file=FEED", "--feed-file needs --feed-tls-cert-file"},
		{"a feed of some", "--namespace=fleet --registry-name=hub --feed-file=FEED --feed-tls-cert-file=a --feed-tls-private-key-file=b --feed-visibility=Some", "set All or ClusterSets"},
		{"a feed that is not there", "--namespace=fleet --registry-name=hub --feed-file=/none --feed-tls-cert-file=a --feed-tls-private-key-file=b", "--feed-file: open /none"},
		{"a feed that is none", "--namespace=fleet --registry-name=hub --feed-file=EMPTY --feed-tls-cert-file=a --feed-tls-private-key-file=b", "--feed-file: "},
		{"a feed without ranges", "--namespace=fleet --registry-name=hub --feed-file=FEED --feed-tls-cert-file=a --feed-tls-private-key-file=b --read-host-cidrs=false", "--host-cidrs must have"},
		{"selections alone", "--namespace=fleet --registry-name=hub --cluster-selections=a:tier=gold --cluster-selections=b --cluster-selections-sets=b:payments,batch", ""},
		{"selections of no registry", "--namespace=fleet --cluster-selections=a", "--cluster-selections needs --registry-name"},
		{"selections twice", "--namespace=fleet --registry-name=hub --cluster-selections=a --cluster-selections=a:tier=gold", "is there twice"},
		{"selections of no namespace", "--namespace=fleet --registry-name=hub --cluster-selections=A", "does not begin with the name of a namespace"},
		{"a selector of selections that is none", "--namespace=fleet --registry-name=hub --cluster-selections=a:b=c=d", "no valid label selector"},
		{"sets of no selections", "--namespace=fleet --health --cluster-selections-sets=a:b", "means nothing without --cluster-selections"},
		{"sets of another namespace", "--namespace=fleet --registry-name=hub --cluster-selections=a --cluster-selections-sets=b:c", "ClusterSets are for namespace \"b\""},
		{"no set", "--namespace=fleet --registry-name=hub --cluster-selections=a --cluster-selections-sets=a:", "is not the name of a ClusterSet"},
		{"a name that is none", "--namespace=fleet --register-host=The_Host", "is not the name of a cluster"},
		{"an address without a name", "--namespace=fleet --health --register-host-url=https://api", "without --register-host"},
		{"a CA without an address", "--namespace=fleet --register-host=host --register-host-ca-file=x", "without --register-host-url"},
		{"a CA that is not there", "--namespace=fleet --register-host=host --register-host-url=https://api --register-host-ca-file=/none", "no such file"},
	} {
		o, flags := &options{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(flags)
		if err := flags.Parse(strings.Fields(files.Replace(test.args))); err != nil {
			t.Fatal(err)
		}
		if err := o.validate(); (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.reason, err, test.says)
		}
	}
}

// TestLimitsOfSelections expects exports with a selection to publish no cluster that the selections of
// their namespace may not see, and to know when no one acts on these.
func TestLimitsOfSelections(t *testing.T) {
	file := filepath.Join(t.TempDir(), "exports.json")
	content := `[{"namespace": "a", "format": "ClusterProfile", "selection": "gold"}, {"namespace": "b", "format": "ClusterProfile"}, {"namespace": "c", "format": "ClusterProfile", "selection": "gold"}]`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	o, flags := &options{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse([]string{"--namespace=fleet", "--registry-name=hub", "--exports-file=" + file, "--cluster-selections=b", "--cluster-selections=a:tier=gold", "--cluster-selections-sets=a:payments,batch"}); err != nil {
		t.Fatal(err)
	}
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	of := o.exports.targets
	if of[0].Limit == nil || of[1].Limit != nil || of[2].Limit != nil {
		t.Fatalf("limited are %v, %v and %v", of[0].Limit != nil, of[1].Limit != nil, of[2].Limit != nil)
	}
	for _, test := range []struct {
		tier, set string
		shown     bool
	}{{"gold", "batch", true}, {"gold", "other", false}, {"gold", "", false}, {"silver", "batch", false}} {
		cluster := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"tier": test.tier}}, Spec: v1beta1.ClusterSpec{ClusterSet: test.set}}
		if got := of[0].Limit(cluster); got != test.shown {
			t.Errorf("one of tier %s in ClusterSet %q may be published: %v", test.tier, test.set, got)
		}
	}
}

// TestOwnPod expects that no entry may lead to this program's own pod.
func TestOwnPod(t *testing.T) {
	t.Setenv("POD_IP", "::ffff:10.1.2.3")
	o := newOptions()
	o.namespace, o.health, o.clientAddress, o.hostCIDRs, o.readHostCIDRs = "fleet", true, "", []string{"10.96.0.0/12"}, false
	o.period, o.concurrency, o.registerHostPeriod = time.Minute, 1, time.Minute
	if err := o.validate(); err != nil || fmt.Sprint(o.host, o.pod) != "[10.96.0.0/12] 10.1.2.3" {
		t.Errorf("%v, %v, %v", o.host, o.pod, err)
	}
}

// TestEmptyCAFile refuses what would have clients trust the public CAs instead.
func TestEmptyCAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o, flags := &options{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse([]string{"--namespace=fleet", "--register-host=host", "--register-host-url=https://api", "--register-host-ca-file=" + file}); err != nil {
		t.Fatal(err)
	}
	if err := o.validate(); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Error(err)
	}
}
