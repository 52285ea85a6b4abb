package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
)

// name tells what is wrong with the name of a role or a binding, which may be
// anything that fits into a path. A prefix gets a suffix before it is a name.
func name(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

func validateRole(object runtime.Object) field.ErrorList {
	role := object.(*rbacv1.ClusterRole)
	errs := apivalidation.ValidateObjectMeta(&role.ObjectMeta, false, name, field.NewPath("metadata"))
	for i, rule := range role.Rules {
		errs = append(errs, validateRule(rule, field.NewPath("rules").Index(i))...)
	}
	if role.AggregationRule != nil {
		errs = append(errs, field.Forbidden(field.NewPath("aggregationRule"), "this server does not aggregate ClusterRoles: write the rules into the role itself"))
	}
	return validation.Told(errs) // one text of all of them takes the square of their number
}

func validateRule(rule rbacv1.PolicyRule, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(rule.Verbs) == 0 {
		errs = append(errs, field.Required(at.Child("verbs"), "name what is allowed, such as \"get\", or \"*\" for everything"))
	}
	if len(rule.NonResourceURLs) > 0 {
		if len(rule.APIGroups) > 0 || len(rule.Resources) > 0 || len(rule.ResourceNames) > 0 {
			errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), rule.NonResourceURLs, "a rule is either for resources or for paths: make two rules of it"))
		}
		return errs
	}
	if len(rule.APIGroups) == 0 {
		errs = append(errs, field.Required(at.Child("apiGroups"), "name the API group of the resources, such as \"clusterregistry.k8s.io\""))
	}
	if len(rule.Resources) == 0 {
		errs = append(errs, field.Required(at.Child("resources"), "name the resources, such as \"clusters\""))
	}
	return errs
}

func validateRoleUpdate(object, old runtime.Object) field.ErrorList {
	role, before := object.(*rbacv1.ClusterRole), old.(*rbacv1.ClusterRole)
	return append(validateRole(role), apivalidation.ValidateObjectMetaUpdate(&role.ObjectMeta, &before.ObjectMeta, field.NewPath("metadata"))...)
}

func validateBinding(object runtime.Object) field.ErrorList {
	binding := object.(*rbacv1.ClusterRoleBinding)
	errs := apivalidation.ValidateObjectMeta(&binding.ObjectMeta, false, name, field.NewPath("metadata"))
	ref, at := binding.RoleRef, field.NewPath("roleRef")
	if ref.APIGroup != rbacv1.GroupName {
		errs = append(errs, field.NotSupported(at.Child("apiGroup"), ref.APIGroup, []string{rbacv1.GroupName}))
	}
	if ref.Kind != "ClusterRole" {
		errs = append(errs, field.NotSupported(at.Child("kind"), ref.Kind, []string{"ClusterRole"}))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "name the ClusterRole that is granted"))
	} else {
		for _, message := range name(ref.Name, false) {
			errs = append(errs, field.Invalid(at.Child("name"), ref.Name, message))
		}
	}
	for i, subject := range binding.Subjects {
		errs = append(errs, validateSubject(subject, field.NewPath("subjects").Index(i))...)
	}
	return validation.Told(errs)
}

func validateSubject(subject rbacv1.Subject, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if subject.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "name the user, group or service account"))
	}
	group := rbacv1.GroupName
	switch subject.Kind {
	case rbacv1.UserKind, rbacv1.GroupKind:
	case rbacv1.ServiceAccountKind:
		group = ""
		if subject.Name != "" {
			for _, message := range apivalidation.ValidateServiceAccountName(subject.Name, false) {
				errs = append(errs, field.Invalid(at.Child("name"), subject.Name, message))
			}
		}
		if subject.Namespace == "" {
			errs = append(errs, field.Required(at.Child("namespace"), "name the service account's namespace"))
		}
	default:
		return append(errs, field.NotSupported(at.Child("kind"), subject.Kind, []string{rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind}))
	}
	if subject.APIGroup != group {
		errs = append(errs, field.NotSupported(at.Child("apiGroup"), subject.APIGroup, []string{group}))
	}
	return errs
}

func validateBindingUpdate(object, old runtime.Object) field.ErrorList {
	binding, before := object.(*rbacv1.ClusterRoleBinding), old.(*rbacv1.ClusterRoleBinding)
	errs := append(validateBinding(binding), apivalidation.ValidateObjectMetaUpdate(&binding.ObjectMeta, &before.ObjectMeta, field.NewPath("metadata"))...)
	if binding.RoleRef != before.RoleRef {
		errs = append(errs, field.Invalid(field.NewPath("roleRef"), binding.RoleRef, "a binding can't be moved to another role: delete it and create a new one"))
	}
	return errs
}
