package argocd

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/controller/labelkeys"
	"github.com/clusterregistry/operator/controller/probe"
)

// cluster is a Cluster of Argo CD with the fields that it reads of a Secret: SecretToCluster in
// util/db/cluster.go, and ClusterConfig in pkg/apis/application/v1alpha1/types.go of argo-cd v3.
type cluster struct {
	name, server, project string
	skip                  bool
	labels                map[string]string
	config                struct {
		Username           string            `json:"username,omitempty"`
		Password           string            `json:"password,omitempty"`
		BearerToken        string            `json:"bearerToken,omitempty"`
		ProxyURL           string            `json:"proxyUrl,omitempty"`
		DisableCompression bool              `json:"disableCompression,omitempty"`
		AWS                map[string]string `json:"awsAuthConfig,omitempty"`
		Exec               *struct {
			Command     string            `json:"command,omitempty"`
			Args        []string          `json:"args,omitempty"`
			Env         map[string]string `json:"env,omitempty"`
			APIVersion  string            `json:"apiVersion,omitempty"`
			InstallHint string            `json:"installHint,omitempty"`
		} `json:"execProviderConfig,omitempty"`
		TLS struct {
			Insecure   bool   `json:"insecure"`
			ServerName string `json:"serverName,omitempty"`
			CertData   []byte `json:"certData,omitempty"`
			KeyData    []byte `json:"keyData,omitempty"`
			CAData     []byte `json:"caData,omitempty"`
		} `json:"tlsClientConfig"`
	}
}

// read reads a Secret as Argo CD does. A field of the configuration that it does not know is a
// fault here.
func read(t *testing.T, secret *unstructured.Unstructured) cluster {
	t.Helper()
	labels := secret.GetLabels()
	if labels["argocd.argoproj.io/secret-type"] != "cluster" {
		t.Fatalf("Argo CD does not take it for a cluster: %v", labels)
	}
	data := format.Document{Secret: true}.Stored(secret)
	out := cluster{name: data["name"], server: strings.TrimRight(data["server"], "/"), project: data["project"], labels: labels, skip: secret.GetAnnotations()["argocd.argoproj.io/skip-reconcile"] == "true"}
	decoder := json.NewDecoder(strings.NewReader(data["config"]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&out.config); err != nil {
		t.Fatal(err)
	}
	return out
}

// connects is RawRestConfig of the same types: how Argo CD connects.
func (c cluster) connects(t *testing.T) *rest.Config {
	t.Helper()
	out := &rest.Config{Host: c.server, TLSClientConfig: rest.TLSClientConfig{Insecure: c.config.TLS.Insecure, ServerName: c.config.TLS.ServerName, CAData: c.config.TLS.CAData}}
	if e := c.config.Exec; e != nil {
		out.ExecProvider = &clientcmdapi.ExecConfig{APIVersion: e.APIVersion, Command: e.Command, Args: e.Args, InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
	}
	if _, err := rest.TransportFor(&rest.Config{Host: out.Host, TLSClientConfig: rest.TLSClientConfig{ServerName: out.ServerName}}); err != nil {
		t.Fatal(err)
	}
	if _, err := http.NewRequestWithContext(t.Context(), http.MethodGet, out.Host+"/version", nil); err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	source   = format.Source{Registry: "hub", Namespace: "registries"}
	verified = format.Known{Asked: true, Verified: true}
	silent   = format.Known{Asked: true, Result: probe.Result{Outcome: probe.Failed, Message: "It does not answer."}}
)

func target(t *testing.T) format.Target {
	t.Helper()
	allowed, err := labelkeys.Parse([]string{"environment", "argocd.argoproj.io/*"})
	if err != nil {
		t.Fatal(err)
	}
	out := format.Target{Namespace: "argocd", Labels: allowed, Project: "fleet", Occupant: func(string) string { return "" }, SignIn: []format.SignIn{
		{Provider: "eks", Hosts: []string{"*.eks.amazonaws.com"}, AWS: &format.AWS{RoleARN: "arn:aws:iam::111122223333:role/argocd"}},
		{Provider: "sso", Hosts: []string{"*.example.com"}, Exec: &format.Exec{Command: "/plugins/sso", Args: []string{"--cluster={name}", "--realm", "{config.realm}"}, Env: map[string]string{"REALM": "{config.realm}"}}},
	}}
	for i := range out.SignIn {
		if err := out.SignIn[i].Complete(New(format.Source{}).Kind().SignIn); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func member(change ...func(*v1beta1.Cluster)) *v1beta1.Cluster {
	c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Labels: map[string]string{"environment": "prod", "other": "x", "argocd.argoproj.io/secret-type": "repository"}}, Spec: v1beta1.ClusterSpec{
		Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://east.example.com:6443", CABundle: []byte("CA"), TLSServerName: "api", ProxyURL: "http://proxy:3128"}},
		Access:    []v1beta1.Access{{Name: "sso", Audience: v1beta1.AudienceController, Provider: &v1beta1.ProviderAccess{Config: map[string]string{"realm": "fleet"}}}},
	}}
	for _, f := range change {
		f(c)
	}
	return c
}

// made returns the Secret that follows from what is wanted, as the API server makes it of what is
// applied: what was applied before and is not any more is gone.
func made(t *testing.T, want format.Object, have *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if have == nil {
		have = &unstructured.Unstructured{Object: map[string]any{}}
		have.SetName("cluster-east")
	}
	changes, err := want.Changes(have)
	if err != nil {
		t.Fatal(err)
	}
	out := have.DeepCopy()
	for _, change := range changes {
		content, fields := map[string]any{"metadata": map[string]any{"name": "cluster-east", "labels": change.Metadata["labels"], "annotations": change.Metadata["annotations"]}, "data": change.Content["data"]}, map[string]any{}
		for parent, of := range map[string]any{"f:labels": change.Metadata["labels"], "f:annotations": change.Metadata["annotations"]} {
			fields[parent] = owned(of)
		}
		out = &unstructured.Unstructured{Object: content}
		raw, err := json.Marshal(map[string]any{"f:metadata": fields, "f:data": owned(change.Content["data"])})
		if err != nil {
			t.Fatal(err)
		}
		out.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: format.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(string(raw))}})
	}
	return out
}

func owned(of any) map[string]any {
	out := map[string]any{}
	for key := range of.(map[string]any) {
		out["f:"+key] = map[string]any{}
	}
	return out
}

// TestSecret expects what Argo CD reads of the Secret of an entry.
func TestSecret(t *testing.T) {
	f := New(source)
	want, why := f.Want(member(), target(t), verified, nil)
	if why != nil {
		t.Fatal(why)
	}
	secret := made(t, want, nil)
	got := read(t, secret)
	if got.name != "east" || got.project != "fleet" || got.skip || got.labels["environment"] != "prod" || got.labels["other"] != "" {
		t.Errorf("%+v", got)
	}
	connects := got.connects(t)
	if connects.Host != "https://east.example.com:6443" || string(connects.CAData) != "CA" || connects.ServerName != "api" || connects.Insecure || got.config.ProxyURL != "http://proxy:3128" {
		t.Errorf("it connects by %+v", connects)
	}
	if e := got.config.Exec; e == nil || e.Command != "/plugins/sso" || strings.Join(e.Args, " ") != "--cluster=east --realm fleet" || e.Env["REALM"] != "fleet" || e.APIVersion != "client.authentication.k8s.io/v1" || got.config.AWS != nil {
		t.Errorf("it signs in by %+v", e)
	}
	if got.config.Username+got.config.Password+got.config.BearerToken != "" || got.config.TLS.KeyData != nil {
		t.Error("it has a credential")
	}
	if ours, _ := f.Ours(secret); !ours || f.Leads(secret) == "" {
		t.Error("whose it is, and whether it leads anywhere")
	}
	if changes, err := want.Changes(secret); err != nil || len(changes) > 0 {
		t.Errorf("a steady one is written: %v, %v", changes, err)
	}
}

// TestAWS expects that an entry chooses the cluster of AWS, and not the role.
func TestAWS(t *testing.T) {
	eks := func(c *v1beta1.Cluster) {
		c.Spec.Endpoints[0] = v1beta1.Endpoint{Name: "main", URL: "https://0A1B.gr7.eu-west-1.eks.amazonaws.com", CABundle: []byte("CA")}
		c.Spec.Access[0] = v1beta1.Access{Name: "eks", Audience: v1beta1.AudienceController, Provider: &v1beta1.ProviderAccess{Config: map[string]string{"clusterName": "prod-east", "roleARN": "arn:aws:iam::999900001111:role/admin"}}}
	}
	want, why := New(source).Want(member(eks), target(t), verified, nil)
	if why != nil {
		t.Fatal(why)
	}
	got := read(t, made(t, want, nil))
	if got.config.AWS["clusterName"] != "prod-east" || got.config.AWS["roleARN"] != "arn:aws:iam::111122223333:role/argocd" || got.config.Exec != nil {
		t.Errorf("it signs in by %+v", got.config)
	}
}

// TestWithheld expects that Argo CD is given no way to where its credentials may not go, and none
// that was not verified.
func TestWithheld(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(*v1beta1.Cluster)
		known  format.Known
		want   string
		then   format.Consequence
	}{
		{"an address elsewhere", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://evil.example.net" }, verified, "HostNotAllowed", format.Sweep},
		{"a suffix that looks alike", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://evil-example.com" }, verified, "HostNotAllowed", format.Sweep},
		{"user information", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://a.example.com@evil.net" }, verified, "HostNotAllowed", format.Sweep},
		{"another provider", func(c *v1beta1.Cluster) { c.Spec.Access[0].Provider.Type = "own" }, verified, "ProviderNotAllowed", format.Sweep},
		{"a program of the entry", func(c *v1beta1.Cluster) {
			c.Spec.Access = []v1beta1.Access{{Name: "x", Audience: v1beta1.AudienceController, Exec: &v1beta1.ExecAccess{Command: "evil"}}}
		}, verified, "ProviderNotAllowed", format.Sweep},
		{"an option in place of a value", func(c *v1beta1.Cluster) { c.Spec.Access[0].Provider.Config["realm"] = "--evil" }, verified, "ConfigMissing", format.Sweep},
		{"no value", func(c *v1beta1.Cluster) { c.Spec.Access[0].Provider.Config = nil }, verified, "ConfigMissing", format.Sweep},
		{"the name of Argo CD's own cluster", func(c *v1beta1.Cluster) { c.Name = "in-cluster" }, verified, "NameReserved", format.Delete},
		{"no access", func(c *v1beta1.Cluster) { c.Spec.Access = nil }, verified, "NoAccess", format.Sweep},
		{"no endpoint", func(c *v1beta1.Cluster) { c.Spec.Endpoints = nil }, verified, "NoEndpoint", format.Sweep},
		{"another cluster answers", func(c *v1beta1.Cluster) {
			c.Status = &v1beta1.ClusterStatus{Conditions: []metav1.Condition{{Type: "IdentityVerified", Status: metav1.ConditionFalse}}}
		}, verified, "IdentityMismatch", format.Delete},
		{"not asked yet", func(*v1beta1.Cluster) {}, format.Known{}, "", format.Wait},
		{"never reached", func(*v1beta1.Cluster) {}, silent, "NotVerified", format.Sweep},
		{"a refused address", func(*v1beta1.Cluster) {}, format.Known{Asked: true, Result: probe.Result{Reason: probe.ReasonAddressRefused}}, "AddressRefused", format.Delete},
	} {
		_, why := New(source).Want(member(test.change), target(t), test.known, nil)
		if why == nil || why.Reason != test.want || why.Then != test.then || (why.Message == "") != (test.want == "") {
			t.Errorf("%s: %+v, want %s", test.reason, why, test.want)
		}
	}
}

// TestChanges expects that Argo CD keeps what was verified last while nothing else is, that it
// leaves clusters alone that are not healthy, and that a Secret which someone else has changed is
// taken for nothing.
func TestChanges(t *testing.T) {
	f, in := New(source), target(t)
	want, why := f.Want(member(), in, verified, nil)
	if why != nil {
		t.Fatal(why)
	}
	secret := made(t, want, nil)

	moved := func(c *v1beta1.Cluster) {
		c.Spec.Endpoints[0].URL, c.Labels["environment"] = "https://new.example.com", "dev"
		c.Spec.Access[0].Provider.Config["realm"] = "another"
	}
	if want, why = f.Want(member(moved), in, silent, secret); why != nil {
		t.Fatal(why)
	}
	kept := read(t, made(t, want, secret))
	if kept.server != "https://east.example.com:6443" || kept.config.Exec.Env["REALM"] != "fleet" || kept.labels["environment"] != "dev" {
		t.Errorf("while the new endpoint is not verified: %+v", kept)
	}
	elsewhere := target(t)
	elsewhere.SignIn[1].Hosts = []string{"new.example.com"}
	if err := elsewhere.SignIn[1].Complete(New(format.Source{}).Kind().SignIn); err != nil {
		t.Fatal(err)
	}
	if _, why = f.Want(member(moved), elsewhere, silent, secret); why == nil || why.Then != format.Delete {
		t.Errorf("one whose host is not allowed any more is kept: %+v", why)
	}
	tampered := secret.DeepCopy()
	tampered.SetManagedFields(append(tampered.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: "someone", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:server":{}}}`)}))
	if want, why = f.Want(member(moved), in, silent, tampered); why == nil || why.Then != format.Delete {
		t.Fatalf("one that someone has changed is kept: %+v", why)
	}
	if empty := made(t, want, tampered); f.Leads(empty) != "" || empty.GetLabels()[typeLabel] != "" {
		t.Errorf("it still leads somewhere: %+v", empty)
	}

	sick := func(c *v1beta1.Cluster) {
		c.Status = &v1beta1.ClusterStatus{Conditions: []metav1.Condition{{Type: v1beta1.ConditionControlPlaneHealthy, Status: metav1.ConditionFalse}}}
	}
	want, _ = f.Want(member(sick), in, verified, secret)
	secret = made(t, want, secret)
	if !read(t, secret).skip {
		t.Error("Argo CD goes on with a cluster that is not healthy")
	}
	want, _ = f.Want(member(), in, verified, secret)
	if changes, err := want.Changes(secret); err != nil || len(changes) != 1 || read(t, made(t, want, secret)).skip {
		t.Errorf("Argo CD leaves a cluster alone that is healthy again: %v, %v", changes, err)
	}
}

// TestWhatStays expects that, while the endpoint of an entry is not verified, the last one that was
// is kept as a whole, whatever of it has changed, and only as long as neither the entry nor the
// export has something else be run there. What the export alone says counts at once.
func TestWhatStays(t *testing.T) {
	with := func(change func(*format.Target)) format.Target {
		out := target(t)
		out.SignIn = append(out.SignIn, format.SignIn{Provider: "other", Hosts: []string{"*.example.com"}, Exec: &format.Exec{Command: "/plugins/other"}})
		change(&out)
		for i := range out.SignIn {
			if err := out.SignIn[i].Complete(New(source).Kind().SignIn); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	same := func(*format.Target) {}
	f := New(source)
	want, why := f.Want(member(), with(same), verified, nil)
	if why != nil {
		t.Fatal(why)
	}
	secret := made(t, want, nil)
	moved := func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://new.example.com" }
	for _, test := range []struct {
		reason string
		entry  func(*v1beta1.Cluster)
		export func(*format.Target)
		// realm is that of the entry which is published, empty when nothing is.
		realm string
	}{
		{"another realm", func(*v1beta1.Cluster) {}, same, "next"},
		{"another program, at the same endpoint", func(*v1beta1.Cluster) {}, func(in *format.Target) { in.SignIn[1].Exec.Command = "/plugins/new" }, "next"},
		{"another address", moved, same, "fleet"},
		{"another CA", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].CABundle = []byte("another") }, same, "fleet"},
		{"another name on the certificate", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].TLSServerName = "another" }, same, "fleet"},
		{"another proxy", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].ProxyURL = "http://another:3128" }, same, "fleet"},
		{"another provider", func(c *v1beta1.Cluster) { moved(c); c.Spec.Access[0].Name = "other" }, same, ""},
		{"the host is another provider's now", moved, func(in *format.Target) { in.SignIn[1].Hosts = []string{"new.example.com"} }, ""},
		{"another program", moved, func(in *format.Target) { in.SignIn[1].Exec.Command = "/plugins/new" }, ""},
		{"other arguments", moved, func(in *format.Target) { in.SignIn[1].Exec.Args = nil }, ""},
		{"another project", moved, func(in *format.Target) { in.Project = "restricted" }, "fleet"},
	} {
		in := with(test.export)
		want, why := f.Want(member(func(c *v1beta1.Cluster) { c.Spec.Access[0].Provider.Config["realm"] = "next" }, test.entry), in, silent, secret)
		if test.realm == "" {
			if why == nil || why.Then != format.Delete {
				t.Errorf("%s: it stays: %+v", test.reason, why)
			}
			continue
		}
		if why != nil {
			t.Errorf("%s: %+v", test.reason, why)
			continue
		}
		got := read(t, made(t, want, secret))
		if got.config.Exec.Env["REALM"] != test.realm || got.project != in.Project {
			t.Errorf("%s: %+v", test.reason, got)
		}
		if connects := got.connects(t); connects.Host != "https://east.example.com:6443" || string(connects.CAData) != "CA" || connects.ServerName != "api" || got.config.ProxyURL != "http://proxy:3128" {
			t.Errorf("%s: it leads to %+v by %q, which was not verified", test.reason, connects, got.config.ProxyURL)
		}
	}
}

// TestWhose expects that no label of a cluster makes a Secret another registry's, that a Secret
// without one of the marks is someone else's, and that what others add to one stays out of what
// is written.
func TestWhose(t *testing.T) {
	f, in := New(source), target(t)
	var err error
	if in.Labels, err = labelkeys.Parse([]string{"registry.clusterregistry.io/*", "exports.clusterregistry.io/*"}); err != nil {
		t.Fatal(err)
	}
	want, why := f.Want(member(func(c *v1beta1.Cluster) {
		c.Labels = map[string]string{"registry.clusterregistry.io/other": "registries", "registry.clusterregistry.io/hub": "x", "exports.clusterregistry.io/format": "Kubeconfig"}
	}), in, verified, nil)
	if why != nil {
		t.Fatal(why)
	}
	secret := made(t, want, nil)
	if labels := secret.GetLabels(); len(labels) != 3 || labels["registry.clusterregistry.io/hub"] != "registries" || labels["exports.clusterregistry.io/format"] != "ArgoCDSecret" {
		t.Errorf("its labels are %v", labels)
	}
	for _, key := range []string{"registry.clusterregistry.io/hub", "exports.clusterregistry.io/format"} {
		other := secret.DeepCopy()
		labels := other.GetLabels()
		labels[key] = "other"
		other.SetLabels(labels)
		if ours, _ := f.Ours(other); ours {
			t.Errorf("one with %s=other is taken for ours", key)
		}
	}
	_ = unstructured.SetNestedField(secret.Object, "Mw==", "data", "shard")
	want, why = f.Want(member(func(c *v1beta1.Cluster) {
		c.Spec.Endpoints[0].URL = "https://new.example.com"
		c.Labels["environment"] = "dev"
	}), target(t), silent, secret)
	if why != nil {
		t.Fatal(why)
	}
	changes, err := want.Changes(secret)
	if err != nil || len(changes) != 1 {
		t.Fatalf("%v, %v", changes, err)
	}
	if data := changes[0].Content["data"].(map[string]any); data["shard"] != nil || data["server"] == nil {
		t.Errorf("it takes over what someone else has added: %v", data)
	}
}
