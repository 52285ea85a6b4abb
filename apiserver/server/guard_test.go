package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
	"github.com/clusterregistry/operator/internal/contract"
)

// review is an answer of the authorizer to what the guard asks.
type review struct {
	decision authorizer.Decision
	reason   string
	err      error
}

// desk is a server whose authorizer lets every request pass, and notes what is asked
// besides.
type desk struct {
	t       testing.TB
	handler http.Handler
	stored  *memory
	// admit is what admission makes of a cluster, and refuse what it says of that.
	admit  func(*clusterregistry.Cluster)
	refuse error
	// says is the answer for a permission; others are not known of.
	says  map[string]review
	asked []string
}

// east is a cluster with everything that is guarded.
const east = `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"east"},"spec":{"id":"one","endpoints":[{"name":"main","url":"https://east"}],"access":[{"name":"login","audience":"User","exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"aws"}}]}}`

// newDesk starts a server that has the cluster east and guards fields in a way.
func newDesk(t testing.TB, fields cluster.GuardedFields) *desk {
	t.Helper()
	stored := newMemory()
	d := newDeskOn(t, fields, stored)
	d.stored = stored
	return d
}

// newDeskOn starts a server that keeps its objects somewhere else, and is configured further.
func newDeskOn(t testing.TB, fields cluster.GuardedFields, stored generic.RESTOptionsGetter, configure ...func(*Config)) *desk {
	t.Helper()
	d := &desk{t: t}
	config := &Config{generic: genericserver.NewRecommendedConfig(codecs), collection: rest.Unsupported, guarded: cluster.GuardedFieldsOff}
	options, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	common := &config.generic.Config
	describe(common)
	common.ExternalAddress, common.LoopbackClientConfig = "localhost:443", &restclient.Config{}
	common.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	common.RESTOptionsGetter = stored
	common.MergedResourceConfig = nil
	common.RequestTimeout = options.Run.RequestTimeout
	common.Authorization.Authorizer = d
	common.Authentication.Authenticator = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{Name: "ann", Groups: []string{"fleet"}}}, true, nil
	})
	common.AdmissionControl = cluster.Complete(d)
	config.guarded = fields
	for _, configure := range configure {
		configure(config)
	}
	server, err := config.Complete().New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Destroy)
	d.handler = server.Handler
	d.says = map[string]review{"endpoints": {decision: authorizer.DecisionAllow}, "identity": {decision: authorizer.DecisionAllow}}
	if code, body, _ := d.send(http.MethodPost, "v1beta1/clusters", "application/json", east); code != http.StatusCreated {
		t.Fatalf("the first cluster: %d %s", code, body)
	}
	d.says, d.asked = nil, nil
	return d
}

// Authorize answers, and notes each question with all that it says.
func (d *desk) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetSubresource() != "endpoints" && a.GetSubresource() != "identity" {
		return authorizer.DecisionAllow, "", nil
	}
	d.asked = append(d.asked, fmt.Sprintf("%s %v %s %s/%s %s/%s %q %q %t", a.GetUser().GetName(), a.GetUser().GetGroups(), a.GetVerb(), a.GetAPIGroup(), a.GetAPIVersion(), a.GetResource(), a.GetSubresource(), a.GetNamespace(), a.GetName(), a.IsResourceRequest()))
	answer, known := d.says[a.GetSubresource()]
	if !known {
		return authorizer.DecisionNoOpinion, "", nil
	}
	return answer.decision, answer.reason, answer.err
}

func (d *desk) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(d.Authorize(ctx, a))
}

func (*desk) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// Handles is true: it is all of admission.
func (*desk) Handles(admission.Operation) bool { return true }

// Admit changes a cluster as the test wants.
func (d *desk) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if c, is := a.GetObject().(*clusterregistry.Cluster); is && d.admit != nil {
		d.admit(c)
	}
	return nil
}

// Validate refuses if the test wants it.
func (d *desk) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return d.refuse
}

// send makes a request, and returns what was answered, with the warnings. A path that is not whole
// is one of the registry's own API group.
func (d *desk) send(method, path, kind, body string) (code int, content string, warnings []string) {
	d.t.Helper()
	if !strings.HasPrefix(path, "/") {
		path = "/apis/clusterregistry.k8s.io/" + path
	}
	request := httptest.NewRequestWithContext(d.t.Context(), method, path, strings.NewReader(body))
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Accept", "application/json")
	recorder := httptest.NewRecorder()
	d.handler.ServeHTTP(recorder, request)
	answer, err := io.ReadAll(recorder.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return recorder.Code, string(answer), recorder.Header().Values("Warning")
}

// question is what the authorizer is asked on behalf of a request.
func question(version, permission, name string) string {
	return fmt.Sprintf("ann [fleet] update clusterregistry.k8s.io/%s clusters/%s %q %q true", version, permission, "", name)
}

// Types of content.
const (
	plain      = "application/json"
	jsonPatch  = "application/json-patch+json"
	mergePatch = "application/merge-patch+json"
	applyPatch = "application/apply-patch+yaml"
)

// TestGuardedWrites sends writes of every kind as someone who has no permission besides
// that to write clusters: those that change what is guarded are refused, others need
// nothing.
func TestGuardedWrites(t *testing.T) {
	const both, endpoints, identity, nothing = "endpoints,identity", "endpoints", "identity", ""
	v1beta1Of := func(spec string) string {
		return `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"west"},"spec":` + spec + `}`
	}
	v1alpha1Of := func(name, spec string) string {
		return `{"apiVersion":"clusterregistry.k8s.io/v1alpha1","kind":"Cluster","metadata":{"name":"` + name + `"},"spec":` + spec + `}`
	}
	ca, _ := authority(t)
	caBundle := base64.StdEncoding.EncodeToString([]byte(ca))
	const source = `"sourceRef":{"apiVersion":"v1","kind":"Secret","name":"x"}`
	for _, test := range []struct {
		reason, method, path, kind, body string
		name                             string
		want                             string
	}{
		{"create with an endpoint", "POST", "v1beta1/clusters", plain, v1beta1Of(`{"endpoints":[{"name":"a","url":"https://a"}]}`), "west", endpoints},
		{"create with access", "POST", "v1beta1/clusters", plain, v1beta1Of(`{"access":[{"name":"a","audience":"User","provider":{"type":"x"}}]}`), "west", endpoints},
		{"create with an id", "POST", "v1beta1/clusters", plain, v1beta1Of(`{"id":"two"}`), "west", identity},
		{"create with a source", "POST", "v1beta1/clusters", plain, v1beta1Of(`{` + source + `}`), "west", identity},
		{"create with a manager", "POST", "v1beta1/clusters", plain, v1beta1Of(`{"manager":{"name":"x"}}`), "west", identity},
		{"create with all", "POST", "v1beta1/clusters", plain, v1beta1Of(`{"id":"two","endpoints":[{"name":"a","url":"https://a"}]}`), "west", both},
		{"create with none", "POST", "v1beta1/clusters", plain, v1beta1Of(`{"displayName":"West","taints":[{"key":"a","effect":"NoSchedule"}]}`), "west", nothing},
		{"create in a dry run", "POST", "v1beta1/clusters?dryRun=All", plain, v1beta1Of(`{"endpoints":[{"name":"a","url":"https://a"}]}`), "west", endpoints},
		{"create through v1alpha1", "POST", "v1alpha1/clusters", plain, v1alpha1Of("west", `{"kubernetesApiEndpoints":{"serverEndpoints":[{"serverAddress":"a"}]}}`), "west", endpoints},
		{"create with a CA alone through v1alpha1", "POST", "v1alpha1/clusters", plain, v1alpha1Of("west", `{"kubernetesApiEndpoints":{"caBundle":"`+caBundle+`"}}`), "west", endpoints},
		{"create with a provider through v1alpha1", "POST", "v1alpha1/clusters", plain, v1alpha1Of("west", `{"authInfo":{"providers":[{"name":"a","type":{"name":"x"}}]}}`), "west", endpoints},
		{"create with none through v1alpha1", "POST", "v1alpha1/clusters", plain, v1alpha1Of("west", `{}`), "west", nothing},
		{"create by PUT", "PUT", "v1beta1/clusters/west", plain, v1beta1Of(`{"id":"two","endpoints":[{"name":"a","url":"https://a"}]}`), "west", both},
		{"create by apply", "PATCH", "v1beta1/clusters/west?fieldManager=x", applyPatch, v1beta1Of(`{"id":"two","endpoints":[{"name":"a","url":"https://a"}]}`), "west", both},
		{"create with none by apply", "PATCH", "v1beta1/clusters/west?fieldManager=x", applyPatch, v1beta1Of(`{"displayName":"West"}`), "west", nothing},

		{"another address", "PATCH", "v1beta1/clusters/east", mergePatch, `{"spec":{"endpoints":[{"name":"main","url":"https://evil"}]}}`, "east", endpoints},
		{"another address in a dry run", "PATCH", "v1beta1/clusters/east?dryRun=All", mergePatch, `{"spec":{"endpoints":[{"name":"main","url":"https://evil"}]}}`, "east", endpoints},
		{"a proxy", "PATCH", "v1beta1/clusters/east", jsonPatch, `[{"op":"add","path":"/spec/endpoints/0/proxyURL","value":"http://evil"}]`, "east", endpoints},
		{"a CA", "PATCH", "v1beta1/clusters/east", jsonPatch, `[{"op":"add","path":"/spec/endpoints/0/caBundle","value":"` + caBundle + `"}]`, "east", endpoints},
		{"a server name", "PATCH", "v1beta1/clusters/east", jsonPatch, `[{"op":"add","path":"/spec/endpoints/0/tlsServerName","value":"evil"}]`, "east", endpoints},
		{"a range of clients", "PATCH", "v1beta1/clusters/east", jsonPatch, `[{"op":"add","path":"/spec/endpoints/0/clientCIDRs","value":["10.0.0.0/8"]}]`, "east", endpoints},
		{"another endpoint", "PATCH", "v1beta1/clusters/east?fieldManager=x", applyPatch, `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"east"},"spec":{"endpoints":[{"name":"evil","url":"https://evil"}]}}`, "east", endpoints},
		{"no endpoint", "PATCH", "v1beta1/clusters/east", jsonPatch, `[{"op":"remove","path":"/spec/endpoints"}]`, "east", endpoints},
		{"another program", "PATCH", "v1beta1/clusters/east", jsonPatch, `[{"op":"replace","path":"/spec/access/0/exec/command","value":"evil"}]`, "east", endpoints},
		{"a source", "PATCH", "v1beta1/clusters/east", mergePatch, `{"spec":{` + source + `}}`, "east", identity},
		{"a manager", "PATCH", "v1beta1/clusters/east", mergePatch, `{"spec":{"manager":{"name":"x"}}}`, "east", identity},
		{"a manager by apply", "PATCH", "v1beta1/clusters/east?fieldManager=x", applyPatch, `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"east"},"spec":{"manager":{"name":"x"}}}`, "east", identity},
		{"an address and a source by PUT", "PUT", "v1beta1/clusters/east", plain, strings.Replace(strings.Replace(east, "https://east", "https://evil", 1), `"id":"one"`, `"id":"one",`+source, 1), "east", both},
		{"another address through v1alpha1", "PATCH", "v1alpha1/clusters/east", jsonPatch, `[{"op":"replace","path":"/spec/kubernetesApiEndpoints/serverEndpoints/0/serverAddress","value":"evil"}]`, "east", endpoints},
		{"the same address in other letters through v1alpha1", "PATCH", "v1alpha1/clusters/east", jsonPatch, `[{"op":"replace","path":"/spec/kubernetesApiEndpoints/serverEndpoints/0/serverAddress","value":"east"}]`, "east", endpoints},
		{"a provider by merge through v1alpha1", "PATCH", "v1alpha1/clusters/east", mergePatch, `{"spec":{"authInfo":{"providers":[{"name":"a","type":{"name":"x"}}]}}}`, "east", endpoints},
		{"nothing left of it by PUT through v1alpha1", "PUT", "v1alpha1/clusters/east", plain, v1alpha1Of("east", `{}`), "east", endpoints},

		{"the same by PUT", "PUT", "v1beta1/clusters/east", plain, east, "east", nothing},
		{"the same by apply", "PATCH", "v1beta1/clusters/east?fieldManager=x", applyPatch, east, "east", nothing},
		{"the same id", "PATCH", "v1beta1/clusters/east", mergePatch, `{"spec":{"id":"one"}}`, "east", nothing},
		{"a label", "PATCH", "v1beta1/clusters/east", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`, "east", nothing},
		{"a label by apply", "PATCH", "v1beta1/clusters/east?fieldManager=x", applyPatch, `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"east","labels":{"a":"b"}}}`, "east", nothing},
		{"a label through v1alpha1", "PATCH", "v1alpha1/clusters/east", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`, "east", nothing},
		{"what is not guarded", "PATCH", "v1beta1/clusters/east", mergePatch, `{"spec":{"displayName":"E","taints":[{"key":"a","effect":"NoSchedule"}],"heartbeat":{"periodSeconds":60}}}`, "east", nothing},
		{"a status", "PATCH", "v1beta1/clusters/east/status", mergePatch, `{"spec":{"endpoints":[]},"status":{"version":{"kubernetes":"v1.37.1"}}}`, "east", nothing},
	} {
		t.Run(test.reason, func(t *testing.T) {
			d := newDesk(t, cluster.GuardedFieldsEnforce)
			before := d.stored.objects["/clusters/east"].DeepCopyObject()
			code, body, warnings := d.send(test.method, test.path, test.kind, test.body)
			version, _, _ := strings.Cut(test.path, "/")
			var want []string
			for permission := range strings.SplitSeq(test.want, ",") {
				if permission != "" {
					want = append(want, question(version, permission, test.name))
					if says := fmt.Sprintf(`User \"ann\" cannot update resource \"clusters/%s\" in API group \"clusterregistry.k8s.io\" for the name \"%s\"`, permission, test.name); !strings.Contains(body, says) {
						t.Errorf("%q is missing in %s", says, body)
					}
				}
			}
			if !slices.Equal(d.asked, want) {
				t.Errorf("asked %q, want %q", d.asked, want)
			}
			if len(warnings) > 0 {
				t.Errorf("warned: %q", warnings)
			}
			if test.want == "" {
				if code/100 != 2 {
					t.Errorf("answered %d %s", code, body)
				}
				return
			}
			if code != http.StatusForbidden || !strings.Contains(body, fmt.Sprintf(`clusters.clusterregistry.k8s.io \"%s\" is forbidden`, test.name)) {
				t.Errorf("answered %d %s", code, body)
			}
			if len(d.stored.objects) != 1 || !equalObjects(before, d.stored.objects["/clusters/east"]) {
				t.Errorf("stored %v", d.stored.objects)
			}
			// With the permissions it passes.
			d.says = map[string]review{}
			for permission := range strings.SplitSeq(test.want, ",") {
				d.says[permission] = review{decision: authorizer.DecisionAllow, err: errors.New("a part of the roles can't be read")}
			}
			if code, body, _ := d.send(test.method, test.path, test.kind, test.body); code/100 != 2 {
				t.Errorf("with the permissions: %d %s", code, body)
			}
		})
	}
}

func equalObjects(a, b runtime.Object) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// TestRebound changes what an entry was made from: that needs the permission, whatever the
// guard is set to.
func TestRebound(t *testing.T) {
	const rebound = `{"spec":{"sourceRef":{"uid":"two"}}}`
	for _, mode := range []cluster.GuardedFields{cluster.GuardedFieldsOff, cluster.GuardedFieldsWarn, cluster.GuardedFieldsEnforce} {
		d := newDesk(t, mode)
		d.stored.objects["/clusters/east"].(*clusterregistry.Cluster).Spec.SourceRef = &clusterregistry.SourceReference{Kind: "Cluster", Name: "east", UID: "one"}
		code, body, warnings := d.send("PATCH", "v1beta1/clusters/east", mergePatch, rebound)
		if code != http.StatusForbidden || !strings.Contains(body, "as a change of spec.sourceRef needs") || len(warnings) > 0 || !slices.Equal(d.asked, []string{question("v1beta1", "identity", "east")}) {
			t.Errorf("%s: asked %q, answered %d %s, warned %q", mode, d.asked, code, body, warnings)
		}
		d.says = map[string]review{"identity": {decision: authorizer.DecisionAllow}}
		if code, body, _ := d.send("PATCH", "v1beta1/clusters/east", mergePatch, rebound); code != http.StatusOK {
			t.Errorf("%s, with the permission: answered %d %s", mode, code, body)
		}
		if now := d.stored.objects["/clusters/east"].(*clusterregistry.Cluster).Spec.SourceRef; now == nil || now.UID != "two" {
			t.Errorf("%s: stored %+v", mode, now)
		}
		if code, body, _ := d.send("PATCH", "v1beta1/clusters/east", mergePatch, `{"spec":{"sourceRef":null}}`); code != http.StatusUnprocessableEntity {
			t.Errorf("%s, removed: answered %d %s", mode, code, body)
		}
	}
}

// TestManagerChanges sets another manager, and none, in place of the one that an entry has:
// that needs the permission, whatever the guard is set to, and whoever has it may.
func TestManagerChanges(t *testing.T) {
	for _, mode := range []cluster.GuardedFields{cluster.GuardedFieldsOff, cluster.GuardedFieldsWarn, cluster.GuardedFieldsEnforce} {
		for want, body := range map[string]string{"other": `{"spec":{"manager":{"name":"other"}}}`, "": `{"spec":{"manager":null}}`} {
			t.Run(fmt.Sprintf("%s/%q", mode, want), func(t *testing.T) {
				d := newDesk(t, mode)
				d.stored.objects["/clusters/east"].(*clusterregistry.Cluster).Spec.Manager = &clusterregistry.Manager{Name: "fleet"}
				code, answer, warnings := d.send("PATCH", "v1beta1/clusters/east", mergePatch, body)
				if code != http.StatusForbidden || !strings.Contains(answer, "as a change of spec.manager needs") || len(warnings) > 0 || !slices.Equal(d.asked, []string{question("v1beta1", "identity", "east")}) {
					t.Errorf("asked %q, answered %d %s, warned %q", d.asked, code, answer, warnings)
				}
				d.says = map[string]review{"identity": {decision: authorizer.DecisionAllow}}
				if code, answer, _ := d.send("PATCH", "v1beta1/clusters/east", mergePatch, body); code != http.StatusOK {
					t.Errorf("with the permission: answered %d %s", code, answer)
				}
				got := ""
				if now := d.stored.objects["/clusters/east"].(*clusterregistry.Cluster).Spec.Manager; now != nil {
					got = now.Name
				}
				if got != want {
					t.Errorf("the manager is %q", got)
				}
			})
		}
	}
}

// TestGuardedProtobuf writes as client-go does.
func TestGuardedProtobuf(t *testing.T) {
	d := newDesk(t, cluster.GuardedFieldsEnforce)
	object := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}, Spec: v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{{Name: "a", URL: "https://a"}}}}
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	data, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, v1beta1.SchemeGroupVersion), object)
	if err != nil {
		t.Fatal(err)
	}
	if code, body, _ := d.send("POST", "v1beta1/clusters", runtime.ContentTypeProtobuf, string(data)); code != http.StatusForbidden {
		t.Errorf("answered %d %s", code, body)
	}
}

// TestGivenAway sets the annotations by which the controller rewrites guarded fields with its
// own rights: whoever may not write these fields may not have them written either.
func TestGivenAway(t *testing.T) {
	annotate := func(annotation, value string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotation, value)
	}
	identity, endpoints := question("v1beta1", "identity", "east"), question("v1beta1", "endpoints", "east")
	for _, test := range []struct {
		reason, body string
		mode         cluster.GuardedFields
		had          map[string]string
		asked        []string
	}{
		{reason: "adopt", body: annotate(contract.AdoptAnnotation, "uid"), mode: cluster.GuardedFieldsEnforce, asked: []string{endpoints, identity}},
		{reason: "adopt, unguarded", body: annotate(contract.AdoptAnnotation, "uid"), mode: cluster.GuardedFieldsOff, asked: []string{identity}},
		{reason: "adopt another", body: annotate(contract.AdoptAnnotation, "uid"), mode: cluster.GuardedFieldsEnforce, had: map[string]string{contract.AdoptAnnotation: "before"}, asked: []string{endpoints, identity}},
		{reason: "moved", body: annotate(contract.KeepAnnotation, contract.KeptMoved), mode: cluster.GuardedFieldsEnforce, asked: []string{endpoints, identity}},
		{reason: "kept before, and moved", body: annotate(contract.KeepAnnotation, contract.KeptMoved), mode: cluster.GuardedFieldsEnforce, had: map[string]string{contract.KeepAnnotation: "mine"}, asked: []string{endpoints, identity}},
		{reason: "kept for a reason of one's own", body: annotate(contract.KeepAnnotation, "mine"), mode: cluster.GuardedFieldsEnforce},
		{reason: "the annotation removed", body: `{"metadata":{"annotations":{"` + contract.AdoptAnnotation + `":null}}}`, mode: cluster.GuardedFieldsEnforce, had: map[string]string{contract.AdoptAnnotation: "uid"}},
		{reason: "as before", body: annotate(contract.AdoptAnnotation, "uid"), mode: cluster.GuardedFieldsEnforce, had: map[string]string{contract.AdoptAnnotation: "uid"}},
	} {
		for _, version := range []string{"v1beta1", "v1alpha1"} {
			d := newDesk(t, test.mode)
			d.stored.objects["/clusters/east"].(*clusterregistry.Cluster).Annotations = test.had
			want := slices.Clone(test.asked)
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "/v1beta1 ", "/"+version+" ")
			}
			code, body, _ := d.send("PATCH", version+"/clusters/east", mergePatch, test.body)
			refused := code == http.StatusForbidden && strings.Contains(body, "the annotation clusterregistry.k8s.io/")
			if refused != (len(want) > 0) || !refused && code != http.StatusOK || !slices.Equal(d.asked, want) {
				t.Errorf("%s, %s: asked %q, want %q, answered %d %s", test.reason, version, d.asked, want, code, body)
			}
			d.says = map[string]review{"identity": {decision: authorizer.DecisionAllow}, "endpoints": {decision: authorizer.DecisionAllow}}
			if code, body, _ := d.send("PATCH", version+"/clusters/east", mergePatch, test.body); code != http.StatusOK {
				t.Errorf("%s, %s, with the permissions: answered %d %s", test.reason, version, code, body)
			}
		}
	}
}

// TestGuardedGeneratedName asks for the name that was generated.
func TestGuardedGeneratedName(t *testing.T) {
	d := newDesk(t, cluster.GuardedFieldsEnforce)
	code, body, _ := d.send("POST", "v1beta1/clusters", plain, `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"generateName":"west-"},"spec":{"endpoints":[{"name":"a","url":"https://a"}]}}`)
	if code != http.StatusForbidden || len(d.asked) != 1 || !strings.Contains(d.asked[0], ` "west-`) || strings.Contains(d.asked[0], ` "west-" `) {
		t.Errorf("asked %q, answered %d %s", d.asked, code, body)
	}
}

// TestGuardedAfterAdmission compares what mutating admission has made of a write, and
// refuses before validating admission says anything.
func TestGuardedAfterAdmission(t *testing.T) {
	const label, address = `{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"endpoints":[{"name":"main","url":"https://evil"}]}}`
	set := func(url string) func(*clusterregistry.Cluster) {
		return func(c *clusterregistry.Cluster) { c.Spec.Endpoints[0].URL = url }
	}
	for _, test := range []struct {
		reason, body string
		admit        func(*clusterregistry.Cluster)
		want         int
	}{
		{"admission sets another address", label, set("https://other"), http.StatusForbidden},
		{"admission sets another address in v1alpha1's form alone", label, func(c *clusterregistry.Cluster) {
			c.Spec.KubernetesAPIEndpoints.ServerEndpoints = []clusterregistry.ServerAddressByClientCIDR{{ServerAddress: "other"}}
		}, http.StatusForbidden},
		{"admission takes the change back", address, func(c *clusterregistry.Cluster) { *c = *eastIn(t, c) }, http.StatusOK},
	} {
		d := newDesk(t, cluster.GuardedFieldsEnforce)
		d.admit, d.refuse = test.admit, nil
		if code, body, _ := d.send("PATCH", "v1beta1/clusters/east", mergePatch, test.body); code != test.want {
			t.Errorf("%s: answered %d %s", test.reason, code, body)
		}
	}
	d := newDesk(t, cluster.GuardedFieldsEnforce)
	d.refuse = errors.New("the policy for the secret team")
	if code, body, _ := d.send("PATCH", "v1beta1/clusters/east", mergePatch, address); code != http.StatusForbidden || strings.Contains(body, "secret team") {
		t.Errorf("answered %d %s", code, body)
	}
}

// eastIn returns the cluster east as it is stored, with the metadata of c.
func eastIn(t *testing.T, c *clusterregistry.Cluster) *clusterregistry.Cluster {
	t.Helper()
	out := &clusterregistry.Cluster{}
	if err := runtime.DecodeInto(codecs.UniversalDecoder(clusterregistry.SchemeGroupVersion), []byte(east), out); err != nil {
		t.Fatal(err)
	}
	out.ObjectMeta = c.ObjectMeta
	return out
}

// TestFirstID gives a cluster an id that has none. Who may not do so takes no lock.
func TestFirstID(t *testing.T) {
	d := newDesk(t, cluster.GuardedFieldsEnforce)
	d.stored.objects["/clusters/east"].(*clusterregistry.Cluster).Spec.ID = ""
	const body = `{"spec":{"id":"two"}}`
	writes := d.stored.version
	if code, answer, _ := d.send("PATCH", "v1beta1/clusters/east", mergePatch, body); code != http.StatusForbidden || !slices.Equal(d.asked, []string{question("v1beta1", "identity", "east")}) {
		t.Errorf("asked %q, answered %d %s", d.asked, code, answer)
	}
	if d.stored.version != writes {
		t.Error("something was written, such as a lock")
	}
	d.says = map[string]review{"identity": {decision: authorizer.DecisionAllow}}
	if code, answer, _ := d.send("PATCH", "v1beta1/clusters/east", mergePatch, body); code != http.StatusOK {
		t.Errorf("with the permission: %d %s", code, answer)
	}
}

// TestOneEtcd refuses to keep some of what is stored in another etcd.
func TestOneEtcd(t *testing.T) {
	options, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	const flag = "--etcd-servers-overrides=clusterregistry.k8s.io/clusters#https://other:2379: all that a registry stores has to be in one etcd"
	if err := options.Validate(); err != nil && strings.Contains(err.Error(), "overrides") {
		t.Errorf("without the flag: %v", err)
	}
	options.Recommended.Etcd.EtcdServersOverrides = []string{"clusterregistry.k8s.io/clusters#https://other:2379"}
	if err := options.Validate(); err == nil || !strings.Contains(err.Error(), flag) {
		t.Errorf("with it: %v", err)
	}
}

// TestNoLockIsLeft releases the lock of an id where nothing was written, whatever the reason:
// the next request need not wait for its lease to end.
func TestNoLockIsLeft(t *testing.T) {
	d := newDesk(t, cluster.GuardedFieldsOff)
	d.stored.broken = "/clustersets/"
	const body = `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"west"},"spec":{"id":"two","clusterSet":"blue"}}`
	for _, method := range []struct{ method, path string }{{"POST", "v1beta1/clusters"}, {"PUT", "v1beta1/clusters/west"}} {
		if code, answer, _ := d.send(method.method, method.path, plain, body); code != http.StatusInternalServerError || !strings.Contains(answer, "it can't be read") {
			t.Errorf("%s: answered %d %s", method.method, code, answer)
		}
		for key := range d.stored.objects {
			if strings.HasPrefix(key, "/clusterids/") {
				t.Errorf("%s leaves %s", method.method, key)
			}
		}
	}
}

// TestUnansweredReviews refuses whatever is not allowed for certain.
func TestUnansweredReviews(t *testing.T) {
	const body = `{"spec":{"sourceRef":{"apiVersion":"v1","kind":"Secret","name":"x"},"endpoints":[{"name":"main","url":"https://evil"}]}}`
	away := review{decision: authorizer.DecisionNoOpinion, err: errors.New("the host is away")}
	for _, test := range []struct {
		reason string
		says   map[string]review
		code   int
		want   string
	}{
		{"denied", map[string]review{"endpoints": {decision: authorizer.DecisionDeny, reason: "by a policy"}, "identity": {decision: authorizer.DecisionAllow}}, 403, "as a change of spec.endpoints needs: by a policy"},
		{"no opinion", map[string]review{"identity": {decision: authorizer.DecisionAllow}}, 403, "as a change of spec.endpoints needs"},
		{"no answer", map[string]review{"endpoints": away, "identity": {decision: authorizer.DecisionAllow}}, 503, `cluster \"east\" was not written: it is not known whether User \"ann\" may update resource \"clusters/endpoints\" in API group \"clusterregistry.k8s.io\" for the name \"east\", as a change of spec.endpoints needs: the host is away; try again`},
		{"no answer to one, and the other denied", map[string]review{"endpoints": away}, 403, "as a change of spec.sourceRef needs"},
	} {
		d := newDesk(t, cluster.GuardedFieldsEnforce)
		d.says = test.says
		if code, answer, _ := d.send("PATCH", "v1beta1/clusters/east", mergePatch, body); code != test.code || !strings.Contains(answer, test.want) {
			t.Errorf("%s: answered %d %s", test.reason, code, answer)
		}
	}
}

// TestGuardedFieldsWarn lets writes pass and says what would be refused, once for a write
// that takes several attempts.
func TestGuardedFieldsWarn(t *testing.T) {
	const metric = "clusterregistry_guarded_writes_total"
	d := newDesk(t, cluster.GuardedFieldsWarn)
	counted := func(permission, outcome string) float64 { return counter(t, metric, permission, outcome) }
	before := counted("endpoints", "warned")
	d.stored.overtaken = func(other runtime.Object) {
		other.(*clusterregistry.Cluster).Labels = map[string]string{"faster": "yes"}
	}
	code, body, warnings := d.send("PATCH", "v1beta1/clusters/east", mergePatch, `{"spec":{"endpoints":[{"name":"main","url":"https://new"}]}}`)
	if code != http.StatusOK || !strings.Contains(body, "https://new") || !strings.Contains(body, "faster") {
		t.Errorf("answered %d %s", code, body)
	}
	if want := `299 - "User \"ann\" cannot update resource \"clusters/endpoints\" in API group \"clusterregistry.k8s.io\" for the name \"east\", as a change of spec.endpoints needs; guardedFields: Enforce will refuse this"`; !slices.Equal(warnings, []string{want}) {
		t.Errorf("warned %q, want %q", warnings, want)
	}
	if len(d.asked) != 1 || counted("endpoints", "warned") != before+1 {
		t.Errorf("asked %q, and counted %v", d.asked, counted("endpoints", "warned")-before)
	}
	errorsBefore := counted("identity", "error")
	d.says = map[string]review{"identity": {err: errors.New("the host is away")}}
	code, _, warnings = d.send("PATCH", "v1beta1/clusters/east", mergePatch, `{"spec":{"sourceRef":{"apiVersion":"v1","kind":"Secret","name":"x"}}}`)
	if code != http.StatusOK || len(warnings) != 1 || !strings.Contains(warnings[0], "it is not known whether") || counted("identity", "error") != errorsBefore+1 {
		t.Errorf("answered %d, warned %q", code, warnings)
	}

	enforced := newDesk(t, cluster.GuardedFieldsEnforce)
	refused := counted("endpoints", "refused")
	if code, _, _ := enforced.send("PATCH", "v1beta1/clusters/east", mergePatch, `{"spec":{"endpoints":[]}}`); code != http.StatusForbidden || counted("endpoints", "refused") != refused+1 {
		t.Errorf("answered %d, and counted %v", code, counted("endpoints", "refused")-refused)
	}
}

// TestGuardedFieldsOff asks nothing.
func TestGuardedFieldsOff(t *testing.T) {
	d := newDesk(t, cluster.GuardedFieldsOff)
	code, body, warnings := d.send("PATCH", "v1beta1/clusters/east", mergePatch, `{"spec":{"endpoints":[]}}`)
	if code != http.StatusOK || len(warnings) > 0 || len(d.asked) > 0 {
		t.Errorf("asked %q, answered %d %s, warned %q", d.asked, code, body, warnings)
	}
}

// counter returns a metric's value.
func counter(t *testing.T, name, permission, outcome string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range m.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["permission"] == permission && labels["outcome"] == outcome {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no %s of %s, %s", name, permission, outcome)
	return 0
}

// TestGuardedFieldsFlag refuses what no one knows.
func TestGuardedFieldsFlag(t *testing.T) {
	for _, value := range []string{"enforce", "", "On"} {
		options, err := NewOptions()
		if err != nil {
			t.Fatal(err)
		}
		options.GuardedFields = cluster.GuardedFields(value)
		if err := options.Validate(); err == nil || !strings.Contains(err.Error(), "--guarded-fields="+value+" is unknown; use --guarded-fields=Off, Warn or Enforce") {
			t.Errorf("%q: %v", value, err)
		}
	}
}
