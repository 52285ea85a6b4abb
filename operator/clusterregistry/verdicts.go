package clusterregistry

import (
	"errors"
	"time"

	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/verdict"
)

const (
	// vigil is how often a registry is reconciled when nothing happens: Secrets are
	// not watched, and nothing but etcd itself reports its alarms.
	vigil = 2 * time.Minute
	// resync is how soon a stage is run again that waits for a person.
	resync = 10 * time.Minute
	// backstop is how soon a stage that waits is run again, in case that no watch
	// reports it.
	backstop = 30 * time.Second
)

// done is the verdict of a stage that has nothing to say.
var done verdict.Verdict

// unlessReadOnly returns the error of a change, but for that of a pass that may change
// nothing: the stage proceeds with what is there.
func unlessReadOnly(err error) error {
	if errors.Is(err, apply.ErrReadOnly) {
		return nil
	}
	return err
}
