package membership

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/etcd/plan"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/snapshot"
	"github.com/clusterregistry/operator/operator/verdict"
)

// world is a registry in a host cluster whose controllers, kubelet and etcd are played.
type world struct {
	t       *testing.T
	objects *operand.Objects
	// host is the host cluster; the operator's own client has less of its objects.
	host client.WithWatch
	// list is etcd's own, and data has the ID of the member whose data a claim has, by the
	// UID of the claim.
	list []etcd.Listed
	data map[string]string
	// dead are members that do not answer, and lost says what their guard ends with.
	dead map[string]bool
	exit map[string]int32
	// corrupt is the name of the member with other data, and alarms are those that are raised.
	corrupt string
	// healed is true where it is found to have the same data when that is asked again.
	healed bool
	alarms []etcd.Alarm
	// did are the changes of etcd, the snapshots and the phases, in their order.
	did    []string
	refuse error // what etcd answers to changes
	// differs is what comes of comparing the members' data.
	differs error
	uid     int
	lastID  int
	// class is the StorageClass of new claims, which forced is whatever is asked for, and
	// recreated counts how often the StatefulSet was made again.
	class, forced string
	// unprovisioned is the StorageClass that makes no volumes.
	unprovisioned string
	recreated     int
}

// statefulSet returns that of etcd, which makes claims of a StorageClass.
func statefulSet(class string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd", Labels: map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: "fleet"}},
		Spec: appsv1.StatefulSetSpec{Replicas: new(int32(1)), VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}}}}}
}

// newWorld returns a registry whose etcd has so many members.
func newWorld(t *testing.T, members int) *world {
	t.Helper()
	w := &world{t: t, data: map[string]string{}, dead: map[string]bool{}, exit: map[string]int32{}, lastID: 0xa0}
	deployment, _ := operandtest.Servers(2)
	set := statefulSet("slow")
	set.UID = "set"
	objects := []client.Object{set, deployment}
	for _, suffix := range []string{contract.EtcdServerSuffix, contract.EtcdPeerSuffix} {
		objects = append(objects, operandtest.Secret("fleet"+suffix, certificate(t)))
	}
	for i := range Most {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{corev1.LabelHostname: fmt.Sprintf("n%d", i), corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}}})
	}
	w.objects = operandtest.New(t, fmt.Sprintf("{spec: {version: v0.4.0, mode: Aggregated, etcd: {replicas: %d}}, status: {version: v0.4.0, inventory: [{kind: ConfigMap, namespace: team, name: fleet-etcd-identity}]%s}}", members, operandtest.Complete), objects...)
	w.host = interceptor.NewClient(w.objects.Client.(client.WithWatch), interceptor.Funcs{SubResourceCreate: func(ctx context.Context, c client.Client, sub string, object, eviction client.Object, _ ...client.SubResourceCreateOption) error {
		if _, is := eviction.(*policyv1.Eviction); !is {
			return fmt.Errorf("%s is created", sub)
		}
		return c.Delete(ctx, object)
	}})
	w.objects.Client, w.objects.Live, w.objects.Applier = cached(w.host), w.host, apply.New(w.host, w.host)
	record := &etcd.Record{InitialClusterState: contract.StateExisting, Replicas: int32(members), Target: int32(members), Claimed: int32(members), Endpoints: int32(members), CA: "f",
		Identity: etcd.Identity{ClusterID: "c", Members: map[string]string{}}}
	for i := range members {
		w.lastID++
		id := strconv.FormatInt(int64(w.lastID), 16)
		record.Members[w.name(i)] = id
		w.list = append(w.list, etcd.Listed{ID: id, Name: w.name(i), PeerURLs: []string{w.peer(i)}})
	}
	for i := range Most {
		w.objects.Registry.Status.Etcd.Members = append(w.objects.Registry.Status.Etcd.Members, operatorv1alpha1.EtcdMember{Name: w.name(i)})
	}
	if err := identity.New(w.objects).Write(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	w.tick()
	for i := range members {
		w.data[w.claim(i)] = record.Members[w.name(i)]
	}
	return w
}

// cached returns a client that reads what the operator's cache has of objects.
func cached(host client.WithWatch) client.Client {
	onlyRead := informers.Options(nil).DefaultTransform
	strip := func(object runtime.Object) error {
		left, err := onlyRead(object)
		if err == nil {
			reflect.ValueOf(object).Elem().Set(reflect.ValueOf(left).Elem())
		}
		return err
	}
	return interceptor.NewClient(host, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := c.Get(ctx, key, object, options...); err != nil {
				return err
			}
			return strip(object)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := c.List(ctx, list, options...); err != nil {
				return err
			}
			return meta.EachListItem(list, strip)
		},
	})
}

// certificate returns one with the names of all members that there can be.
func certificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	for i := range Most {
		template.DNSNames = append(template.DNSNames, fmt.Sprintf("fleet-etcd-%d.fleet-etcd.team.svc", i))
	}
	der, certErr := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err := errors.Join(err, certErr); err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func (w *world) name(ordinal int) string { return contract.EtcdMember("fleet", ordinal) }

func (w *world) peer(ordinal int) string {
	return "https://" + w.name(ordinal) + ".fleet-etcd.team.svc:2380"
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// holds reports whether a member of etcd's list runs with its data.
func (w *world) holds(l etcd.Listed) bool {
	ordinal := slices.IndexFunc([]int{0, 1, 2, 3, 4}, func(o int) bool { return l.PeerURLs[0] == w.peer(o) })
	return l.Name != "" && !w.dead[l.Name] && w.data[w.claim(ordinal)] == l.ID
}

// state returns what etcd says: without a majority of its voters, no member has a leader.
func (w *world) state() etcd.State {
	s := w.asked()
	var voters []string
	left := 0
	for _, l := range w.list {
		if l.Learner {
			continue
		}
		if voters = append(voters, l.ID); w.holds(l) {
			left++
		}
	}
	if left > len(voters)/2 {
		return s
	}
	s.List, s.ListErr = nil, errors.New("no member answers that has a leader")
	for i := range s.Members {
		if m := &s.Members[i]; m.ID != "" {
			m.Leader, m.Voters, m.Revision, m.Err = "", voters, 100+int64(i), errors.New("it has no leader")
		}
	}
	return s
}

// asked returns what members say while a majority agrees.
func (w *world) asked() etcd.State {
	s := etcd.State{List: slices.Clone(w.list), Alarms: w.alarms}
	for ordinal := range Most {
		i := slices.IndexFunc(w.list, func(l etcd.Listed) bool { return l.PeerURLs[0] == w.peer(ordinal) })
		m := etcd.Member{Name: w.name(ordinal), Err: errors.New("it does not answer")}
		if i >= 0 && w.holds(w.list[i]) {
			m = etcd.Member{Name: m.Name, ID: w.list[i].ID, ClusterID: "c", Leader: w.list[0].ID, Learner: w.list[i].Learner, AppliedIndex: 100, CommittedIndex: 100}
			if m.Learner || len(w.alarms) > 0 {
				m.Err = errors.New("it answers no reads")
			}
		}
		s.Members = append(s.Members, m)
	}
	return s
}

func join(parts []string) string {
	out := ""
	for i, part := range parts {
		if i > 0 {
			out += ","
		}
		out += part
	}
	return out
}

// reconcile takes one step, as an operator that was started just now does, and returns what
// it says. It is done when nothing is left to do.
func (w *world) reconcile() (said string, done bool) {
	w.t.Helper()
	w.objects.Before = *w.objects.Registry.Status.DeepCopy()
	change := &Change{Objects: w.objects, Identity: identity.Read(w.t.Context(), w.objects), State: w.state(), Etcd: w, TakeSnapshot: func(_ context.Context, name string) (snapshot.Saved, verdict.Verdict) {
		return snapshot.Saved{Name: name, CompletionTime: w.objects.Now}, verdict.Verdict{Err: w.note("snapshot")}
	}}
	set := operandtest.Rendered(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "fleet-etcd")
	operandtest.RenderServers(w.objects)
	w.objects.Rendered.Stages[render.StageEtcd] = []*unstructured.Unstructured{set}
	step, v := change.Next(w.t.Context())
	status := &w.objects.Registry.Status
	switch {
	case !v.Complete():
	case operation.ChangesMembers(status.Operation):
		driver := operation.Driver{Status: status.Operation, Recorded: w.objects.Before.Operation, Now: w.objects.Now}
		next, progress := driver.Advance(w.t.Context(), Handler{change, step})
		if v = next; progress != operation.UnderWay {
			status.Operation = nil
		}
	case step.Action == plan.Done:
		return "", change.Within() == 0
	case step.Action == plan.Wait || step.Action == plan.Hold || step.Action == plan.ReleaseVolume || step.Action == plan.RecreateSet:
		v = change.Act(w.t.Context(), step)
	default:
		status.Operation = change.Begin(step)
	}
	if v.Err != nil {
		w.t.Fatal(v.Err)
	}
	w.objects.Now = w.objects.Now.Add(time.Second)
	w.tick()
	return v.Message, false
}

// settle reconciles until nothing is left to do, and returns the phases.
func (w *world) settle() (phases []string) {
	w.t.Helper()
	const limit = 200
	last := ""
	for range limit {
		said, done := w.reconcile()
		if done {
			return phases
		}
		last = said
		if o := w.objects.Registry.Status.Operation; o != nil {
			if at := string(o.Type) + " " + string(o.Phase); len(phases) == 0 || phases[len(phases)-1] != at {
				phases = append(phases, at)
			}
		}
	}
	w.t.Fatalf("it never ends: %s\n%v\n%v", last, w.did, phases)
	return nil
}
