package framework

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
)

// Life is what one cluster goes through under load, and what of it was
// acknowledged.
type Life struct {
	Name string
	// Acknowledged is the cluster as the server last confirmed it; nil when it
	// is deleted, or not created yet.
	Acknowledged *v1alpha1.Cluster
	// Writes counts the acknowledged writes.
	Writes int
	// InDoubt is true when a write failed, of which nobody knows whether it was
	// applied. It was the last.
	InDoubt bool

	plan   []step
	step   int
	rounds int
	stays  bool
	// rewritten is true when others may store the cluster again, as it is.
	rewritten bool
	// history are the acknowledged writes, in their order.
	history []write
}

// write is a write of a cluster: what a watch calls it, and the version that it
// made. An answer to a deletion tells none; that is 0.
type write struct {
	kind    watch.EventType
	version uint64
}

// newLife returns a life that has not begun.
func newLife(name string, stays, rewritten bool) *Life {
	l := &Life{Name: name, plan: steps, stays: stays, rewritten: rewritten}
	if !stays {
		l.plan = slices.Concat(steps, ends)
	}
	return l
}

// again begins another round of a life that is at its end, but stays.
func (l *Life) again() {
	l.rounds++
	l.plan, l.step = round(l.rounds), 0
}

// next returns the life's next step, or false at its end.
func (l *Life) next() (step, bool) {
	if l.step >= len(l.plan) {
		return step{}, false
	}
	return l.plan[l.step], true
}

// took checks an answer to a step and takes it as what is so from now on.
func (l *Life) took(s step, status int, body []byte) error {
	what := fmt.Sprintf("%s %s%s, step %d", s.method, l.Name, s.suffix, l.step)
	if status != s.status {
		return fmt.Errorf("%s: status %d: %s", what, status, strings.TrimSpace(string(body)))
	}
	l.step++
	if s.writes() {
		l.Writes++
	}
	var err error
	switch {
	case s.page > 0:
		err = s.checkPage(body)
	case s.method == http.MethodDelete:
		l.Acknowledged = nil
		l.history = append(l.history, write{kind: watch.Deleted})
	case s.status != http.StatusNotFound:
		err = l.tookCluster(s, body)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// tookCluster is took for an answer with the cluster in it.
func (l *Life) tookCluster(s step, body []byte) error {
	got, err := s.parse(body)
	if err != nil {
		return fmt.Errorf("%w: %s", err, body)
	}
	before := l.Acknowledged
	l.Acknowledged = got
	if s.writes() {
		if err := l.record(got); err != nil {
			return err
		}
	}
	if before == nil {
		return nil
	}
	want := before.DeepCopy()
	if s.change != nil {
		s.change(want)
	}
	changed := got.ResourceVersion != before.ResourceVersion
	if changed != s.writes() && (!changed || !l.rewritten) {
		return fmt.Errorf("it went from version %s to %s", before.ResourceVersion, got.ResourceVersion)
	}
	return Same(want, got)
}

// record notes an acknowledged write for those who check watches.
func (l *Life) record(written *v1alpha1.Cluster) error {
	version, err := strconv.ParseUint(written.ResourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("it has no version: %w", err)
	}
	kind := watch.Modified
	if len(l.history) == 0 {
		kind = watch.Added
	}
	l.history = append(l.history, write{kind, version})
	return nil
}

// conflicted takes the answer to a read after a conflict: the cluster must be as
// it was acknowledged, in another version.
func (l *Life) conflicted(status int, body []byte) error {
	if status != http.StatusOK {
		return fmt.Errorf("after a conflict, GET %s: status %d: %s", l.Name, status, strings.TrimSpace(string(body)))
	}
	got := &v1alpha1.Cluster{}
	if err := json.Unmarshal(body, got); err != nil {
		return err
	}
	if got.ResourceVersion == l.Acknowledged.ResourceVersion {
		return fmt.Errorf("PUT %s conflicts, and nobody wrote since version %s", l.Name, got.ResourceVersion)
	}
	if err := Same(l.Acknowledged, got); err != nil {
		return fmt.Errorf("after a conflict: %w", err)
	}
	l.Acknowledged = got
	return nil
}

// survived returns what is lost of a life whose last write is in doubt, or nil:
// all before it must be there, unless it was the removal.
func (l *Life) survived(stored *v1alpha1.Cluster) error {
	if l.Acknowledged == nil {
		return nil
	}
	if stored == nil {
		if s, ok := l.next(); !ok || s.method != http.MethodDelete {
			return fmt.Errorf("the acknowledged cluster %s is lost", l.Name)
		}
		return nil
	}
	if stored.UID != l.Acknowledged.UID || stored.Generation < l.Acknowledged.Generation {
		return fmt.Errorf("cluster %s is %+v, which is not after %+v", l.Name, stored, l.Acknowledged)
	}
	return nil
}

// Same returns how two states of a cluster differ, or nil: in content, identity
// or the number of changes, but for their version.
func Same(want, got *v1alpha1.Cluster) error {
	if want.UID != got.UID || want.Generation != got.Generation || !apiequality.Semantic.DeepEqual(want.Labels, got.Labels) ||
		!apiequality.Semantic.DeepEqual(want.Spec, got.Spec) || !apiequality.Semantic.DeepEqual(want.Status, got.Status) {
		return fmt.Errorf("cluster %s is %+v, not %+v", want.Name, got, want)
	}
	return nil
}
