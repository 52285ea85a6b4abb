package clusterapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/internal/contract"
)

// Why a Cluster is held: reasons of events.
const (
	HeldInvalidName = "InvalidName"
	HeldNameTaken   = "NameTaken"
	HeldHostCluster = "HostCluster"
	HeldRefused     = "EntryRefused"
	// HeldUndecodable means that no more than the metadata of the Cluster is known.
	HeldUndecodable = "Undecodable"
	// HeldIncomplete means that there is an entry, without what can't be used.
	HeldIncomplete = "EntryIncomplete"
)

const (
	// persistent is how many attempts in a row must fail before that is told.
	persistent = 3
	// stubborn is the same for conflicts.
	stubborn = 8
	// shown is how many problems of a kind the state of the function names.
	shown = 3
	// calm is the shortest time between two states.
	calm = time.Second
	// maxNote is what an event takes, in bytes.
	maxNote = 1024
)

// hold is why a Cluster is not imported, or not fully, for a person to resolve.
type hold struct {
	// uid is that of the Cluster, and name that of the entry that it would get.
	uid             types.UID
	name            string
	reason, message string
}

// hold holds a Cluster, and says so in an event when that is new.
func (c *Controller) hold(ctx context.Context, source *clusterv1.Cluster, h hold) {
	key := keyOf(source)
	h.uid = source.UID
	c.mu.Lock()
	before := c.holds[key]
	c.forget(key)
	c.holds[key] = h
	if c.waiting[h.name] == nil {
		c.waiting[h.name] = map[types.NamespacedName]bool{}
	}
	c.waiting[h.name][key] = true
	c.mu.Unlock()
	if before == h {
		return
	}
	klog.InfoS("A Cluster of Cluster API is held", "cluster", key, "reason", h.reason, "message", h.message)
	c.dirty()
	c.event(ctx, key, h)
}

// release forgets that a Cluster is held.
func (c *Controller) release(key types.NamespacedName) {
	c.mu.Lock()
	_, held := c.holds[key]
	c.forget(key)
	c.mu.Unlock()
	if held {
		c.dirty()
	}
}

// forget drops what is known of a held Cluster. The caller has the lock.
func (c *Controller) forget(key types.NamespacedName) {
	name := c.holds[key].name
	delete(c.holds, key)
	if delete(c.waiting[name], key); len(c.waiting[name]) == 0 {
		delete(c.waiting, name)
	}
}

func (c *Controller) held() map[types.NamespacedName]hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.holds)
}

// event says that a Cluster is held in an event about the registry, in its namespace: the
// namespace of the Cluster gives no right to write. Its name follows from what it says, so
// that each start doesn't make another one.
func (c *Controller) event(ctx context.Context, key types.NamespacedName, h hold) {
	sum := sha256.Sum256([]byte(key.String() + "/" + string(h.uid) + "/" + h.reason + "/" + h.message))
	note := fmt.Sprintf("Cluster %s of Cluster API: %s", key, h.message)
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "")
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Registry + "." + hex.EncodeToString(sum[:8])},
		EventTime:  metav1.NewMicroTime(c.Clock.Now()), ReportingController: Manager, ReportingInstance: Manager,
		Action: "Import", Reason: h.reason, Type: corev1.EventTypeWarning, Note: note,
		Regarding: corev1.ObjectReference{APIVersion: "operator.clusterregistry.io/v1alpha1", Kind: "ClusterRegistry", Namespace: c.Namespace, Name: c.Registry},
	}
	_, err := c.Host.EventsV1().Events(c.Namespace).Create(ctx, event, metav1.CreateOptions{FieldManager: Manager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		klog.ErrorS(err, "An event about a held Cluster could not be written", "cluster", key)
	}
}

// note remembers how work on a Cluster went, and has it done again if it failed.
func (c *Controller) note(ctx context.Context, key types.NamespacedName, err error) {
	if err == nil || ctx.Err() != nil {
		c.queue.Forget(key)
		c.mu.Lock()
		_, failed := c.failing[key]
		delete(c.failing, key)
		c.mu.Unlock()
		if failed {
			c.dirty()
		}
		return
	}
	c.queue.AddRateLimited(key)
	attempts := persistent
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		attempts = stubborn // most likely what is known is not the newest yet
	}
	if c.queue.NumRequeues(key) < attempts {
		return
	}
	klog.ErrorS(err, "A Cluster of Cluster API could not be brought into the registry", "cluster", key)
	c.mu.Lock()
	c.failing[key] = err
	c.mu.Unlock()
	c.dirty()
}

// dirty has the state of the function judged again.
func (c *Controller) dirty() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// judge says how the function is, when that changes, until ctx ends.
func (c *Controller) judge(ctx context.Context) {
	for {
		c.Say(c.state())
		c.measure()
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		case <-c.Clock.After(c.Period): // whether the registry can be watched, no event tells
		}
		select {
		case <-ctx.Done():
			return
		case <-c.Clock.After(calm):
		}
	}
}

// gravity orders states: the gravest of several problems is the function's.
var gravity = []contract.FunctionState{contract.FunctionFailing, contract.FunctionRefused, contract.FunctionStarting, contract.FunctionRunning}

// state sums up all problems. A Cluster that is held is none of the function's, which still
// runs: anyone who may make Clusters can make one whose name is taken.
func (c *Controller) state() (contract.FunctionState, string) {
	var problems []trouble
	if c.Unwatched != nil {
		if err := c.Unwatched(); err != nil {
			problems = append(problems, trouble{state: contract.FunctionFailing, message: fmt.Sprintf("Clusters of the registry can't be watched: %v.", err)})
		}
	}
	var known []string
	for _, name := range c.Namespaces {
		is := c.namespaces[name].problem()
		if is.message != "" && !slices.Contains(known, is.message) {
			problems, known = append(problems, is), append(known, is.message)
		}
	}
	c.mu.Lock()
	problems = append(problems, summary(c.failing, contract.FunctionFailing, "can't be brought into the registry", error.Error)...)
	problems = append(problems, summary(c.holds, contract.FunctionRunning, "held", func(h hold) string { return h.message })...)
	c.mu.Unlock()
	for _, state := range gravity {
		if !slices.ContainsFunc(problems, func(t trouble) bool { return t.state == state }) {
			continue
		}
		slices.SortStableFunc(problems, func(a, b trouble) int { return slices.Index(gravity, a.state) - slices.Index(gravity, b.state) })
		var texts []string
		for _, problem := range problems {
			texts = append(texts, problem.message)
		}
		return state, strings.Join(texts, " ")
	}
	return contract.FunctionRunning, ""
}

// summary is one problem for all Clusters that have it; it names the first few.
func summary[T any](of map[types.NamespacedName]T, state contract.FunctionState, what string, text func(T) string) []trouble {
	if len(of) == 0 {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(of), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	var texts []string
	for _, key := range keys[:min(shown, len(keys))] {
		texts = append(texts, fmt.Sprintf("%s: %s", key, short(text(of[key]))))
	}
	if len(keys) > shown {
		texts = append(texts, fmt.Sprintf("and %d more", len(keys)-shown))
	}
	return []trouble{{state: state, message: fmt.Sprintf("%d Clusters %s: %s.", len(keys), what, strings.Join(texts, "; "))}}
}
