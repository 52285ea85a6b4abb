package integration

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// testHealthy reads what is reported when nothing has happened yet.
func (w *watched) testHealthy(t *testing.T) {
	for _, name := range fleetNames {
		c := w.awaitWell(t, name)
		identity, version := "Unknown NotVerified", newest
		if m := w.members[name]; m != nil {
			identity = "True Joined"
			w.expectExpiry(t, name, expiryOf(t, m.serving.Cert))
		}
		if !strings.HasSuffix(summary(c), ", "+identity) || c.Status.Version.Kubernetes != version {
			t.Errorf("%s is %s, with version %q; want %s, %q", name, summary(c), c.Status.Version.Kubernetes, identity, version)
		}
		for _, condition := range c.Status.Conditions {
			if at := condition.LastTransitionTime.Time; at.Before(w.began) || at.After(time.Now()) {
				t.Errorf("%s of %s has the time %s", condition.Type, name, condition.LastTransitionTime)
			}
		}
	}
	if message := conditionOf(w.awaitWell(t, "west"), "ControlPlaneHealthy").Message; !strings.Contains(message, "/readyz answers 401") {
		t.Errorf("it says of the west: %s", message)
	}
	w.awaitFunction(t, contract.FunctionRunning, "")
}

// expiryOf returns when the certificate in a file expires, as the registry's API writes it.
func expiryOf(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		t.Fatalf("%s is not PEM", file)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate.NotAfter.UTC().Format(time.RFC3339)
}

// expectExpiry compares when the serving certificate of a cluster expires.
func (w *watched) expectExpiry(t *testing.T, name, want string) {
	t.Helper()
	c, err := w.clusters.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, property := range c.Status.Properties {
		if property.Name == "clusterregistry.k8s.io/serving-certificate-expires" {
			if property.Value != want {
				t.Errorf("the certificate of %s expires at %s, and the registry has %s", name, want, property.Value)
			}
			return
		}
	}
	t.Errorf("the registry doesn't have when the certificate of %s expires", name)
}

// testCertificates has the certificate of a member expire, and then be one of another CA.
func (w *watched) testCertificates(t *testing.T) {
	east, since := w.members["east"], time.Now()
	expired := east.ca.IssueExpired("east", nil, serverName)
	east.serving.Replace(expired)
	w.awaitDown(t, "east", "CertificateExpired", since, 0, east.address, "expired at "+expiryOf(t, expired.Cert)+".")
	if _, text := w.join(t, east, 1); !strings.Contains(text, "its certificate has expired") {
		t.Errorf("join says %s", text)
	}
	east.serving.Replace(east.ca.Issue("east", nil, serverName))
	w.awaitWell(t, "east")

	since = time.Now()
	old, other := east.ca, framework.NewAuthority(t, "another-ca")
	stranger := other.Issue("east", nil, serverName)
	east.serving.Replace(stranger)
	w.awaitDown(t, "east", "CertificateUntrusted", since, 0, fingerprintOf(t, stranger.Cert), fingerprintOf(t, old.File))
	if _, text := w.join(t, east, 1); !strings.Contains(text, "its certificate is not signed by the CA in the kubeconfig") {
		t.Errorf("join says %s", text)
	}
	east.ca = other
	w.expectJoined(t, east, "cluster.clusterregistry.k8s.io/east configured\n", "")
}

// expectJoined joins a member again whose endpoint has changed, and waits until that is
// reached and its identity verified.
func (w *watched) expectJoined(t *testing.T, m *fleetMember, stdout, stderr string) {
	t.Helper()
	before, err := w.clusters.Get(t.Context(), m.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if out, text := w.join(t, m, 0); out != stdout || !strings.Contains(text, stderr) || strings.Contains(text, "note:") {
		t.Errorf("join prints %s%s", out, text)
	}
	after := w.awaitWell(t, m.name)
	identity := conditionOf(after, "IdentityVerified")
	if identity.Status != metav1.ConditionTrue || identity.Reason != "Joined" || after.Generation != before.Generation+1 || identity.ObservedGeneration != after.Generation {
		t.Errorf("%s went from generation %d to %d, with %+v", m.name, before.Generation, after.Generation, identity)
	}
}

// testNotReady has an API server answer that it is not ready, since its etcd hangs.
func (w *watched) testNotReady(t *testing.T) {
	since := time.Now()
	resume := w.members["east"].PauseEtcd()
	c := w.await(t, "east", "True Reached", "False NotReady", "False NotReady")
	if message := conditionOf(c, "Available").Message; message != "/readyz answers 500: the API server is not ready." {
		t.Errorf("it says %s", message)
	}
	resume()
	w.awaitWell(t, "east")
	for _, s := range w.timeline.of(t, "east", since) {
		// A busy server may answer later than counts.
		if reached := conditionOf(s.cluster, "Reachable"); reached.Status != metav1.ConditionTrue && reached.Reason != "TimedOut" {
			t.Errorf("meanwhile it was %s", summary(s.cluster))
		}
	}
}

// testAnotherAddress moves a member to another address, and cuts another one off for
// less time than counts.
func (w *watched) testAnotherAddress(t *testing.T) {
	west, since := w.members["west"], time.Now()
	w.network.Unroute(west.address)
	brief := w.cutBriefly(t, "extra")
	w.awaitDown(t, "west", "NoRoute", since, 0, "no route to "+strings.TrimPrefix(west.url(t), "https://"))
	before := west.url(t)
	west.address = w.network.Address(44)
	w.expectJoined(t, west, "cluster.clusterregistry.k8s.io/west configured\n", "endpoint main: "+before+" -> "+west.url(t))
	w.timeline.expectQuiet(t, brief, "extra")
}

// cutBriefly cuts a cluster off for less time than counts, and returns since when.
func (w *watched) cutBriefly(t *testing.T, name string) time.Time {
	t.Helper()
	cluster, err := w.clusters.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const tries = 20
	for range tries {
		since := time.Now()
		w.network.Unroute(addressOf(cluster))
		sleep(t.Context(), healthPeriod) // one probe fails, or two
		w.network.Route(addressOf(cluster))
		took := time.Since(since)
		if took < 2*healthPeriod {
			return since
		}
		t.Logf("%s was cut off for %s, which may count: the machine is busy", name, took)
		sleep(t.Context(), 4*healthPeriod)
		w.awaitWell(t, name)
	}
	t.Fatalf("%s was never cut off for less than %s in %d tries", name, 2*healthPeriod, tries)
	return time.Time{}
}

// addressOf returns the address of a cluster's endpoint, without the port.
func addressOf(cluster *v1beta1.Cluster) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(cluster.Spec.Endpoints[0].URL, "https://"), ":")
	return host
}

// silence is a member that hangs, and one whose packets are lost.
type silence struct {
	since  time.Time
	lost   string
	resume func()
}

func (w *watched) beginSilence() silence {
	w.t.Helper()
	lost, err := w.clusters.Get(w.t.Context(), "lost", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	out := silence{since: time.Now(), lost: addressOf(lost)}
	w.network.Lose(out.lost)
	out.resume = w.members["south"].Pause()
	return out
}

// testSilence expects that both are reported, and then brings them back.
func (w *watched) testSilence(t *testing.T, s silence) {
	for name, address := range map[string]string{"south": w.members["south"].address, "lost": s.lost} {
		w.awaitDown(t, name, "TimedOut", s.since, probeTimeout, address, "does not answer within 10s")
	}
	s.resume()
	w.network.Find(s.lost)
	for _, name := range []string{"south", "lost"} {
		w.awaitWell(t, name)
	}
}

// testKilled stops a member, and kills the controller while that is down: the one that
// takes over starts counting again, and writes nothing of what has not changed.
func (w *watched) testKilled(t *testing.T) {
	south, since := w.members["south"], time.Now()
	south.Kill()
	w.awaitDown(t, "south", "ConnectionRefused", since, 0, south.address, "refuses connections")
	since = time.Now()
	w.controller.Kill()
	w.controller = w.start()
	// A cluster that turns False says that the new one has probed all others three times.
	clock := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "clock"}, Spec: v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://" + w.network.Address(1) + ":1"}}}}
	if _, err := w.clusters.Create(t.Context(), clock, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(t, "clock", "False ConnectionRefused", "Unknown Unreachable", "False ConnectionRefused")
	w.timeline.expectQuiet(t, since, fleetNames...)
	south.Restart()
	w.awaitWell(t, "south")
	if err := w.clusters.Delete(t.Context(), "clock", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// testIsolated cuts off more than half of the clusters: nothing turns False then. One that
// stays cut off does when the others are back.
func (w *watched) testIsolated(t *testing.T) {
	cut := []string{"south", "east", "west", "spare"}
	var addresses []string
	for _, name := range cut {
		c, err := w.clusters.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, addressOf(c))
	}
	since := time.Now()
	w.network.Unroute(addresses...)
	w.awaitFunction(t, contract.FunctionIsolated, "More than half")
	sleep(t.Context(), 4*healthPeriod)
	w.timeline.expectQuiet(t, since, fleetNames...)
	since = time.Now()
	w.network.Route(addresses[1:]...)
	w.awaitFunction(t, contract.FunctionRunning, "")
	w.awaitDown(t, "south", "NoRoute", since, 0, addresses[0])
	w.network.Route(addresses[0])
	for _, name := range fleetNames {
		w.awaitWell(t, name)
	}
}
