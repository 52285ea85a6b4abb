package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// faults are how likely it is, in percent, that something goes wrong.
type faults struct {
	// kill is for the operator, at one of its writes, before or after that took effect.
	kill int
	// lost is for a write, of which the request or the answer gets lost, and conflict for one
	// that someone else comes before.
	lost, conflict int
	// read is for a read that fails.
	read int
	// late is for the changes of a kind, which are not delivered for a while.
	late int
}

// world is a host cluster with one registry, team/fleet.
type world struct {
	t      *testing.T
	random *rand.Rand
	faults faults
	host   *host
	// operator is the one that runs, nil while none does.
	operator *operator
	// starts is when the next one starts.
	starts time.Time
	etcd   *cluster
	// version is the release that the registry begins with, and mode its mode.
	version, mode string
	// disks are those of the PersistentVolumes, and pods what runs in pods, by their UIDs.
	disks map[string]*disk
	pods  map[string]*process
	// saved has what members had that was lost, by their names.
	saved map[string]disk
	// backups are those in the store, by their names, and storeAway is true while no one reaches it.
	backups   map[string]contract.BackupReport
	storeAway bool
	// certManagerAway is true while cert-manager's webhook does not answer.
	certManagerAway bool
	// writes is true while clients write, acked is the newest revision that they were told.
	writes bool
	acked  int64
	// accepted is true once a person has accepted that what was acknowledged may be lost, and lost
	// is what etcd has lost, nil for nothing.
	accepted bool
	lost     *loss
	// deleted are the claims that a person has deleted, and when, and shrinks is how many members a
	// person wants again who had to have more, zero for none.
	deleted map[types.UID]time.Time
	shrinks int32
	// decided is when a person decided last with what etcd continues.
	decided time.Time
	// silent is when a server answered last, or no one was led to servers.
	silent time.Time
	// broken is what was found to be wrong where a test can't fail.
	broken string
	// nameless is true while DNS answers nothing, and outages is how often the power was cut.
	nameless bool
	outages  int
	// trace is all that happened, written counts the operator's writes, and changed those that
	// changed something other than a status.
	trace            []string
	written, changed int
	// checked is the revision of the host cluster that was held last to what must be true, and
	// verified has the certificates that were trusted.
	checked  int
	verified verified
	// requests are how often the operator has asked for what, of the host cluster and others.
	// It asks several at once.
	requests struct {
		sync.Mutex
		of map[string]int
	}
}

// live lives a life of a registry by a seed.
func live(t *testing.T, seed uint64, life func(*world)) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed)
		defer func() {
			if t.Failed() {
				told := w.told()
				t.Logf("seed %d; the last of what happened:\n%s", seed, strings.Join(told[max(0, len(told)-120):], "\n"))
			}
			w.end()
		}()
		life(w)
	})
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), host: newHost(), disks: map[string]*disk{}, pods: map[string]*process{}, saved: map[string]disk{}, deleted: map[types.UID]time.Time{}, backups: map[string]contract.BackupReport{}, etcd: &cluster{}, version: "v0.2.0", mode: string(operatorv1alpha1.ModeAggregated)}
	w.host.refuses = func(key id) error {
		if w.certManagerAway && key.kind.Group == "cert-manager.io" {
			return apierrors.NewInternalError(errors.New("failed calling webhook: connection refused"))
		}
		return nil
	}
	for _, name := range []string{"team", "kube-system"} {
		w.make("v1", "Namespace", "", name, nil)
	}
	w.make("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "certificates.cert-manager.io", nil)
	for _, name := range []string{"standard", "faster"} {
		w.make("storage.k8s.io/v1", "StorageClass", "", name, map[string]any{"provisioner": "disks"})
	}
	for i := range nodes {
		w.make("v1", "Node", "", fmt.Sprintf("n%d", i), map[string]any{"metadata": map[string]any{"labels": map[string]any{
			"kubernetes.io/hostname": fmt.Sprintf("n%d", i), "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}})
	}
	return w
}

// nodes is how many there are.
const nodes = 5

// make stores an object of someone else's than the operator.
func (w *world) make(version, kind, namespace, name string, content map[string]any) *stored {
	tree := &unstructured.Unstructured{Object: map[string]any{}}
	if content != nil {
		tree.Object = content
	}
	tree.SetAPIVersion(version)
	tree.SetKind(kind)
	tree.SetNamespace(namespace)
	tree.SetName(name)
	made, err := w.host.create(tree)
	if err != nil {
		w.t.Fatalf("make %s %s: %v", kind, name, err)
	}
	return made
}

// fails notes that something is not as it must be.
func (w *world) fails(format string, args ...any) {
	w.t.Helper()
	w.note("FAILS: "+format, args...)
	w.t.Fatalf(format, args...)
}

// note notes what happens.
func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%s ", time.Since(epoch).Round(time.Second))+fmt.Sprintf(format, args...))
}

// told is what happened, without reconciles that did nothing.
func (w *world) told() (out []string) {
	for i, line := range w.trace {
		if idle := i+1 < len(w.trace) && strings.HasSuffix(line, reconciles) && strings.HasSuffix(w.trace[i+1], reconciles); !idle {
			out = append(out, line)
		}
	}
	return out
}

// reconciles is what is noted of a reconcile that begins.
const reconciles = " reconcile"

// epoch is when every life begins: synctest's.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// asked notes that the operator has asked for something.
func (w *world) asked(what string) {
	w.requests.Lock()
	defer w.requests.Unlock()
	if w.requests.of == nil {
		w.requests.of = map[string]int{}
	}
	w.requests.of[what]++
}

// chance is true as often as that, in percent.
func (w *world) chance(percent int) bool { return w.random.IntN(100) < percent }

// errLost is the error of a request without an answer.
var errLost = apierrors.NewTimeoutError("the answer got lost", 1)

// readFails returns the error of a read that fails.
func (w *world) readFails() error {
	if w.faults.read > 0 && w.chance(w.faults.read) {
		return errLost
	}
	return nil
}

// killed is what an operator panics with that is killed at a write.
type killed struct{}

// write makes a write of the operator, or has it fail.
func (w *world) write(verb string, key id, do func() error) error {
	w.written++
	w.asked(verb + " " + key.kind.Kind)
	w.checkWrite(verb, key)
	do = w.counts(verb, do)
	switch {
	case w.chance(w.faults.kill):
		if w.chance(50) {
			w.note("  %s %s: %v", verb, key, do())
		}
		w.note("  the operator is killed at %s %s", verb, key)
		panic(killed{})
	case w.chance(w.faults.lost):
		if w.chance(50) {
			w.note("  %s %s: %v, and the answer is lost", verb, key, do())
		}
		return errLost
	case w.chance(w.faults.conflict):
		return conflict(key, "someone else was faster")
	}
	err := do()
	if err != nil {
		w.note("  %s %s: %v", verb, key, err)
	} else {
		w.note("  %s %s", verb, key)
	}
	return err
}

// counts has a write be counted where it changes something other than a status.
func (w *world) counts(verb string, do func() error) func() error {
	return func() error {
		before := w.host.revision
		err := do()
		if w.host.revision != before && verb != "patch status" {
			w.changed++
		}
		return err
	}
}

// step lets all that there is act once, and some time pass.
func (w *world) step() {
	w.act()
	w.check()
	w.operate()
	w.check()
	time.Sleep(time.Duration(500+w.random.IntN(2500)) * time.Millisecond)
}

// act lets the host cluster's controllers and kubelets, etcd and its clients act, in any order.
func (w *world) act() {
	actors := []func(){w.collect, w.issue, w.runSet, w.runDeployment, w.runJobs, w.bind, w.runPods, w.route, w.runEtcd}
	w.random.Shuffle(len(actors), func(i, j int) { actors[i], actors[j] = actors[j], actors[i] })
	for _, actor := range actors {
		if w.chance(80) {
			actor()
		}
	}
}

// end ends everything.
func (w *world) end() {
	for _, process := range w.pods {
		process.stop()
	}
}
