package reviews

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// asked is an authorizer that keeps what it is asked about.
type asked struct{ fields, labels string }

func (a *asked) Authorize(_ context.Context, question authorizer.Attributes) (authorizer.Decision, string, error) {
	f, _ := question.GetFieldSelector()
	l, _ := question.GetLabelSelector()
	for _, r := range f {
		a.fields += fmt.Sprint(r.Field, r.Operator, r.Value, ";")
	}
	for _, r := range l {
		a.labels += r.String() + ";"
	}
	return authorizer.DecisionAllow, "", nil
}

// TestSelectors asks about what selectors select.
func TestSelectors(t *testing.T) {
	type fieldsOf = authorizationv1.FieldSelectorAttributes
	type labelsOf = authorizationv1.LabelSelectorAttributes
	for _, test := range []struct {
		reason         string
		fields         *fieldsOf
		labels         *labelsOf
		want           asked
		evaluation, no string
	}{
		{reason: "none"},
		{reason: "raw", fields: &fieldsOf{RawSelector: "spec.id=x,metadata.name!=y"}, labels: &labelsOf{RawSelector: "region in (eu,us),!old"},
			want: asked{"metadata.name!=y;spec.id=x;", "!old;region in (eu,us);"}},
		{reason: "requirements",
			fields: &fieldsOf{Requirements: []metav1.FieldSelectorRequirement{{Key: "spec.id", Operator: metav1.FieldSelectorOpIn, Values: []string{"x"}}, {Key: "metadata.name", Operator: metav1.FieldSelectorOpNotIn, Values: []string{"y"}}}},
			labels: &labelsOf{Requirements: []metav1.LabelSelectorRequirement{{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{"eu", "us"}}, {Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist}}},
			want:   asked{"spec.id=x;metadata.name!=y;", "region in (eu,us);!old;"}},
		{reason: "raw nonsense", fields: &fieldsOf{RawSelector: "x"}, labels: &labelsOf{RawSelector: "region=eu"},
			want: asked{"", "region=eu;"}, evaluation: "fieldSelector.rawSelector: "},
		{reason: "some nonsense",
			fields: &fieldsOf{Requirements: []metav1.FieldSelectorRequirement{{Key: "a", Operator: metav1.FieldSelectorOpExists}, {Key: "b", Operator: metav1.FieldSelectorOpIn, Values: []string{"x"}}}},
			labels: &labelsOf{Requirements: []metav1.LabelSelectorRequirement{{Key: "region", Operator: "Near"}, {Key: "old", Operator: metav1.LabelSelectorOpExists}}},
			want:   asked{"b=x;", "old;"}, evaluation: "labelSelector.requirements[0]: "},
		{reason: "both forms", fields: &fieldsOf{RawSelector: "a=b", Requirements: []metav1.FieldSelectorRequirement{{Key: "a"}}}, no: "fieldSelector needs exactly one"},
		{reason: "neither form", labels: &labelsOf{}, no: "labelSelector needs exactly one"},
	} {
		got := asked{}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "clusterregistry.k8s.io", Resource: "clusters", Verb: "list", FieldSelector: test.fields, LabelSelector: test.labels}}}
		err := canI(t.Context(), &got, &user.DefaultInfo{Name: "ann"}, review)
		if (err == nil) != (test.no == "") || err != nil && !strings.Contains(err.Error(), test.no) {
			t.Errorf("%s: %v, want %q", test.reason, err, test.no)
		}
		if err == nil && !review.Status.Allowed || got != test.want {
			t.Errorf("%s: asked about %+v, want %+v", test.reason, got, test.want)
		}
		if said := review.Status.EvaluationError; (said == "") != (test.evaluation == "") || !strings.Contains(said, test.evaluation) {
			t.Errorf("%s: evaluation error %q, want %q", test.reason, said, test.evaluation)
		}
	}
}
