package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// GuardedFields is what becomes of a write that changes guarded fields of a cluster
// without the permission for that.
type GuardedFields string

const (
	// GuardedFieldsOff asks for no permission: whoever may write a cluster may write all of it.
	GuardedFieldsOff GuardedFields = "Off"
	// GuardedFieldsWarn lets the write pass, and says what GuardedFieldsEnforce would refuse.
	GuardedFieldsWarn GuardedFields = "Warn"
	// GuardedFieldsEnforce refuses the write.
	GuardedFieldsEnforce GuardedFields = "Enforce"
)

// Guard asks whether the caller of a write may change the guarded fields that it
// changes, and put clusters in the sets that it does. The zero guard is for a
// store that nothing is written to.
type Guard struct {
	// Fields is what becomes of a write without the permission.
	Fields GuardedFields
	// Authorizer decides; nothing but its unconditional Allow counts.
	Authorizer authorizer.UnconditionalAuthorizer
}

// The outcomes of a review that does not allow a write.
const (
	outcomeRefused = "refused"
	outcomeWarned  = "warned"
	outcomeError   = "error"
)

// annotation is the prefix of the audit annotations that have an outcome.
const annotation = "guarded-fields." + clusterregistry.GroupName + "/"

var guardedWrites = metrics.NewCounterVec(&metrics.CounterOpts{
	Name:           "clusterregistry_guarded_writes_total",
	Help:           "Writes that change guarded fields of a cluster, or its ClusterSet, without the permission for that, by the permission and the outcome: refused, warned (it passed, and Enforce refuses it), or error (it is not known whether the caller has the permission; refused, or passed with Warn).",
	StabilityLevel: metrics.ALPHA,
}, []string{"permission", "outcome"})

func init() { legacyregistry.MustRegister(guardedWrites) }

// of returns what becomes of a write without a permission.
func (g Guard) of(p permission) GuardedFields {
	if p.always {
		return GuardedFieldsEnforce
	}
	return g.Fields
}

// outcomes are those that a review for a permission may have, none when it is not asked for.
func (g Guard) outcomes(p permission) []string {
	switch g.of(p) {
	case GuardedFieldsEnforce:
		return []string{outcomeRefused, outcomeError}
	case GuardedFieldsWarn:
		return []string{outcomeWarned, outcomeError}
	}
	return nil
}

// countFromZero lets the metric have its series before the first write that counts: that
// of none is then known from that of a server that does not count.
func (g Guard) countFromZero() {
	for _, p := range permissions {
		for _, outcome := range g.outcomes(p) {
			guardedWrites.WithLabelValues(p.subresource, outcome)
		}
	}
}

// reviews returns the reviews of one request.
func (g Guard) reviews() *reviews { return &reviews{Guard: g, known: map[question]*lack{}} }

// reviews are what one request has asked, which writes in one attempt or several. Each
// question is asked, counted and answered once.
type reviews struct {
	Guard
	known map[question]*lack
}

// question is what is asked about the caller.
type question struct{ verb, resource, subresource, name string }

func (q question) String() string {
	return fmt.Sprintf("%s resource %q in API group %q for the name %q", q.verb, q.resource+"/"+q.subresource, clusterregistry.GroupName, q.name)
}

// lack is a permission that the caller was not found to have.
type lack struct {
	text string
	// failed says that the question was not answered.
	failed bool
}

// check returns an error when the caller may not make of the stored cluster what it is
// about to be, which is empty for a new one. Nothing else has been asked or locked yet.
func (r *reviews) check(ctx context.Context, written, stored *clusterregistry.Cluster) error {
	var lacks []*lack
	for _, p := range permissions {
		outcomes := r.outcomes(p)
		if outcomes == nil {
			continue
		}
		for _, need := range p.needed(versionOf(ctx), written, stored) {
			if lack := r.ask(ctx, question{p.verb, p.resource, p.subresource, need.name}, need.fields, outcomes[0]); lack != nil && outcomes[0] == outcomeRefused {
				lacks = append(lacks, lack)
			}
		}
	}
	return refusal(written.Name, lacks)
}

// refusal is the error of permissions that the caller lacks. Those that are certainly
// missing say what to grant; without one, the request may be repeated.
func refusal(name string, lacks []*lack) error {
	var missing, failed []string
	for _, lack := range lacks {
		if lack.failed {
			failed = append(failed, lack.text)
		} else {
			missing = append(missing, lack.text)
		}
	}
	switch {
	case len(missing) > 0:
		return apierrors.NewForbidden(clusterregistry.Resource("clusters"), name, errors.New(strings.Join(missing, "; ")))
	case len(failed) > 0:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("cluster %q was not written: %s; try again", name, strings.Join(failed, "; ")))
	}
	return nil
}

// ask returns what the caller lacks for a change of fields, nil when nothing. The outcome is
// that of a write without the permission.
func (r *reviews) ask(ctx context.Context, q question, fields, outcome string) *lack {
	if lack, asked := r.known[q]; asked {
		return lack
	}
	caller, allowed, reason, err := r.decide(ctx, q)
	var found *lack
	switch {
	case allowed:
	case err != nil:
		found = &lack{failed: true, text: fmt.Sprintf("it is not known whether %s may %s, as a change of %s needs: %s", caller, q, fields, err)}
	default:
		found = &lack{text: fmt.Sprintf("%s cannot %s, as a change of %s needs%s", caller, q, fields, reason)}
	}
	r.known[q] = found
	if found != nil {
		record(ctx, q, found, outcome)
	}
	return found
}

// decide asks the server's own authorizer, which in aggregated mode asks the host. Without
// a user no one is allowed anything: the server itself writes clusters past this.
func (r *reviews) decide(ctx context.Context, q question) (caller string, allowed bool, reason string, err error) {
	user, known := genericapirequest.UserFrom(ctx)
	if !known {
		return "a request without a user", false, "", nil
	}
	decision, reason, err := r.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: user, Verb: q.verb, APIGroup: clusterregistry.GroupName, APIVersion: versionOf(ctx),
		Resource: q.resource, Subresource: q.subresource, Name: q.name, ResourceRequest: true,
	})
	if reason != "" {
		reason = ": " + reason
	}
	return fmt.Sprintf("User %q", user.GetName()), decision == authorizer.DecisionAllow, reason, err
}

// record counts what is lacking, and tells the audit log of it. When the write passes it
// also tells the caller, and those who read the server's log.
func record(ctx context.Context, q question, lack *lack, outcome string) {
	counted := outcome
	if lack.failed {
		counted = outcomeError
	}
	guardedWrites.WithContext(ctx).WithLabelValues(q.subresource, counted).Inc()
	audit.AddAuditAnnotation(ctx, annotation+q.subresource, counted)
	if outcome == outcomeWarned {
		warning.AddWarning(ctx, "", lack.text+"; guardedFields: Enforce will refuse this")
		klog.InfoS("A write passes that guardedFields: Enforce would refuse", "name", q.name, "permission", q.resource+"/"+q.subresource, "why", lack.text)
	}
}
