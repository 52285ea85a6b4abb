package integration

import (
	"strconv"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// testAlarms raises alarms of an etcd under a registry that is ready.
func testAlarms(t *testing.T, s *site) {
	s.apply("fleet", "{mode: Independent}")
	s.ready("fleet")
	list, err := s.etcd.Client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for kind, reason := range map[pb.AlarmType]string{pb.AlarmType_NOSPACE: "NoSpace", pb.AlarmType_CORRUPT: "Corrupt"} {
		request := &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: list.Members[0].ID, Alarm: kind}
		if _, err := pb.NewMaintenanceClient(s.etcd.Client.ActiveConnection()).Alarm(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		// Etcd is not watched; a change of the spec makes the operator look.
		s.change(func(r *operatorv1alpha1.ClusterRegistry) {
			r.Spec.Server.ExtraArgs = map[string]operatorv1alpha1.Argument{"v": operatorv1alpha1.Argument(strconv.Itoa(int(kind)))}
		})
		s.says("fleet", "EtcdReady", "False", reason, "alarm "+kind.String(), "m0", "alarm disarm")
		s.says("fleet", "Ready", "False", reason)
		if _, err := s.etcd.Client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
			t.Fatal(err)
		}
		s.ready("fleet")
	}
}

// testExternalEtcd corrects one mistake after the other until a registry is
// ready, and then makes them again.
func testExternalEtcd(t *testing.T, s *site) {
	right := s.external().External.Endpoints
	secret := &corev1.Secret{}
	s.get("etcd", secret)
	good := secret.DeepCopy().Data
	if err := s.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	const spec = "{mode: Independent, etcd: {external: {endpoints: ['https://127.0.0.1:1'], tlsSecretRef: {name: etcd}}}}"
	s.apply("fleet", spec)
	s.says("fleet", "EtcdReady", "False", "SecretInvalid", "Secret etcd", "does not exist")

	level := 0
	set := func(change map[string][]byte) {
		t.Helper()
		now := &corev1.Secret{ObjectMeta: secret.ObjectMeta, Data: map[string][]byte{}}
		now.ResourceVersion, now.UID = "", ""
		for key, value := range good {
			now.Data[key] = value
		}
		for key, value := range change {
			now.Data[key] = value
		}
		_ = s.Delete(t.Context(), now.DeepCopy())
		framework.Create(t, s, now)
		// Secrets are not watched; a change of the spec makes the operator look.
		level++
		s.change(func(r *operatorv1alpha1.ClusterRegistry) {
			r.Spec.Server.ExtraArgs = map[string]operatorv1alpha1.Argument{"v": operatorv1alpha1.Argument(strconv.Itoa(level))}
		})
	}
	set(map[string][]byte{"ca.crt": nil})
	s.says("fleet", "EtcdReady", "False", "SecretInvalid", "Secret etcd: ca.crt contains no PEM CA certificate")
	set(map[string][]byte{"tls.key": []byte("?")})
	s.says("fleet", "EtcdReady", "False", "SecretInvalid", "Secret etcd: tls.crt and tls.key are not a valid PEM key pair")
	set(nil)
	s.says("fleet", "EtcdReady", "False", "ExternalUnreachable", "127.0.0.1:1", "no etcd listens there")
	use := func(endpoints ...operatorv1alpha1.EtcdEndpoint) {
		t.Helper()
		s.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Etcd.External.Endpoints = endpoints })
	}
	// One of another host cluster has it, which no one here can ask.
	const owner = "/registry/clusterregistry.k8s.io/operator/owner"
	if _, err := s.etcd.Client.Put(t.Context(), owner, `{"host": "1-2-3", "namespace": "team", "name": "abroad", "uid": "4-5-6"}`); err != nil {
		t.Fatal(err)
	}
	use(right...)
	s.says("fleet", "EtcdReady", "False", "EtcdTaken", "ClusterRegistry team/abroad of another host cluster", "etcdctl del "+owner)
	s.holds("fleet", "-Deployment/fleet-server")
	// One that an operator runs for another registry has no owner, but its operator's mark.
	const mark = "/clusterregistry-operator/mark"
	if _, err := s.etcd.Client.Put(t.Context(), mark, "written by an operator"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.etcd.Client.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	s.says("fleet", "EtcdReady", "False", "EtcdTaken", "an operator runs this etcd for a registry of its own", "etcdctl del "+mark)
	s.holds("fleet", "-Deployment/fleet-server")
	if _, err := s.etcd.Client.Delete(t.Context(), mark); err != nil {
		t.Fatal(err)
	}
	before := s.ready("fleet").Status
	if before.Etcd.Ready != "1/1" || before.Etcd.ClusterID == "" || before.EtcdVersion != "v3.6.14" {
		t.Errorf("the status says of etcd: %+v (%s)", before.Etcd, before.EtcdVersion)
	}

	set(map[string][]byte{"ca.crt": framework.NewAuthority(t, "other").PEM})
	use("https://localhost:1", right[0])
	s.says("fleet", "EtcdReady", "False", "ExternalUnreachable", "localhost:1", "the CA given for etcd did not sign")
	if err := s.Delete(t.Context(), secret.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	use(right[0], "https://localhost:2")
	s.says("fleet", "EtcdReady", "False", "SecretInvalid", "Secret etcd", "does not exist")
	// A complete registry goes on with what it has.
	s.says("fleet", "ServerReady", "True", "Ready")
	set(nil)
	other := framework.StartEtcd(t, 1)
	set(map[string][]byte{"ca.crt": append(other.CA.PEM, good["ca.crt"]...)})
	use(operatorv1alpha1.EtcdEndpoint(other.Endpoints[0]))
	s.says("fleet", "EtcdReady", "False", "ExternalUnreachable", "refuses the client certificate")
	set(nil)
	use(right...)
	s.ready("fleet")

	// Another registry may have what it holds, but only after this one.
	s.apply("second", "{mode: Independent}")
	s.says("second", "EtcdReady", "False", "EtcdTaken", "etcd belongs to ClusterRegistry "+s.namespace+"/fleet")
	s.holds("second", "-Deployment/second-server")
	s.gone(s.deleted("fleet"))
	if answer, err := s.etcd.Client.Get(t.Context(), owner); err != nil || len(answer.Kvs) > 0 && strings.Contains(string(answer.Kvs[0].Value), `"fleet"`) {
		t.Errorf("etcd still belongs to the registry that is gone: %v, %v", answer, err)
	}
	s.ready("second")
}
