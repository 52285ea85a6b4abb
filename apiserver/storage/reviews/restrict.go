package reviews

import (
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// mostFaults is how many requirements that can't be used are named: a text for each of them is
// many times as long as the body.
const mostFaults = 16

// restrict makes the question about what the review selects. Without that it
// would be about all objects, and whoever may list some would hear no.
//
// A part of a selector that no one can use is left out, as it is when a request
// is authorized: the question is then about more, and the answer says why.
func restrict(resource *authorizationv1.ResourceAttributes, question *authorizer.AttributesRecord) error {
	if s := resource.FieldSelector; s != nil {
		if err := either("fieldSelector", s.RawSelector, len(s.Requirements)); err != nil {
			return err
		}
		question.FieldSelectorRequirements, question.FieldSelectorParsingErr = selectFields(s)
	}
	if s := resource.LabelSelector; s != nil {
		if err := either("labelSelector", s.RawSelector, len(s.Requirements)); err != nil {
			return err
		}
		question.LabelSelectorRequirements, question.LabelSelectorParsingErr = selectLabels(s)
	}
	return nil
}

// either refuses a selector that is given in both forms or in none.
func either(name, raw string, requirements int) error {
	if (raw == "") == (requirements == 0) {
		return apierrors.NewBadRequest("spec.resourceAttributes." + name + " needs exactly one of rawSelector and requirements")
	}
	return nil
}

func selectFields(s *authorizationv1.FieldSelectorAttributes) (fields.Requirements, error) {
	if s.RawSelector != "" {
		parsed, err := fields.ParseSelector(s.RawSelector)
		if err != nil {
			return nil, fmt.Errorf("spec.resourceAttributes.fieldSelector.rawSelector: %w", err)
		}
		return parsed.Requirements(), nil
	}
	var out fields.Requirements
	var errs []error
	for i, r := range s.Requirements {
		operator := map[metav1.FieldSelectorOperator]selection.Operator{metav1.FieldSelectorOpIn: selection.Equals, metav1.FieldSelectorOpNotIn: selection.NotEquals}[r.Operator]
		if operator == "" || len(r.Values) != 1 {
			errs = append(errs, fmt.Errorf("spec.resourceAttributes.fieldSelector.requirements[%d]: only In and NotIn with one value can be used", i))
			continue
		}
		out = append(out, fields.Requirement{Field: r.Key, Operator: operator, Value: r.Values[0]})
	}
	return out, errors.Join(errs[:min(len(errs), mostFaults)]...)
}

func selectLabels(s *authorizationv1.LabelSelectorAttributes) (labels.Requirements, error) {
	if s.RawSelector != "" {
		parsed, err := labels.ParseToRequirements(s.RawSelector)
		if err != nil {
			return nil, fmt.Errorf("spec.resourceAttributes.labelSelector.rawSelector: %w", err)
		}
		return parsed, nil
	}
	var out labels.Requirements
	var errs []error
	for i, r := range s.Requirements {
		one, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{r}})
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.resourceAttributes.labelSelector.requirements[%d]: %w", i, err))
			continue
		}
		requirements, _ := one.Requirements()
		out = append(out, requirements...)
	}
	return out, errors.Join(errs[:min(len(errs), mostFaults)]...)
}
