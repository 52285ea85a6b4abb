package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/lookup/lookuptest"
)

// outage is how many errors in a row an operator gets while something is away. A delay that
// doubles after each of them without a bound is longer then than a test waits: that what failed
// is repaired afterwards shows that the delay has one, however fast this computer is.
const outage = 16

// outlasted waits until an outage has lasted for so many more failures.
func (s *site) outlasted(failures func() int) {
	s.t.Helper()
	before := failures()
	s.eventually("the operator to fail often", func(context.Context) error {
		if so := failures() - before; so < outage {
			return fmt.Errorf("it has %d times", so)
		}
		return nil
	})
	s.lasts()
}

// lasts has an outage last five minutes in "make test-full".
func (s *site) lasts() {
	s.t.Helper()
	if !framework.Full() {
		return
	}
	ends := time.Now().Add(5 * time.Minute)
	s.eventually("the outage to last", func(context.Context) error {
		if left := time.Until(ends); left > 0 {
			return fmt.Errorf("it does %s more", left.Round(10*time.Second))
		}
		return nil
	})
}

// testCertManagerAway has cert-manager's webhook be away, and cert-manager itself: no
// certificate can be changed, and none is issued. What does not need them is repaired
// meanwhile, and the certificates are when they are back, which no watch reports.
func testCertManagerAway(t *testing.T, s *site) {
	s.apply("fleet", "{mode: Independent}")
	s.ready("fleet")
	away, failed := &atomic.Bool{}, &atomic.Int32{}
	_, config := serveWebhook(t, func(*admissionv1.AdmissionRequest) verdict {
		if away.Load() {
			failed.Add(1)
			panic(http.ErrAbortHandler) // the connection ends
		}
		return verdict{}
	})
	away.Store(true)
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cert-manager-of-" + s.namespace}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "webhook.cert-manager.io", ClientConfig: config, SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}, FailurePolicy: new(admissionregistrationv1.Fail),
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{certmanagerv1.SchemeGroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"certificates"}}}},
	}}}
	framework.Create(t, s, webhook)
	certificate := &certmanagerv1.Certificate{}
	s.get("fleet-serving", certificate)
	s.eventually("the webhook to be asked, and not to answer", func(ctx context.Context) error {
		changed := certificate.DeepCopy()
		changed.Annotations = map[string]string{"asked": "yes"}
		err := s.Patch(ctx, changed, client.MergeFrom(certificate), client.DryRunAll)
		switch {
		case err == nil:
			return errors.New("a Certificate is changed")
		case !strings.Contains(err.Error(), "failed calling webhook"):
			return err
		}
		return nil
	})
	s.idle = true
	if err := s.Delete(t.Context(), certificate); err != nil {
		t.Fatal(err)
	}
	s.says("fleet", "CertificatesReady", "False", operatorv1alpha1.ReasonInternalError, "failed calling webhook")
	s.recreated(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "fleet-server"}})
	s.recreated(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "fleet-server"}})
	s.outlasted(func() int { return int(failed.Load()) })
	away.Store(false)
	s.says("fleet", "CertificatesReady", "False", "CertificateNotReady", "is waiting for cert-manager")
	s.idle = false
	s.ready("fleet")
}

// testServersAway has servers that ran answer nothing, and then their etcd, which no watch
// reports. What comes before them is repaired meanwhile. A bare host has no DNS, so no registry
// is Available once that is asked.
func testServersAway(t *testing.T, s *site) {
	s.etcd = framework.StartEtcd(t, 1)
	s.apply("fleet", "{mode: Independent}")
	s.ready("fleet")
	s.kubelets.Away.Store(true)
	s.fails("fleet", "ServerReady")
	s.recreated(&certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Name: "fleet-serving"}})
	s.recreated(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "fleet-server"}})
	s.lasts()
	s.kubelets.Away.Store(false)
	s.says("fleet", "ServerReady", "True", "Ready")

	s.etcd.Kill(0)
	s.fails("fleet", "EtcdReady")
	s.recreated(&certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Name: "fleet-serving"}})
	s.lasts()
	s.etcd.Start(0)
	s.says("fleet", "EtcdReady", "True", "Ready")
}

// testHostAway has the host cluster's API be away. One operator of the Deployment's two is enough
// to see what happens: it can't renew its Lease and ends, and the next one, as kubelet starts it,
// waits until it gets the Lease when the host is back.
func testHostAway(t *testing.T, s *site, host *framework.Host) {
	elected := func() *framework.Operator {
		return framework.StartOperator(t, host, "--leader-elect", quickResync())
	}
	operator := elected()
	s.apply("fleet", "{mode: Independent}")
	s.ready("fleet")
	host.Kill()
	operator.Ended("leader election lost")
	operator = elected()
	s.lasts()
	host.Restart()
	s.recreated(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "fleet-server"}})
	s.change(func(r *operatorv1alpha1.ClusterRegistry) {
		r.Spec.Server.ExtraArgs = map[string]operatorv1alpha1.Argument{"v": "3"}
	})
	s.eventually("the operator to observe the change", func(ctx context.Context) error {
		r := &operatorv1alpha1.ClusterRegistry{}
		if err := s.Get(ctx, s.key("fleet"), r); err != nil {
			return err
		}
		if r.Status.ObservedGeneration != r.Generation {
			return fmt.Errorf("generation %d of %d is observed", r.Status.ObservedGeneration, r.Generation)
		}
		return nil
	})
	s.ready("fleet")
	operator.Stop()
}

// testDNSAway has an external etcd be known by its name, and no one resolve it: the nameserver is
// silent, and then says that it can't answer. What comes before it is repaired meanwhile. The
// registry's own name leads to where nothing listens, so that it is not Available.
func testDNSAway(t *testing.T, s *site, host *framework.Host) {
	names := lookuptest.New("127.0.0.1")
	framework.StartOperatorAsking(t, host, names.Listen(t), "--watch-namespaces="+s.namespace, quickResync())
	external := s.external()
	for i, endpoint := range external.External.Endpoints {
		external.External.Endpoints[i] = operatorv1alpha1.EtcdEndpoint(strings.Replace(string(endpoint), "127.0.0.1", framework.EtcdName, 1))
	}
	framework.Create(t, s, &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: s.namespace},
		Spec: operatorv1alpha1.ClusterRegistrySpec{Version: "v0.1.0", Mode: operatorv1alpha1.ModeIndependent, Etcd: external}})
	s.says("fleet", "ServerReady", "True", "Ready")
	unresolved := func(does lookuptest.Does) {
		t.Helper()
		names.Turn(does)
		s.says("fleet", "EtcdReady", "False", operatorv1alpha1.ReasonExternalUnreachable, framework.EtcdName, "has a name that DNS does not resolve")
		s.recreated(&certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Name: "fleet-serving"}})
	}
	unresolved(lookuptest.Ignore)
	unresolved(lookuptest.Fail)
	s.outlasted(names.Asked)
	names.Turn(lookuptest.Answer)
	s.says("fleet", "EtcdReady", "True", "Ready")
	s.recreated(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "fleet-server"}})
}

// fails waits until a condition of a registry is false.
func (s *site) fails(name, condition string) {
	s.t.Helper()
	s.eventually(condition+" to be False", func(ctx context.Context) error {
		r := &operatorv1alpha1.ClusterRegistry{}
		if err := s.Get(ctx, s.key(name), r); err != nil {
			return err
		}
		if !meta.IsStatusConditionFalse(r.Status.Conditions, condition) {
			return fmt.Errorf("the conditions are %s", shown(r.Status.Conditions))
		}
		return nil
	})
}

// recreated deletes an object of the site, and waits until there is another one.
func (s *site) recreated(object client.Object) {
	s.t.Helper()
	name, deleted := object.GetName(), types.UID("")
	s.eventually(fmt.Sprintf("%T %s to be made again", object, name), func(ctx context.Context) error {
		if err := s.Get(ctx, s.key(name), object); err != nil {
			return err
		}
		if deleted == "" {
			uid := object.GetUID()
			if err := s.Delete(ctx, object, client.Preconditions{UID: &uid}); err != nil {
				return err
			}
			deleted = uid
		}
		if object.GetUID() == deleted {
			return errors.New("it was deleted just now")
		}
		return nil
	})
}
