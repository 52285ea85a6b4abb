package informers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// trees is a cache of trees, as informers hold them.
type trees struct {
	cache.Cache
	held     []unstructured.Unstructured
	informer client.Object
}

func (c *trees) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	for _, tree := range c.held {
		if tree.GetName() == key.Name {
			tree.DeepCopyInto(out.(*unstructured.Unstructured))
			return nil
		}
	}
	return errors.New("not found")
}

func (c *trees) List(_ context.Context, out client.ObjectList, _ ...client.ListOption) error {
	out.(*unstructured.UnstructuredList).Items = c.held
	return nil
}

func (c *trees) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	c.informer = object
	return nil, nil
}

// stored returns what the transformation leaves of an object that the host cluster stores.
func stored(t *testing.T, text string) unstructured.Unstructured {
	t.Helper()
	tree := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &tree.Object); err != nil {
		t.Fatal(err)
	}
	left, err := onlyRead(tree)
	if err != nil {
		t.Fatal(err)
	}
	return *left.(*unstructured.Unstructured)
}

// TestTolerant has an object that can't be decoded beside others: they are read as if it were not
// there, and it is told apart.
func TestTolerant(t *testing.T) {
	const backup = "{apiVersion: operator.clusterregistry.io/v1alpha1, kind: ClusterRegistryBackup, metadata: {namespace: team, name: %s, annotations: {operator.clusterregistry.io/undecodable: by a user}}, spec: {registryRef: {name: fleet}}, status: {revision: %s}}"
	c := &trees{held: []unstructured.Unstructured{stored(t, fmt.Sprintf(backup, "bad", "many")), stored(t, fmt.Sprintf(backup, "good", "7"))}}
	list := &operatorv1alpha1.ClusterRegistryBackupList{}
	if err := Tolerant(c).List(t.Context(), list); err != nil || len(list.Items) != 2 {
		t.Fatal(list, err)
	}
	bad, good := &list.Items[0], &list.Items[1]
	if !Undecodable(bad) || bad.Name != "bad" || bad.Namespace != "team" || bad.Spec.RegistryRef.Name != "fleet" {
		t.Errorf("of the one that can't be decoded is known: %+v", bad)
	}
	if Undecodable(good) || good.Status.Revision != 7 || good.Spec.RegistryRef.Name != "fleet" {
		t.Errorf("of the other one is known: %+v", good)
	}
	read := &operatorv1alpha1.ClusterRegistryBackup{}
	if err := Tolerant(c).Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "bad"}, read); err == nil || !strings.Contains(err.Error(), "the operator can't decode .status.revision of ClusterRegistryBackup team/bad: correct that field") {
		t.Errorf("one that can't be decoded is read: %v", err)
	}
	if err := Tolerant(c).Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "good"}, read); err != nil || read.Status.Revision != 7 {
		t.Errorf("the other one is read: %+v, %v", read, err)
	}
}

// TestTolerantNames has the field named that can't be decoded, wherever it is.
func TestTolerantNames(t *testing.T) {
	for text, field := range map[string]string{
		"{apiVersion: operator.clusterregistry.io/v1alpha1, kind: ClusterRegistry, metadata: {name: a}, spec: {backup: {store: {s3: {caBundle: '-----BEGIN'}}}}}":            ".spec.backup.store.s3.caBundle",
		"{apiVersion: operator.clusterregistry.io/v1alpha1, kind: ClusterRegistry, metadata: {name: a}, status: {conditions: [{type: Ready}, {lastTransitionTime: never}]}}": ".status.conditions[1].lastTransitionTime",
		"{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a}, spec: {duration: long}}":                                                                   ".spec.duration",
	} {
		left := stored(t, text)
		if why := left.GetAnnotations()[undecodableMark]; !strings.Contains(why, "can't decode "+field+" of ") {
			t.Errorf("%s: %q", text, why)
		}
	}
	huge := stored(t, "{apiVersion: operator.clusterregistry.io/v1alpha1, kind: ClusterRegistryBackup, metadata: {name: a}, spec: {registryRef: {name: "+strings.Repeat("x", 1<<20)+"}, deletionPolicy: 1}}")
	if text, err := huge.MarshalJSON(); err != nil || len(text) > 4*longest {
		t.Errorf("of a large one that can't be decoded are held %d bytes: %v", len(text), err)
	}
}

// TestWatchedAlone has no kind watched by its Go type of which the host cluster checks no more than
// a schema.
func TestWatchedAlone(t *testing.T) {
	custom := 0
	for _, object := range append(append(Owned(), Issued()...), Lease(), &operatorv1alpha1.ClusterRegistry{}, &operatorv1alpha1.ClusterRegistryBackup{}, Namespace(), CertificatesCRD()) {
		c := &trees{}
		if _, err := Tolerant(c).GetInformer(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		_, tree := c.informer.(runtime.Unstructured)
		kind, err := apiutil.GVKForObject(c.informer, clientgoscheme.Scheme)
		builtIn := err == nil && clientgoscheme.Scheme.Recognizes(kind)
		if _, is := c.informer.(*apiregistrationv1.APIService); is {
			builtIn = true
		}
		if metadata := c.informer.GetObjectKind().GroupVersionKind().Kind != "" && !tree; !metadata && tree == builtIn {
			t.Errorf("%T is watched as %T", object, c.informer)
		}
		if tree {
			custom++
		}
	}
	if custom != 3 {
		t.Errorf("%d custom resources are watched, want ClusterRegistry, ClusterRegistryBackup and %s", custom, certmanagerv1.CertificateKind)
	}
}
