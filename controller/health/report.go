package health

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	apply "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/probe"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// Reporter is the name of this controller's entry in status.reporters, and its
	// field manager.
	Reporter = contract.HealthReporter
	// ExpiryProperty is the property with the end of the serving certificate, in RFC 3339.
	ExpiryProperty = contract.ExpiryProperty
)

// report is what this controller says of a cluster, without times.
type report struct {
	// observed is the generation of the spec of which all conditions were observed: an earlier
	// one while some are held back. generation is that of the newest spec that has nothing
	// else to observe, so that tools which wait for it go on after a change of a name.
	observed, generation int64
	// own are the conditions of its own entry, summary those of the status itself.
	own, summary []metav1.Condition
	// version and expires are empty where it says nothing of them.
	version, expires string
}

// reportOf returns what is to be said of a cluster, given what its entry has now.
func reportOf(cluster *v1beta1.Cluster, e evidence) report {
	status := statusOf(cluster)
	e.before, e.reporters, e.identity, e.retracted = nil, nil, nil, false
	for _, reporter := range status.Reporters {
		if reporter.Name == Reporter {
			e.before = reporter.Conditions
		} else {
			e.reporters = append(e.reporters, reporter)
		}
	}
	mine := owned(cluster)
	switch c := meta.FindStatusCondition(status.Conditions, IdentityVerified); {
	case c == nil:
	case !mine.Has(conditionPath(IdentityVerified)):
		e.identity = c
	case c.Reason == ReasonEndpointChanged: // seen before, perhaps by another process
		e.retracted, e.led = true, max(e.led, c.ObservedGeneration)
	}
	e.heartbeat, e.generation = cluster.Spec.Heartbeat, cluster.Generation
	f := evaluate(e)
	r := report{observed: cluster.Generation, generation: cluster.Generation, version: e.history.last.Version}
	for _, c := range []*metav1.Condition{f.reachable, f.healthy} {
		if c == nil {
			continue
		}
		r.own = append(r.own, *c)
		if c == meta.FindStatusCondition(e.before, c.Type) { // of before: nothing was observed of the spec as it is now
			r.observed = min(r.observed, c.ObservedGeneration)
		}
	}
	if e.moved {
		r.generation = r.observed
	}
	for _, c := range []*metav1.Condition{f.available, f.reachable, f.healthy, f.identity} {
		if c != nil {
			r.summary = append(r.summary, *c)
		}
	}
	// What can't be asked now stays, where it is this controller's. A server that
	// tells anonymous clients nothing leaves its version to others.
	if r.version == "" && e.history.last.Outcome != probe.Withheld && mine.Has(versionPath) {
		r.version = status.Version.Kubernetes
	}
	if expires := e.history.expires(); !expires.IsZero() {
		r.expires = expires.UTC().Format(time.RFC3339)
	} else if p := property(status.Properties); p != nil {
		r.expires = p.Value
	}
	return r
}

// same reports whether the status says already what the report does, whenever it
// said so.
func (r report) same(status v1beta1.ClusterStatus) bool {
	own := ownEntry(status)
	if own == nil || len(own.Conditions) != len(r.own) || r.generation != status.ObservedGeneration {
		return false
	}
	for _, pair := range []struct{ want, have []metav1.Condition }{{r.own, own.Conditions}, {r.summary, status.Conditions}} {
		for _, want := range pair.want {
			have := meta.FindStatusCondition(pair.have, want.Type)
			if have == nil || have.Status != want.Status || have.Reason != want.Reason || have.Message != want.Message || have.ObservedGeneration != r.observed {
				return false
			}
		}
	}
	if p := property(status.Properties); r.expires != "" && (p == nil || p.Value != r.expires) {
		return false
	}
	return r.version == "" || r.version == status.Version.Kubernetes
}

// configuration returns the report for server-side apply: with the times that
// conditions have already, and seen as the last sign of life.
func (r report) configuration(cluster *v1beta1.Cluster, now, seen time.Time) *apply.ClusterApplyConfiguration {
	status := statusOf(cluster)
	reporter := apply.Reporter().WithName(Reporter)
	if own := ownEntry(status); own != nil {
		reporter.LastSeen = own.LastSeen
		reporter.WithConditions(r.conditions(r.own, own.Conditions, now)...)
	} else {
		reporter.WithConditions(r.conditions(r.own, nil, now)...)
	}
	if !seen.IsZero() {
		reporter.WithLastSeen(metav1.NewTime(seen))
	}
	out := apply.ClusterStatus().WithObservedGeneration(r.generation).WithReporters(reporter).
		WithConditions(r.conditions(r.summary, status.Conditions, now)...)
	if r.version != "" {
		out.WithVersion(apply.ClusterVersion().WithKubernetes(r.version))
	}
	if r.expires != "" {
		p := apply.Property().WithName(ExpiryProperty).WithValue(r.expires).WithLastObservedTime(metav1.NewTime(now))
		if old := property(status.Properties); old != nil && old.Value == r.expires && old.LastObservedTime != nil {
			p.WithLastObservedTime(*old.LastObservedTime)
		}
		out.WithProperties(p)
	}
	object := apply.Cluster(cluster.Name).WithUID(cluster.UID).WithStatus(out)
	if cluster.ResourceVersion != "" {
		// What the report follows from may not have changed meanwhile.
		object.WithResourceVersion(cluster.ResourceVersion)
	}
	return object
}

func (r report) conditions(want, have []metav1.Condition, now time.Time) []*metav1ac.ConditionApplyConfiguration {
	var out []*metav1ac.ConditionApplyConfiguration
	for _, c := range want {
		since := metav1.NewTime(now)
		if old := meta.FindStatusCondition(have, c.Type); is(old, c.Status) {
			since = old.LastTransitionTime
		}
		out = append(out, metav1ac.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
			WithObservedGeneration(r.observed).WithLastTransitionTime(since))
	}
	return out
}

func statusOf(cluster *v1beta1.Cluster) v1beta1.ClusterStatus {
	if cluster.Status == nil {
		return v1beta1.ClusterStatus{}
	}
	return *cluster.Status
}

func ownEntry(status v1beta1.ClusterStatus) *v1beta1.Reporter {
	for i := range status.Reporters {
		if status.Reporters[i].Name == Reporter {
			return &status.Reporters[i]
		}
	}
	return nil
}

func property(properties []v1beta1.Property) *v1beta1.Property {
	for i := range properties {
		if properties[i].Name == ExpiryProperty {
			return &properties[i]
		}
	}
	return nil
}

var versionPath = fieldpath.MakePathOrDie("status", "version", "kubernetes")

// conditionPath is that of a condition's reason: the entry itself may be another's and
// this controller's at once.
func conditionPath(kind string) fieldpath.Path {
	return fieldpath.MakePathOrDie("status", "conditions", fieldpath.KeyByFields("type", kind), "reason")
}

// owned returns the fields of a cluster that this controller has applied.
func owned(cluster *v1beta1.Cluster) *fieldpath.Set {
	i := slices.IndexFunc(cluster.ManagedFields, func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == Reporter && m.Operation == metav1.ManagedFieldsOperationApply
	})
	set := &fieldpath.Set{}
	if i < 0 || cluster.ManagedFields[i].FieldsV1 == nil {
		return set
	}
	// What can't be read owns nothing; the next report is applied in full anyway.
	if err := set.FromJSON(cluster.ManagedFields[i].FieldsV1.GetRawReader()); err != nil {
		return &fieldpath.Set{}
	}
	return set
}
