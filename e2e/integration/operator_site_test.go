package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// site is a namespace for one case about the operator, in which the test plays
// the parts that a bare host lacks, whenever it waits.
type site struct {
	client.Client
	t         *testing.T
	namespace string
	authority *framework.CertManager
	kubelets  *framework.Kubelets
	// etcd is that of the site's registries, nil until one needs it: no two of them can share it.
	etcd *framework.Etcd
	// opens is the name of the Secret with its credentials, "etcd" where it is empty.
	opens string
	// idle is true while the test plays no parts.
	idle bool
}

// sites counts those of all tests.
var sites atomic.Int32

func newSite(t *testing.T, config *rest.Config) *site {
	t.Helper()
	c := operatorClient(t, config)
	namespace := fmt.Sprintf("site-%d", sites.Add(1))
	framework.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	return &site{Client: c, t: t, namespace: namespace,
		authority: framework.NewCertManager(t, c, namespace), kubelets: framework.NewKubelets(t, c, namespace)}
}

// operatorClient returns a client for all kinds that the operator knows.
func operatorClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorv1alpha1.AddToScheme, certmanagerv1.AddToScheme, apiregistrationv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	quick := rest.CopyConfig(config)
	quick.QPS, quick.Timeout = -1, framework.Patience // no watch is made with it
	c, err := client.New(quick, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// apply creates a registry of the site with a spec in YAML. "external" in it
// stands for the site's own etcd.
func (s *site) apply(name, spec string) {
	s.t.Helper()
	r := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
	if err := yaml.UnmarshalStrict([]byte(spec), &r.Spec); err != nil {
		s.t.Fatal(err)
	}
	if r.Spec.Version == "" {
		r.Spec.Version = "v0.1.0"
	}
	if r.Spec.Etcd.Replicas == 0 && r.Spec.Etcd.External == nil {
		r.Spec.Etcd = s.external()
	}
	framework.Create(s.t, s, r)
}

// external returns the site's etcd, with the Secret that opens it.
func (s *site) external() operatorv1alpha1.Etcd {
	s.t.Helper()
	if s.etcd == nil {
		s.etcd = framework.StartEtcd(s.t, 1)
	}
	pair := s.etcd.CA.Issue("operator", nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cmp.Or(s.opens, "etcd"), Namespace: s.namespace}, Data: map[string][]byte{"ca.crt": s.etcd.CA.PEM, "tls.crt": read(s.t, pair.Cert), "tls.key": read(s.t, pair.Key)}}
	if err := s.Create(s.t.Context(), secret); err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatal(err)
	}
	external := &operatorv1alpha1.ExternalEtcd{TLSSecretRef: operatorv1alpha1.LocalObjectReference{Name: secret.Name}}
	for _, endpoint := range s.etcd.Endpoints {
		external.Endpoints = append(external.Endpoints, operatorv1alpha1.EtcdEndpoint(endpoint))
	}
	return operatorv1alpha1.Etcd{External: external}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// eventually waits, and plays its parts meanwhile.
func (s *site) eventually(what string, check func(context.Context) error) {
	s.t.Helper()
	framework.Eventually(s.t, what, func(ctx context.Context) error {
		var parts error
		if !s.idle {
			parts = s.authority.Issue(ctx)
			if err := s.kubelets.Run(ctx); err != nil {
				parts = fmt.Errorf("%w; %w", err, parts)
			}
		}
		err := check(ctx)
		if err != nil && parts != nil {
			err = fmt.Errorf("%w (%w)", err, parts)
		}
		return err
	})
}

// get reads an object of the site.
func (s *site) get(name string, into client.Object) {
	s.t.Helper()
	if err := s.Get(s.t.Context(), s.key(name), into); err != nil {
		s.t.Fatalf("%T %s: %v", into, name, err)
	}
}

func (s *site) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: name}
}

// says waits for a condition of a registry: its status, its reason, and what is
// in its message.
func (s *site) says(name, condition, status, reason string, words ...string) *operatorv1alpha1.ClusterRegistry {
	s.t.Helper()
	r := &operatorv1alpha1.ClusterRegistry{}
	s.eventually(fmt.Sprintf("%s/%s to have %s %s %s %q", s.namespace, name, condition, status, reason, words), func(ctx context.Context) error {
		*r = operatorv1alpha1.ClusterRegistry{}
		if err := s.Get(ctx, s.key(name), r); err != nil {
			return err
		}
		c := meta.FindStatusCondition(r.Status.Conditions, condition)
		if c == nil || string(c.Status) != status || c.Reason != reason {
			return fmt.Errorf("the conditions are %s", shown(r.Status.Conditions))
		}
		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return fmt.Errorf("it says: %s", c.Message)
			}
		}
		return nil
	})
	return r
}

// ready waits until a registry is.
func (s *site) ready(name string) *operatorv1alpha1.ClusterRegistry {
	s.t.Helper()
	return s.says(name, operatorv1alpha1.ConditionReady, "True", "Ready")
}

func shown(conditions []metav1.Condition) string {
	var out []string
	for _, c := range conditions {
		out = append(out, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(out, "\n")
}

// change changes the spec of the registry fleet.
func (s *site) change(modify func(*operatorv1alpha1.ClusterRegistry)) {
	s.t.Helper()
	r := &operatorv1alpha1.ClusterRegistry{}
	s.get("fleet", r)
	before := r.DeepCopy()
	modify(r)
	if err := s.Patch(s.t.Context(), r, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

// gone waits until an object is.
func (s *site) gone(object client.Object) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%T %s to be gone", object, object.GetName()), func(ctx context.Context) error {
		err := s.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if r, is := object.(*operatorv1alpha1.ClusterRegistry); is && err == nil {
			return fmt.Errorf("it is there:\n%s", shown(r.Status.Conditions))
		}
		if err == nil {
			err = errors.New("it is there")
		}
		return err
	})
}
