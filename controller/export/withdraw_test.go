package export

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/internal/contract"
)

// bindings has the bench's host cluster have RoleBindings, and the namespace looked at.
func (b *bench) bindings(all ...runtime.Object) {
	b.t.Helper()
	b.Bindings = fake.NewClientset(all...).RbacV1()
	if v := b.bound(b.t.Context()); v != nil {
		b.t.Fatalf("%+v", v)
	}
	b.settle()
}

func binding(name, uid string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a", UID: types.UID(uid)}}
}

// TestOwner expects that what is published goes with the binding that lets it be: from the moment
// when it is made, and with the binding that there is now.
func TestOwner(t *testing.T) {
	for words, test := range map[string]struct {
		bench *bench
		name  string
		steps []string
	}{
		"secrets":          {newDocuments(t), "cluster-east", []string{"apply main cluster-east"}},
		"cluster-profiles": {newBench(t, ""), "east", []string{"apply main east"}},
	} {
		b, name := test.bench, contract.ExportsBinding("registries", "hub", words)
		owner := func() string {
			found, exists, _ := b.host.store.GetByKey("a/" + test.name)
			if !exists {
				return "there is no object"
			}
			var out []string
			for _, is := range found.(*unstructured.Unstructured).GetOwnerReferences() {
				out = append(out, is.APIVersion+" "+is.Kind+" "+is.Name+" "+string(is.UID))
			}
			return strings.Join(out, ", ")
		}
		b.bindings(binding(name, "1"), binding("another", "2"))
		b.host.fail = func(write string) error {
			if strings.HasPrefix(write, "apply") {
				return errors.New("killed")
			}
			return nil
		}
		b.put(member("east"))
		if got, want := owner(), "rbac.authorization.k8s.io/v1 RoleBinding "+name+" 1"; got != want {
			t.Errorf("%s: killed after it was made, it goes with %q, want %q", words, got, want)
		}
		b.host.fail = nil
		b.pass(2 * time.Minute)
		b.writesOf()
		b.bindings(binding(name, "3"))
		b.pass(time.Minute)
		expectWrites(t, b, words+": the binding was made again", test.steps...)
		if got, want := owner(), "rbac.authorization.k8s.io/v1 RoleBinding "+name+" 3"; got != want {
			t.Errorf("%s: it goes with %q, want %q", words, got, want)
		}
		b.host.edit(test.name, func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
		b.pass(time.Minute)
		expectWrites(t, b, words+": someone takes it off", test.steps...)
		b.bindings(binding(name+":by-administrator", "4"))
		b.pass(time.Minute)
		if got, want := owner(), "rbac.authorization.k8s.io/v1 RoleBinding "+name+":by-administrator 4"; got != want {
			t.Errorf("%s: an administrator's: it goes with %q, want %q", words, got, want)
		}
	}
}

// TestUnreadBindings expects that nothing is written of which it is not known what it goes with.
func TestUnreadBindings(t *testing.T) {
	for err, want := range map[error]verdict{
		apierrors.NewForbidden(rbacv1.Resource("rolebindings"), "x", nil): {state: contract.FunctionRefused},
		errors.New("EOF"): {state: contract.FunctionFailing, passing: true},
	} {
		client := fake.NewClientset()
		client.PrependReactor("get", "rolebindings", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		b := newDocuments(t)
		b.Bindings = client.RbacV1()
		if got := b.bound(t.Context()); got == nil || got.state != want.state || got.passing != want.passing {
			t.Errorf("%v: %+v", err, got)
		}
	}
}

// TestRetired expects that what was published in formats that a namespace has no longer is deleted,
// though their binding stays for another one, and that nothing else is.
func TestRetired(t *testing.T) {
	b := newDocuments(t)
	b.host.unlisted = errors.New("EOF")
	for name, marks := range map[string]map[string]string{
		"before":            {"registry.clusterregistry.io/hub": "registries", format.FormatLabel: "Kubeconfig"},
		"of-this":           {"registry.clusterregistry.io/hub": "registries", format.FormatLabel: "ArgoCDSecret"},
		"of-another":        {"registry.clusterregistry.io/hub": "elsewhere", format.FormatLabel: "Kubeconfig"},
		"of-none":           {format.FormatLabel: "Kubeconfig"},
		"without-a-format":  {"registry.clusterregistry.io/hub": "registries"},
		"another-registrys": {"registry.clusterregistry.io/other": "registries", format.FormatLabel: "Kubeconfig"},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetName(name)
		object.SetNamespace("a")
		object.SetLabels(marks)
		object.SetUID(types.UID(name))
		b.host.save(object)
	}
	expectState(t, b, "they can't be listed", contract.FunctionFailing, "may be left: list what exports of before have left: EOF")
	b.host.unlisted = nil
	b.pass(20 * time.Second)
	expectWrites(t, b, "they can", "delete before")
	expectState(t, b, "they can", contract.FunctionRunning, "")
	if left := b.host.store.ListKeys(); len(left) != 5 || slices.Contains(left, "a/before") {
		t.Errorf("left are %q", left)
	}
}
