package clusterregistry

import (
	"errors"
	"fmt"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
)

const (
	// vigil is how often a registry is looked at when nothing happens: Secrets are
	// not watched, and nothing but etcd itself tells of its alarms.
	vigil = 2 * time.Minute
	// resync is how soon a stage is looked at again that waits for a person.
	resync = 10 * time.Minute
	// backstop is how soon a stage that waits is looked at again, in case that no
	// watch tells of it.
	backstop = 30 * time.Second
	// soon is for what no watch tells of.
	soon = 3 * time.Second
)

// hold is why a stage is not complete. It becomes a condition.
type hold struct {
	// reason and message are the condition's. The message names the object that
	// is awaited.
	reason, message string
	// after is when to look again at latest; zero means backstop.
	after time.Duration
	// impaired means that what the stage brings is there and serves, if not as
	// wanted, so that the next stage can go on.
	impaired bool
	// freeze means that nothing may be changed any more in later stages.
	freeze bool
	// err is an unexpected error, to be tried again.
	err error
}

func waitFor(reason, format string, args ...any) *hold {
	return &hold{reason: reason, message: fmt.Sprintf(format, args...)}
}

// failed is the hold of an unexpected error, or of an object in the way.
func failed(err error) *hold {
	var notOurs *apply.NotOurs
	if errors.As(err, &notOurs) {
		return &hold{reason: operatorv1alpha1.ReasonObjectInTheWay, message: err.Error()}
	}
	return &hold{reason: operatorv1alpha1.ReasonError, message: err.Error(), err: err}
}

// errReadOnly is the error of a change in a pass that may change nothing. Stages
// that only observe in such a pass never see it.
var errReadOnly = errors.New("nothing is changed in this pass, since an earlier stage forbids it")

func (h *hold) in(after time.Duration) *hold {
	h.after = after
	return h
}

func (h *hold) impairedIf(impaired bool) *hold {
	h.impaired = impaired
	return h
}

func (h *hold) frozen() *hold {
	h.freeze = true
	return h
}
