package operand

import "github.com/clusterregistry/operator/operator/apply"

// Freeze makes the reconcile read-only from here on: its writer can't write. What ends
// that is for messages; the first one counts.
func (o *Objects) Freeze(until string) { o.FreezeBy("", until) }

// FreezeBy is Freeze for what a part of the registry has found, which is its condition.
func (o *Objects) FreezeBy(condition, until string) {
	if o.frozen == nil {
		o.frozen = &frozen{condition, until}
	}
}

// ReadOnly reports whether nothing may be changed any more in this reconcile.
func (o *Objects) ReadOnly() bool { return o.frozen != nil }

// ReadOnlyDespite is ReadOnly for what may be changed although the part with a condition has made
// the reconcile read-only.
func (o *Objects) ReadOnlyDespite(condition string) bool {
	return o.ReadOnly() && o.frozen.by != condition
}

// ReadOnlyUntil says what ends that nothing may be changed, as "spec.paused is false";
// empty when changes may be made.
func (o *Objects) ReadOnlyUntil() string {
	if o.frozen == nil {
		return ""
	}
	return o.frozen.until
}

// Writer makes the changes of a reconcile. That of a read-only one can't: every change is
// an error, which a stage that only observes then ignores by apply.IgnoreReadOnly.
func (o *Objects) Writer() apply.Writer {
	if o.ReadOnly() {
		return apply.ReadOnly{}
	}
	return rereading{o.Applier, o.Secrets}
}

// WriterDespite is Writer for what may be changed although the part with a condition has made the
// reconcile read-only.
func (o *Objects) WriterDespite(condition string) apply.Writer {
	if o.ReadOnlyDespite(condition) {
		return apply.ReadOnly{}
	}
	return rereading{o.Applier, o.Secrets}
}
