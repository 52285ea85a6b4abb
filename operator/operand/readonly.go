package operand

import (
	"slices"

	"github.com/clusterregistry/operator/operator/apply"
)

// Freeze makes the reconcile read-only from here on: its writer can't write. What ends
// that is for messages, which have the first one.
func (o *Objects) Freeze(until string) { o.FreezeBy("", until) }

// FreezeBy is Freeze for what a part of the registry has found, which is its condition.
func (o *Objects) FreezeBy(condition, until string) {
	o.frozen = append(o.frozen, frozen{condition, until})
}

// ReadOnly reports whether nothing may be changed any more in this reconcile.
func (o *Objects) ReadOnly() bool { return len(o.frozen) > 0 }

// ReadOnlyUntil says what ends that nothing may be changed, as "spec.paused is false";
// empty when changes may be made. What may be changed although parts have made the reconcile
// read-only has their conditions: what they have found does not count then.
func (o *Objects) ReadOnlyUntil(despite ...string) string {
	for _, f := range o.frozen {
		if !slices.Contains(despite, f.by) {
			return f.until
		}
	}
	return ""
}

// Writer makes the changes of a reconcile. That of a read-only one can't: every change is
// an error, which a stage that only observes then ignores by apply.IgnoreReadOnly.
func (o *Objects) Writer() apply.Writer {
	if o.ReadOnly() {
		return apply.ReadOnly{}
	}
	return rereading{o.Applier, o.Secrets}
}

// WriterDespite is Writer for what may be changed although the parts with some conditions have
// made the reconcile read-only.
func (o *Objects) WriterDespite(conditions ...string) apply.Writer {
	if o.ReadOnlyUntil(conditions...) != "" {
		return apply.ReadOnly{}
	}
	return rereading{o.Applier, o.Secrets}
}
