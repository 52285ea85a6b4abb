package etcd

import (
	"encoding/json"
	"strings"
	"testing"

	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

func TestRotate(t *testing.T) {
	independent := func(r *v1alpha1.ClusterRegistry) { r.Spec.Mode = v1alpha1.ModeIndependent }
	signs := func(name string, generation int32) func(*v1alpha1.ClusterRegistry) {
		return func(r *v1alpha1.ClusterRegistry) {
			r.Status.Certificates = append(r.Status.Certificates, v1alpha1.CertificateStatus{Name: name, Generation: generation, Use: v1alpha1.CASigning})
		}
	}
	trusted := func(name string, generation int32) func(*v1alpha1.ClusterRegistry) {
		return func(r *v1alpha1.ClusterRegistry) {
			r.Status.Certificates = append(r.Status.Certificates, v1alpha1.CertificateStatus{Name: name, Generation: generation, Use: v1alpha1.CATrusted})
		}
	}
	lost := func(name string) func(*v1alpha1.ClusterRegistry) {
		return func(r *v1alpha1.ClusterRegistry) {
			r.Status.Certificates = append(r.Status.Certificates, v1alpha1.CertificateStatus{Name: name})
		}
	}
	asked := func(rotation v1alpha1.Rotation) func(*v1alpha1.ClusterRegistry) {
		return func(r *v1alpha1.ClusterRegistry) { r.Spec.TLS.Rotation = rotation }
	}
	external := func(r *v1alpha1.ClusterRegistry) { r.Spec.Etcd.External = &v1alpha1.ExternalEtcd{} }
	issuer := func(r *v1alpha1.ClusterRegistry) { r.Spec.TLS.IssuerRef = &v1alpha1.IssuerReference{} }
	for _, test := range []struct {
		reason, args string
		registry     *v1alpha1.ClusterRegistry
		code         int
		sets, says   string // says is of the plan, or of the error
	}{
		{"of servers", "serving fleet --yes", fleet(3), 0, `{"serving":2}`, "both CAs are published in the APIService"},
		{"of servers, again", "serving fleet --yes", fleet(3, asked(v1alpha1.Rotation{Serving: 2}), signs("fleet-serving-ca-2", 2)), 0, `{"serving":3}`, "from generation 2 to 3"},
		{"of servers, under way", "serving fleet --yes", fleet(3, asked(v1alpha1.Rotation{Serving: 2}), signs("fleet-serving-ca", 1)), 3, "", "the rotation of the serving CA of registries/fleet to generation 2 is under way"},
		{"of servers, Independent", "serving fleet --yes", fleet(3, independent), 0, `{"serving":2}`, "the operator stops there: give that to clients again, and set spec.tls.rotation.drop.serving to 1"},
		{"of servers, with an issuer", "serving fleet --yes", fleet(3, issuer), 3, "", "spec.tls.issuerRef"},
		{"of clients", "client fleet --yes", fleet(3, independent), 0, `{"client":2}`, "Clients notice: with drop, those who have a certificate of the previous CA can't sign in"},
		{"of clients, not dropped", "client fleet --yes", fleet(3, independent, asked(v1alpha1.Rotation{Client: 2}), signs("fleet-client-ca-2", 2)), 3, "", "set spec.tls.rotation.drop.client to 1"},
		{"of clients, dropped", "client fleet --yes", fleet(3, independent, asked(v1alpha1.Rotation{Client: 2, Drop: v1alpha1.RotationDrop{Client: 1}}), signs("fleet-client-ca-2", 2)), 0, `{"client":3}`, ""},
		{"of clients, Aggregated", "client fleet --yes", fleet(3), 3, "", "has no CA of clients"},
		{"of servers, whose next one is lost", "serving fleet --yes", fleet(3, independent, asked(v1alpha1.Rotation{Serving: 2}), signs("fleet-serving-ca", 1), lost("fleet-serving-ca-2")), 0, `{"serving":3}`, "from generation 1 to 3"},
		{"of servers, whose next one is lost, dropped before", "serving fleet --yes", fleet(3, independent, asked(v1alpha1.Rotation{Serving: 2, Drop: v1alpha1.RotationDrop{Serving: 1}}), signs("fleet-serving-ca", 1), lost("fleet-serving-ca-2")), 0, `{"drop":{"serving":null},"serving":3}`, "in the place of generation 2, whose key is lost: if there is a backup of Secret fleet-serving-ca-2, restore that instead"},
		{"of servers, whose next one waits", "serving fleet --yes", fleet(3, independent, asked(v1alpha1.Rotation{Serving: 2}), signs("fleet-serving-ca", 1), trusted("fleet-serving-ca-2", 2)), 3, "", "set spec.tls.rotation.drop.serving to 1"},
		{"of clients, whose next one is lost", "client fleet --yes", fleet(3, independent, asked(v1alpha1.Rotation{Client: 2, Drop: v1alpha1.RotationDrop{Client: 1}}), signs("fleet-client-ca", 1), lost("fleet-client-ca-2")), 0, `{"client":3}`, "set spec.tls.rotation.drop.client to 2"},
		{"of etcd", "etcd fleet --yes", fleet(3), 0, `{"etcd":2}`, "replaced, one at a time, by such as trust both CAs"},
		{"of etcd, Independent", "etcd --yes", fleet(3, independent, asked(v1alpha1.Rotation{Etcd: 3}), signs("fleet-etcd-ca-3", 3)), 0, `{"etcd":4}`, "Clients notice nothing"},
		{"of etcd with a single member", "etcd fleet --yes", fleet(1), 0, `{"etcd":2}`, "the registry is not available for some seconds, twice"},
		{"of an external etcd", "etcd fleet --yes", fleet(3, external), 3, "", "is external"},
		{"of another CA", "root fleet --yes", fleet(3), 2, "", `there is no CA "root" that can be rotated: there are etcd and serving and client`},
		{"not confirmed", "etcd fleet", fleet(3), 3, "", "use --yes"},
		{"only tried", "etcd fleet --dry-run=client", fleet(3), 0, "", "It sets spec.tls.rotation.etcd=2, which can't be lowered"},
	} {
		env := environment(t, test.registry)
		text, code := env.Run(t, NewRotate(env.Env), strings.Fields(test.args)...)
		sets := ""
		for _, action := range env.Objects.Actions() {
			patch, is := action.(clienttesting.PatchAction)
			if !is {
				continue
			}
			var body struct {
				Metadata struct{ ResourceVersion string }
				Spec     struct {
					TLS struct{ Rotation json.RawMessage }
				}
			}
			if err := json.Unmarshal(patch.GetPatch(), &body); err != nil || body.Metadata.ResourceVersion != "7" {
				t.Errorf("%s: it sends %s: %v", test.reason, patch.GetPatch(), err)
			}
			sets = string(body.Spec.TLS.Rotation)
		}
		if code != test.code || sets != test.sets || !strings.Contains(env.Stderr.String()+text, test.says) {
			t.Errorf("%s: exit code %d, sets %q, says %s%s", test.reason, code, sets, env.Stderr, text)
		}
	}
}
