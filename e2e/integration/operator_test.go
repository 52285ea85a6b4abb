package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestOperator runs the operator, with its own permissions, on a real host that
// has no nodes. The test plays cert-manager and what runs servers; etcd is real,
// and somebody else's.
func TestOperator(t *testing.T) {
	t.Parallel()
	h := newOperatorHost(t)
	operator := framework.StartOperator(t, h.Host, quickResync())
	if !t.Run("cert-manager late", func(t *testing.T) { testCertManagerLate(t, h.at(t), h.kubectl) }) {
		return // nothing else can go well
	}
	framework.Together(t, h.cases(map[string]func(*testing.T, *site){
		"stages": testStages, "external etcd": testExternalEtcd, "pruning": testPruning, "in the way": testInTheWay, "alarms": testAlarms, "fast edits": testFastEdits,
		"adoption": testAdoption, "node port": testNodePort, "paused": testPaused, "nothing left": testNothingLeft, "controller": testController, "controller upgraded": testControllerUpgraded, "backups": testBackups, "audit": testAudit, "exports taken back": testExportsTakenBack,
		"cert-manager away": testCertManagerAway, "servers away": testServersAway,
	}))
	// Alone: it takes the API group from a registry, which those of other cases would have then.
	t.Run("drift", func(t *testing.T) { testDrift(t, h.at(t)) })
	t.Run("deletion", func(t *testing.T) { testDeletion(t, h.at(t), h.at(t)) })
	t.Run("deletion of the namespace", func(t *testing.T) { testNamespaceDeletion(t, h.at(t)) })
	t.Run("steady", func(t *testing.T) { testSteady(t, h.at(t), h.audit) })
	expectPermitted(t, h.audit)
	operator.Stop()
	// Last: a kube-apiserver that starts refuses what is permitted until it knows all roles.
	t.Run("host away", func(t *testing.T) { testHostAway(t, h.at(t), h.Host) })
}

// TestOperatorStarts has operators start, with flags of their own, on what is there.
func TestOperatorStarts(t *testing.T) {
	t.Parallel()
	h := newOperatorHost(t)
	framework.InstallCertManagerAPI(t, h.kubectl)
	t.Run("report", func(t *testing.T) { testReport(t, h.at(t), h.Host) })
	t.Run("orphans", func(t *testing.T) { testOrphans(t, h.at(t), h.Host) })
	t.Run("one namespace", func(t *testing.T) { testOneNamespace(t, h.at(t), h.at(t), h.Host) })
	t.Run("aggregation", func(t *testing.T) { testAggregation(t, h.at(t), h.at(t), h.Host) })
	t.Run("killed", func(t *testing.T) { testKilled(t, h.at, h.Host) })
	t.Run("DNS away", func(t *testing.T) { testDNSAway(t, h.at(t), h.Host) })
	t.Run("nonsense", func(t *testing.T) { testNonsense(t, h.at(t), h.Host) })
	expectPermitted(t, h.audit)
}

// quickResync has an operator find soon what no watch reports, as a Secret that was changed:
// tests wait for that many times. What a watch must report is tested without, and
// "make test-full" tests all without.
func quickResync() string {
	if framework.Full() {
		return "--resync-period=2m"
	}
	return "--resync-period=10s"
}

// operatorHost is a host with what an operator needs but cert-manager.
type operatorHost struct {
	*framework.Host
	audit   *framework.Audit
	kubectl *framework.Kubectl
}

func newOperatorHost(t *testing.T) *operatorHost {
	t.Helper()
	host, audit := framework.StartAuditedHost(t, newest, framework.OperatorUser, "front-proxy-client")
	kubectl := framework.NewKubectl(t, newest, host.Kubeconfig("root", "system:masters"))
	framework.InstallOperator(t, kubectl)
	return &operatorHost{host, audit, kubectl}
}

// at returns a site of its own for a test.
func (h *operatorHost) at(t *testing.T) *site {
	t.Helper()
	return newSite(t, h.Config)
}

// cases has each test get a site of its own.
func (h *operatorHost) cases(tests map[string]func(*testing.T, *site)) map[string]func(*testing.T) {
	cases := map[string]func(*testing.T){}
	for name, test := range tests {
		cases[name] = func(t *testing.T) { test(t, h.at(t)) }
	}
	return cases
}

// expectPermitted looks for a request that the operator's permissions did not
// cover.
func expectPermitted(t *testing.T, audit *framework.Audit) {
	t.Helper()
	refused := map[string]bool{}
	for _, event := range audit.Events() {
		answer, object := event.ResponseStatus, event.ObjectRef
		if answer == nil || answer.Code != 403 {
			continue
		}
		// An event is posted after what it reports, when the namespace may be terminating.
		if event.Verb == "create" && object != nil && object.Resource == "events" && strings.Contains(answer.Message, "because it is being terminated") {
			continue
		}
		refused[event.Verb+" "+event.RequestURI+": "+answer.Message] = true
	}
	for request := range refused {
		t.Errorf("the operator lacks a permission: %s", request)
	}
}

// testCertManagerLate installs cert-manager when a registry waits for it already.
func testCertManagerLate(t *testing.T, s *site, kubectl *framework.Kubectl) {
	s.idle = true
	s.apply("fleet", "{mode: Independent}")
	r := s.says("fleet", "CertificatesReady", "False", "CertManagerNotInstalled", "install it")
	if len(r.Status.Inventory) != 0 || len(r.Finalizers) != 1 {
		t.Errorf("nothing can have been made: %v, %v", r.Status.Inventory, r.Finalizers)
	}
	s.says("fleet", "EtcdReady", "Unknown", "Waiting")
	framework.InstallCertManagerAPI(t, kubectl)
	s.idle = false
	s.ready("fleet")
}

// testStages looks at what is applied before the stage in front of it is complete,
// and at whom it belongs to.
func testStages(t *testing.T, s *site) {
	s.idle = true
	s.apply("fleet", "{mode: Independent, etcd: {replicas: 3}}")
	s.says("fleet", "CertificatesReady", "False", "CertificateNotReady", "Certificate fleet-admin is waiting for cert-manager", "and 5 more")
	s.holds("fleet", "Certificate/fleet-etcd-ca Service/fleet-server -ConfigMap/fleet-etcd-identity -StatefulSet/fleet-etcd -Deployment/fleet-server")
	s.idle = false
	s.says("fleet", "EtcdReady", "False", "MembersNotReady", "0 of 3 etcd members ready: their pods do not exist yet")
	s.holds("fleet", "StatefulSet/fleet-etcd PodDisruptionBudget/fleet-etcd -Deployment/fleet-server -NetworkPolicy/fleet-server")
	record := &corev1.ConfigMap{}
	s.get("fleet-etcd-identity", record)
	if record.Data["initial-cluster-state"] != "new" || record.Data["replicas"] != "3" || record.Data["members"] != "fleet-etcd-0,fleet-etcd-1,fleet-etcd-2" || record.Data["cluster-id"] != "" {
		t.Errorf("the record of etcd's identity is %v", record.Data)
	}
	for _, object := range s.objects("fleet") {
		retained := object.GetAnnotations()[operatorv1alpha1.AnnotationRetain] != ""
		if owned := len(object.GetOwnerReferences()) > 0; owned == retained {
			t.Errorf("%s is retained: %v, and owned: %v", object.GetName(), retained, object.GetOwnerReferences())
		}
	}
	s.says("fleet", "Progressing", "True", "Progressing", "the registry is being installed: EtcdReady:")
	s.noErrors()
}

// noErrors expects that the operator told of no error in this namespace: what it
// made just now and does not see yet is none.
func (s *site) noErrors() {
	s.t.Helper()
	list := &corev1.EventList{}
	if err := s.List(s.t.Context(), list, client.InNamespace(s.namespace)); err != nil || len(list.Items) == 0 {
		s.t.Fatalf("%d events, %v", len(list.Items), err)
	}
	for _, event := range list.Items {
		if event.Reason == operatorv1alpha1.ReasonInternalError || event.Reason == operatorv1alpha1.ReasonHostRefused || strings.Contains(event.Message, "not found") {
			s.t.Errorf("an event tells of an error: %s", event.Message)
		}
	}
}

// testPaused pauses a registry in its installation.
func testPaused(_ *testing.T, s *site) {
	s.apply("fleet", "{mode: Independent, paused: true}")
	s.says("fleet", "Progressing", "False", "Paused", "until spec.paused is false")
	s.holds("fleet", "-Certificate/fleet-serving -Service/fleet-server")
	s.idle = true
	s.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Paused = false })
	// While it is paused, Certificates are missing, for which the reason is the same.
	s.says("fleet", "CertificatesReady", "False", "CertificateNotReady", "is waiting for cert-manager")
	s.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Paused = true })
	s.says("fleet", "Progressing", "False", "Paused")
	s.idle = false
	s.says("fleet", "ServerReady", "False", "Waiting", "Deployment fleet-server does not exist")
	s.holds("fleet", "-Deployment/fleet-server -ConfigMap/fleet-trust")
	s.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Paused = false })
	s.ready("fleet")
	s.noErrors()
}

// testInTheWay takes names that a registry needs before it does.
func testInTheWay(t *testing.T, s *site) {
	mine := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "fleet-server", Namespace: s.namespace, Labels: map[string]string{"app.kubernetes.io/instance": "fleet"}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	framework.Create(t, s, mine)
	s.apply("fleet", "{mode: Independent}")
	s.says("fleet", "CertificatesReady", "False", "NotOwned", "Service "+s.namespace+"/fleet-server is in the way", "was not made by the operator")
	now := &corev1.Service{}
	s.get("fleet-server", now)
	if now.ResourceVersion != mine.ResourceVersion {
		t.Errorf("the Service of somebody else was changed: %v", now)
	}
	registry := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: s.namespace}}
	if err := s.Delete(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	s.gone(registry)
	s.get("fleet-server", now)
	if now.DeletionTimestamp != nil || now.ResourceVersion != mine.ResourceVersion {
		t.Errorf("the deletion of the registry reached the Service of somebody else: %v", now)
	}

	// cert-manager would overwrite it, and the operator delete it with the registry.
	password := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "team-serving", Namespace: s.namespace}, Data: map[string][]byte{"password": []byte("mine")}}
	framework.Create(t, s, password)
	s.apply("team", "{mode: Independent}")
	s.says("team", "CertificatesReady", "False", "NotOwned", "Secret "+s.namespace+"/team-serving is in the way")
	s.holds("team", "-Certificate/team-serving")
	s.gone(s.deleted("team"))
	kept := &corev1.Secret{}
	s.get("team-serving", kept)
	if kept.ResourceVersion != password.ResourceVersion {
		t.Errorf("the Secret of somebody else was changed: %v", kept)
	}
}
