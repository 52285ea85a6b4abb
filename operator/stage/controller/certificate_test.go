package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
)

// independent has the registry be an independent one, with a rendered Certificate, in a
// host cluster that has cert-manager, or has not.
func independent(s *Stage, certManager bool) {
	certificate := operandtest.Rendered(certmanagerv1.SchemeGroupVersion.WithKind(certmanagerv1.CertificateKind), "fleet-controller")
	certificate.SetLabels(rolledOut().Labels)
	certificate.Object["spec"] = map[string]any{"secretName": "fleet-controller", "issuerRef": map[string]any{"name": "fleet-client-ca"}}
	s.Registry.Spec.Mode = operatorv1alpha1.ModeIndependent
	s.Rendered.Stages[render.StageController] = append(s.Rendered.Stages[render.StageController], certificate)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(certmanagerv1.SchemeGroupVersion.WithKind(certmanagerv1.CertificateKind), meta.RESTScopeNamespace)
	s.Client = mapped{mapper: mapper, WithWatch: interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if crd, is := object.(*metav1.PartialObjectMetadata); is && crd.Kind == "CustomResourceDefinition" {
				if !certManager {
					return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
				}
				return nil
			}
			return c.Get(ctx, key, object, options...)
		}})}
	s.Applier = apply.New(s.Client, s.Live)
}

// mapped is a client of a host cluster that serves the kinds of a mapper.
type mapped struct {
	client.WithWatch
	mapper meta.RESTMapper
}

func (m mapped) RESTMapper() meta.RESTMapper { return m.mapper }

func rolledOut() *appsv1.Deployment { return running(asItWas)[0].(*appsv1.Deployment) }

// issued is the controller's Certificate, as cert-manager sees it.
func issued(ready cmmetav1.ConditionStatus) *certmanagerv1.Certificate {
	return &certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-controller", Labels: rolledOut().Labels},
		Status: certmanagerv1.CertificateStatus{NotAfter: new(metav1.NewTime(time.Now().Add(time.Hour))), Conditions: []certmanagerv1.CertificateCondition{{Type: certmanagerv1.CertificateConditionReady, Status: ready, Message: "the groups differ"}}}}
}

// TestCertificate is about the controller of an independent registry: its Deployment waits
// for the certificate, which only ControllerReady reports.
func TestCertificate(t *testing.T) {
	ca, another := trusttest.NewCA(t, time.Now().Add(time.Hour)), trusttest.NewCA(t, time.Now().Add(time.Hour))
	foreign := operandtest.Secret("fleet-controller", []byte("password"))
	foreign.Labels = nil
	for _, test := range []struct {
		reason, servers string
		objects         []client.Object
		change          func(*Stage)
		want, says      string
		enlists, rolls  bool
	}{
		{"it is issued", "v0.2.0", []client.Object{issued("True"), operandtest.Secret("fleet-controller", ca.Leaf())}, nil, "", "", true, true},
		{"it is not issued yet", "v0.2.0", nil, nil, "CertificateNotReady", "Certificate fleet-controller is waiting for cert-manager to process it; no replica is made or replaced until it is issued", true, false},
		{"it has other groups than the functions need", "v0.2.0", []client.Object{issued("False")}, nil, "CertificateNotReady", "Certificate fleet-controller is not issued yet: the groups differ", true, false},
		{"its Secret is someone else's", "v0.2.0", []client.Object{foreign}, nil, "NotOwned", "Secret team/fleet-controller is in the way", false, false},
		{"its CA was replaced", "v0.2.0", []client.Object{issued("True"), operandtest.Secret("fleet-controller", another.Leaf())}, nil, "CAReplaced", "the certificate in Secret fleet-controller is not signed by the CA in Secret fleet-client-ca", true, false},
		{"the servers come first", "v0.1.0", nil, nil, "Progressing", "Waiting for all servers to run v0.2.0", false, false},
		{"nothing may be made", "v0.2.0", nil, func(s *Stage) { s.Freeze("spec.paused is false") }, "CertificateNotReady", "Certificate fleet-controller does not exist yet; nothing is changed until spec.paused is false", false, false},
	} {
		s := newStage(t, healthOnly, test.servers, "v0.2.0", append(append(running(asItWas), leased(runs)), test.objects...)...)
		allowing(s, everything, nothing)
		independent(s, true)
		s.Authorities.Clients = trust.Authority{Source: "Secret fleet-client-ca", Current: ca.PEM}
		if test.change != nil {
			test.change(s)
		}
		found := s.Run(t.Context())
		if found.Reason != test.want || !strings.Contains(found.Message, test.says) || !found.Usable() || found.Err != nil {
			t.Errorf("%s: %+v", test.reason, found)
		}
		inventory := s.Registry.Status.Inventory
		certificate := slices.Index(inventory, operatorv1alpha1.ObjectReference{Group: "cert-manager.io", Kind: "Certificate", Namespace: "team", Name: "fleet-controller"})
		secret := slices.Index(inventory, operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: "team", Name: "fleet-controller"})
		if (secret >= 0) != test.enlists || secret < certificate {
			t.Errorf("%s: the inventory is %v", test.reason, inventory)
		}
		deployment := &appsv1.Deployment{}
		if err := s.Live.Get(t.Context(), s.Key("-controller"), deployment); err != nil || (len(deployment.ManagedFields) > 1) != test.rolls {
			t.Errorf("%s: %v: the Deployment was applied: %v", test.reason, err, len(deployment.ManagedFields) > 1)
		}
		listed := slices.ContainsFunc(s.Registry.Status.Certificates, func(c operatorv1alpha1.CertificateStatus) bool { return c.Name == "fleet-controller" })
		if exists := test.enlists; listed != exists {
			t.Errorf("%s: status.certificates has %v", test.reason, s.Registry.Status.Certificates)
		}
	}
}

// TestSecretFirst has the Secret be the registry's before the Certificate is there, of
// which cert-manager makes it: also an operator that is killed in between removes it.
func TestSecretFirst(t *testing.T) {
	s := newStage(t, healthOnly, "v0.2.0", "v0.2.0")
	allowing(s, everything, func(object client.Object) error {
		secret := operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: "team", Name: "fleet-controller"}
		if object.GetObjectKind().GroupVersionKind().Kind == "Certificate" && !slices.Contains(s.Registry.Status.Inventory, secret) {
			t.Errorf("the Certificate is applied while the inventory is %v", s.Registry.Status.Inventory)
		}
		return nil
	})
	independent(s, true)
	s.Run(t.Context())
	if made := Made(s.Objects); !slices.ContainsFunc(made, func(o operatorv1alpha1.ObjectReference) bool { return o.Kind == "Secret" }) {
		t.Errorf("what is not pruned: %v", made)
	}
}

// TestWithoutCertManager leaves what runs as it is.
func TestWithoutCertManager(t *testing.T) {
	s := newStage(t, healthOnly, "v0.2.0", "v0.2.0", append(running(asItWas), leased(runs))...)
	allowing(s, everything, nothing)
	independent(s, false)
	if found := s.Run(t.Context()); found.Reason != "CertManagerNotInstalled" || found.Err != nil || !found.Usable() {
		t.Errorf("%+v", found)
	}
}

// TestFeedCertificate expects the certificate that the controller of an aggregated registry shows to be
// signed by the CA of the servers, in one of its generations that are trusted.
func TestFeedCertificate(t *testing.T) {
	later := time.Now().Add(time.Hour)
	ca, next, another := trusttest.NewCA(t, later), trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	for _, test := range []struct {
		reason string
		signer trusttest.CA
		want   string
	}{
		{"the one that signs", ca, ""},
		{"the one that signs next", next, ""},
		{"one that was replaced", another, operatorv1alpha1.ReasonCAReplaced},
	} {
		s := newStage(t, healthOnly, "v0.2.0", "v0.2.0", append(running(asItWas), leased(runs), issued("True"), operandtest.Secret("fleet-controller", test.signer.Leaf()))...)
		allowing(s, everything, nothing)
		independent(s, true)
		s.Registry.Spec.Mode = operatorv1alpha1.ModeAggregated
		s.Authorities.Serving = trust.Authority{Source: "Secret fleet-serving-ca", Current: ca.PEM, Also: next.PEM}
		s.Authorities.Clients = trust.Authority{Source: "Secret fleet-client-ca", Current: another.PEM}
		if found := s.Run(t.Context()); found.Reason != test.want || !found.Usable() || found.Err != nil || test.want != "" && !strings.Contains(found.Message, "Secret fleet-serving-ca") {
			t.Errorf("%s: %+v", test.reason, found)
		}
	}
}

// TestWithoutFeedCertificate expects the Deployment of an aggregated registry to be applied without the
// certificate of the feed, so that what is narrowed is, and ControllerReady to say what the feed lacks.
func TestWithoutFeedCertificate(t *testing.T) {
	starting := strings.Replace(runs, `"Running"`, `"Failing", "message": "no file"`, 1)
	for _, test := range []struct {
		reason, status string
		certManager    bool
		objects        []client.Object
		want, says     string
	}{
		{"there is none", runs, true, nil, "CertificateNotReady", "Certificate fleet-controller is waiting for cert-manager to process it; feed answers no new connections until it is issued"},
		{"the issuer refuses it", runs, true, []client.Object{issued("False")}, "CertificateNotReady", "the groups differ"},
		{"the feed says the same", starting, true, nil, "CertificateNotReady", "waiting for cert-manager"},
		{"cert-manager was uninstalled", runs, false, nil, "CertManagerNotInstalled", "cert-manager"},
	} {
		s := newStage(t, healthOnly, "v0.2.0", "v0.2.0", append(append(running(asItWas), leased(test.status)), test.objects...)...)
		allowing(s, everything, nothing)
		independent(s, test.certManager)
		s.Registry.Spec.Mode = operatorv1alpha1.ModeAggregated
		if found := s.Run(t.Context()); found.Reason != test.want || !strings.Contains(found.Message, test.says) || !found.Usable() || found.Err != nil {
			t.Errorf("%s: %+v", test.reason, found)
		}
		deployment := &appsv1.Deployment{}
		if err := s.Live.Get(t.Context(), s.Key("-controller"), deployment); err != nil || len(deployment.ManagedFields) < 2 {
			t.Errorf("%s: %v: the Deployment is not applied", test.reason, err)
		}
	}
}
