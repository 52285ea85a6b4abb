package recovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/version"
)

// Plan is how a registry continues whose etcd has lost its quorum.
type Plan struct {
	// Namespace and Name are those of the registry.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Verdict says in a sentence how it is, and Attention that a person has to do or wait for
	// something.
	Verdict   string `json:"verdict"`
	Attention bool   `json:"attention,omitempty"`
	// Loss is the quorum that was lost, nil when none is.
	Loss *Loss `json:"loss,omitempty"`
	// Phase is the present step of the recovery that is under way, Message what the operator
	// says of it, and WaitsFor the pods that have to terminate before it continues.
	Phase    v1alpha1.RecoveryPhase `json:"phase,omitempty"`
	Message  string                 `json:"message,omitempty"`
	WaitsFor []string               `json:"waitsFor,omitempty"`
	// InTheWay is what keeps a recovery from being made, and what to do about it.
	InTheWay []string `json:"inTheWay,omitempty"`
	// Recommendation says which copy loses the least, and why.
	Recommendation string `json:"recommendation,omitempty"`
	// Copies are the copies of the data that are left, the recommended one first.
	Copies []Copy `json:"copies,omitempty"`
	// Gone are the members whose data is gone.
	Gone []Gone `json:"gone,omitempty"`
	// Unknown is what can't be known from here, and Notes what else there is to know.
	Unknown []string `json:"unknown,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// Recovered says how the last lost quorum was recovered from.
	Recovered *v1alpha1.RecoveredStatus `json:"recovered,omitempty"`
}

// Loss is a quorum that was lost.
type Loss struct {
	ID string `json:"id"`
	// LostTime is when that was noticed.
	LostTime metav1.Time `json:"lostTime"`
	// LastRevision is the newest revision that is known.
	LastRevision int64 `json:"lastRevision,omitempty"`
}

// Gone is a member whose data is gone, and why.
type Gone struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

// plan returns the plan.
func (s *scene) plan() *Plan {
	lost := s.registry.Status.Recovery
	out := &Plan{Namespace: s.registry.Namespace, Name: s.registry.Name, Recovered: s.registry.Status.Recovered}
	if lost == nil {
		s.notLost(out)
		return out
	}
	out.Attention = true
	out.Loss = &Loss{ID: lost.ID, LostTime: lost.LostTime, LastRevision: lost.LastRevision}
	out.Phase, out.Message = lost.Phase, lost.Message
	for _, m := range lost.Members {
		if m.DataGone {
			out.Gone = append(out.Gone, Gone{m.Name, m.Message})
		}
	}
	out.Copies, out.InTheWay, out.Unknown = s.copies(), s.inTheWay(), s.unknown()
	if lost.Phase != "" {
		s.underWay(out)
		return out
	}
	// What is recorded of an external etcd is only that it went back, whatever it is like now.
	if ready := s.condition(); s.registry.Spec.Etcd.External != nil || ready != nil && ready.Reason == v1alpha1.ReasonWentBack {
		s.wentBack(out)
		return out
	}
	out.Verdict = fmt.Sprintf("the etcd of %s has lost its quorum for good: the data of %d of %d members is gone. It continues only with a copy of the data that a person approves", key(s.registry), len(out.Gone), len(lost.Members))
	back := "with a majority of the members, nothing is lost"
	if len(lost.Members) == 1 {
		out.Verdict = fmt.Sprintf("the data of the only etcd member of %s is gone, and no other member has it. etcd continues only with a backup that a person approves", key(s.registry))
		back = "nothing is lost then"
	}
	out.Recommendation = s.recommendation(out.Copies)
	if asked := s.registry.Spec.Recovery; asked != nil && s.refused() == nil {
		out.Verdict += fmt.Sprintf(". spec.recovery approves %s, with which the operator begins next", approved(asked))
		if len(out.InTheWay) > 0 {
			out.Verdict += ", as soon as nothing is in the way"
		}
	}
	out.Notes = append(out.Notes, "keep all volumes, and delete no claim, no PersistentVolume, and no pod by force. If a volume can be brought back, as a disk that was not attached, do that instead: "+back)
	if out.Recovered != nil {
		out.Notes = append(out.Notes, "backups from before the last recovery, and the volumes that it has abandoned, can't be named: clients have seen the revisions since that their data would begin with. With such a backup, create another ClusterRegistry with spec.restoreFrom")
	}
	return out
}

// wentBack says of an etcd that is at an older revision than it was at which sides there are. It
// recommends none: each of them has something that the other lacks.
func (s *scene) wentBack(out *Plan) {
	lost := s.registry.Status.Recovery
	out.Verdict = fmt.Sprintf("the etcd of %s went back: it was at revision %d, and what it had acknowledged is missing in what it serves now. Nothing is changed until a person approves with which side it continues", key(s.registry), lost.LastRevision)
	for i := range out.Copies {
		out.Copies[i].Recommended = false
	}
	if asked := s.registry.Spec.Recovery; asked != nil && s.refused() == nil {
		out.Verdict += fmt.Sprintf(". spec.recovery approves %s, with which the operator continues next", approved(asked))
	}
	if s.registry.Spec.Etcd.External != nil {
		out.Notes = append(out.Notes, "etcd is external, and the operator recovers nothing of it: those who run it can bring back what is missing with their own tools. With the command, etcd continues with what it has then, and what is missing of it is given up")
		return
	}
	out.Notes = append(out.Notes,
		"with a member that serves, etcd continues with what it has, and what is missing is given up; with another member, or a backup, all servers and members are stopped, a new etcd begins with that copy, and what clients have written since is lost",
		"keep all volumes, and delete no claim, no PersistentVolume, and no pod by force")
}

// approved names the copy that spec.recovery has.
func approved(asked *v1alpha1.Recovery) string {
	return (&Copy{From: asked.From, Name: asked.Name}).title()
}

// underWay says how far the recovery is.
func (s *scene) underWay(out *Plan) {
	lost, asked := s.registry.Status.Recovery, s.registry.Spec.Recovery
	with := "the copy that was approved"
	if asked != nil && asked.ApprovedFor == lost.ID {
		with = approved(asked) + ", as spec.recovery says"
	}
	switch lost.Phase {
	case v1alpha1.RecoveryStopping:
		out.Verdict = fmt.Sprintf("the etcd of %s is being recovered from a lost quorum, with %s: all servers and etcd members are stopped first (%s)", key(s.registry), with, lost.Phase)
		for i := range s.pods {
			out.WaitsFor = append(out.WaitsFor, cmp.Or(s.blocks(&s.pods[i]), s.remains(&s.pods[i])))
		}
	case v1alpha1.RecoveryRestoring:
		out.Verdict = fmt.Sprintf("the etcd of %s is being recovered from a lost quorum, with %s: a new etcd with one member begins with that data (%s)", key(s.registry), with, lost.Phase)
	default: // of a newer operator
		out.Verdict = fmt.Sprintf("the etcd of %s is being recovered from a lost quorum, with %s (%s)", key(s.registry), with, lost.Phase)
	}
	for i := range out.Copies {
		out.Copies[i].Recommended = false
	}
	out.Notes = append(out.Notes, "until etcd serves, another copy can be approved, with which the recovery begins again, or acceptDataLossUpTo be raised; removing spec.recovery does not end it. Delete no claim, no PersistentVolume, and no pod by force")
}

// recommendation says which copy loses the least, and why.
func (s *scene) recommendation(all []Copy) string {
	const decision = ". Which one it is to be is a person's decision: what the copy lacks is lost for good"
	i := slices.IndexFunc(all, func(c Copy) bool { return c.Recommended })
	if i < 0 {
		return "there is no copy with which the operator could continue: keep all volumes, and look for a backup elsewhere; with one, create another ClusterRegistry with spec.restoreFrom"
	}
	best := &all[i]
	out := best.title()
	switch {
	case best.sure():
		out += ", which loses the least of what is known"
		if more := s.mayHaveMore(all); best.From == v1alpha1.RecoverFromBackup && more != "" {
			out += ". But " + more + " may have more: look first whether its pod and its node can be brought back, and plan again then"
		}
	case best.runs:
		out += ", which runs, and does not say up to which revision its data goes"
		if j := slices.IndexFunc(all, func(c Copy) bool { return c.sure() }); j >= 0 {
			out += fmt.Sprintf(": with the command below it loses no more of what is known than %s would, since the operator refuses it otherwise, and %s can be approved then", all[j].title(), all[j].title())
		}
	default:
		out += ": nothing surer is left"
	}
	return out + decision
}

// mayHaveMore names the members that may have more than what is known.
func (s *scene) mayHaveMore(all []Copy) string {
	var names []string
	for i := range all {
		if c := &all[i]; c.From == v1alpha1.RecoverFromMember && c.RevisionsLost == nil && c.Refused == "" {
			names = append(names, c.title())
		}
	}
	return strings.Join(names, " or ")
}

// notLost says of an etcd whose quorum is not found to be lost how it is.
func (s *scene) notLost(out *Plan) {
	if s.registry.Spec.Recovery != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("spec.recovery is approved for the loss %s, and does nothing for another one: it may stay", s.registry.Spec.Recovery.ApprovedFor))
	}
	if s.etcdReady() {
		out.Verdict = fmt.Sprintf("the etcd of %s has not lost its quorum: no recovery is needed", key(s.registry))
		return
	}
	ready, says := s.condition(), "the operator has not reported of etcd"
	if ready != nil {
		says = fmt.Sprintf("EtcdReady is %s: %s: %s", ready.Status, ready.Reason, ready.Message)
	}
	out.Attention = true
	out.Verdict = fmt.Sprintf("the operator does not find that the etcd of %s has lost its quorum for good, and so there is nothing to recover. %s", key(s.registry), says)
	if ready != nil && ready.Reason == v1alpha1.ReasonDataLost && s.registry.Spec.Etcd.Replicas == 1 {
		out.Notes = append(out.Notes, fmt.Sprintf("a single etcd member has no others: if its volume can't be brought back, restore a backup as another registry (kubectl registry restore plan --registry %s --latest -n %s)", s.registry.Name, s.registry.Namespace))
	}
}

// unknown returns what can't be known from here.
func (s *scene) unknown() []string {
	var out []string
	if s.registry.Spec.Etcd.External != nil {
		return nil // it has no backups, and no pods
	}
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if s.noBackups != nil {
		say("which other backups there are, and whether they fit: %s", s.noBackups)
	} else if s.lineage() == "" {
		say("which other backups are of this data: the status does not say its lineage")
	}
	if s.noPods != nil {
		say("whether a pod is in the way: %s", s.noPods)
	}
	var silent []string
	for name, found := range s.nodes {
		if found.unknown != nil && !found.deleted {
			silent = append(silent, fmt.Sprintf("whether node %s answers: %s", name, found.unknown))
		}
	}
	slices.Sort(silent)
	out = append(out, silent...)
	if _, err := version.Find(s.releases, s.registry.Status.Version); err != nil && len(s.backups) > 0 {
		say("whether the backups fit: this plugin does not know release %s", s.registry.Status.Version)
	}
	if s.registry.Status.Recovery.Backup != nil || len(s.backups) > 0 {
		say("whether the backups are still in their store as they were: this command does not reach stores; the operator looks before it stops anything")
	}
	return out
}
