package clusterregistry

import (
	"cmp"
	"fmt"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// since is what was found of the parts of a registry after their stages: each value has one
// place that finds it.
type since struct {
	// quorum is what is said of an etcd that has lost its quorum, nil where the stage has said
	// what there is to say.
	quorum *verdict.Verdict
	// full says what to do about an etcd that is full, beside what the stage says.
	full string
	// lost says when a new member takes the place of one whose data is lost.
	lost string
	// notes are what a person should know of parts that are ready.
	notes []pass.Note
}

// Verdict returns what is known of a condition by now, and whether it was reached. It is composed
// here of what its stage found and of what was found since, whichever of that came first.
func (s *scope) Verdict(condition string) (v verdict.Verdict, reached bool) {
	v, reached = s.found.Verdict(condition)
	if condition == operatorv1alpha1.ConditionEtcdReady {
		v, reached = s.since.ofEtcd(v, reached)
	}
	for _, note := range s.since.notes {
		if note.Condition == condition && reached && v.Complete() {
			v = v.Note(cmp.Or(v.Reason, note.Reason), note.Message)
		}
	}
	return v, reached
}

// ofEtcd adds what was found to the verdict of the stage of etcd.
func (s since) ofEtcd(v verdict.Verdict, reached bool) (verdict.Verdict, bool) {
	if s.quorum != nil {
		v, reached = *s.quorum, true
	} else {
		v.Message += s.full
	}
	if s.lost != "" && reached && !v.Complete() {
		v.Message += "; " + s.lost
	}
	return v, reached
}

// said returns what the status says of a condition: the verdict, and of one that leads to the host
// that the registry may not be a part of its API. What is wrong with the API of one that keeps
// serving comes first. An upgrade that is within a phase is not kept by that.
func (s *scope) said(condition string) (v verdict.Verdict, reached bool) {
	v, reached = s.Verdict(condition)
	switch {
	case condition != operatorv1alpha1.ConditionAPIServiceReady || s.Aggregation.Complete():
		return v, reached
	case v.Complete():
		return s.Aggregation, true
	}
	v.Message = fmt.Sprintf("%s; %s", v.Message, s.Aggregation.Message)
	return v, true
}
