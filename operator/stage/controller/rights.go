package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// right is something that the controller does in the host cluster, and the role that
// lets it.
type right struct {
	role       string
	attributes authorizationv1.ResourceAttributes
}

// The roles of the controller, in manifests/operator/controller.yaml.
const (
	roleLease             = "clusterregistry:controller"
	roleHost              = roleLease + ":host"
	roleHealth            = roleLease + ":health"
	roleRegisterHost      = roleLease + ":register-host"
	roleClusterAPI        = roleLease + ":cluster-api"
	roleExports           = roleLease + ":exports"
	roleClusterSelections = roleLease + ":cluster-selections"
	roleMetrics           = roleLease + ":metrics"
	roleFeed              = roleLease + ":feed"
)

// connecting are the functions that connect to clusters, and so read where none may be.
var connecting = []string{contract.HealthFunction, contract.ExportsFunction, contract.FeedFunction}

// rights are those without which a function does not run: one for each rule that may be
// missing.
func rights(o *operand.Objects, functions []string) []right {
	of := func(role, verb, group, resource, subresource, namespace, name string) right {
		return right{role, authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace, Name: name}}
	}
	const registry = "clusterregistry.k8s.io"
	out := []right{
		of(roleLease, "update", "coordination.k8s.io", "leases", "", o.Registry.Namespace, o.Name(contract.ControllerSuffix)),
		of(roleLease, "patch", "coordination.k8s.io", "leases", "", o.Registry.Namespace, o.Name(contract.ControllerSuffix)),
	}
	aggregated := o.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated
	if slices.ContainsFunc(functions, func(f string) bool { return slices.Contains(connecting, f) }) {
		out = append(out, of(roleHost, "list", "", "nodes", "", "", ""), of(roleHost, "list", "networking.k8s.io", "servicecidrs", "", "", ""))
	}
	if slices.Contains(functions, contract.HealthFunction) && aggregated {
		out = append(out, of(roleHealth, "list", registry, "clusters", "", "", ""), of(roleHealth, "watch", registry, "clusters", "", "", ""), of(roleHealth, "patch", registry, "clusters", "status", "", ""), of(roleHealth, "list", registry, "clusterheartbeats", "", "", ""))
	}
	if slices.Contains(functions, contract.RegisterHostFunction) {
		out = append(out, of(roleHost, "get", "", "namespaces", "", "", "kube-system"))
		if aggregated {
			out = append(out, of(roleRegisterHost, "create", registry, "clusters", "", "", ""), of(roleRegisterHost, "update", registry, "clusters", "", "", ""), of(roleRegisterHost, "patch", registry, "clusters", "status", "", ""))
		}
	}
	if slices.Contains(functions, contract.ClusterAPIFunction) && aggregated {
		out = append(out, of(roleClusterAPI, "watch", registry, "clusters", "", "", ""), of(roleClusterAPI, "delete", registry, "clusters", "", "", ""), of(roleClusterAPI, "patch", registry, "clusters", "status", "", ""))
	}
	if slices.Contains(functions, contract.ExportsFunction) && aggregated {
		out = append(out, of(roleExports, "watch", registry, "clusters", "", "", ""))
	}
	if slices.Contains(functions, contract.ClusterSelectionsFunction) && aggregated {
		out = append(out, of(roleClusterSelections, "watch", registry, "clusters", "", "", ""))
	}
	if slices.Contains(functions, contract.FeedFunction) {
		out = append(out, of(roleFeed, "watch", registry, "clusters", "", "", ""), of(roleMetrics, "create", "authentication.k8s.io", "tokenreviews", "", "", ""), of(roleMetrics, "create", "authorization.k8s.io", "subjectaccessreviews", "", "", ""))
	}
	return append(out, namespaceRights(o)...)
}

// namespaceRights are those that a function has in the namespaces that are open to the
// registry: where the operator made the bindings.
func namespaceRights(o *operand.Objects) []right {
	var out []right
	for _, binding := range o.Rendered.Stages[render.StageController] {
		of := func(verb, group, resource string) right {
			return right{roleOf(binding), authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: binding.GetNamespace()}}
		}
		if strings.HasPrefix(roleOf(binding), roleExports+":") {
			out = append(out, of("get", "rbac.authorization.k8s.io", "rolebindings"))
		}
		switch roleOf(binding) {
		case roleClusterAPI + ":namespace":
			out = append(out, of("watch", "cluster.x-k8s.io", "clusters"))
		case roleExports + ":secrets":
			out = append(out, of("watch", "", "secrets"), of("patch", "", "secrets"))
		case roleExports + ":config-maps":
			out = append(out, of("watch", "", "configmaps"), of("patch", "", "configmaps"))
		case roleExports + ":cluster-profiles":
			out = append(out, of("watch", "multicluster.x-k8s.io", "clusterprofiles"), of("patch", "multicluster.x-k8s.io", "clusterprofiles"))
		case roleClusterSelections + ":namespace":
			out = append(out, of("watch", operatorv1alpha1.GroupName, "clusterselections"), of("create", "multicluster.x-k8s.io", "placementdecisions"))
		}
	}
	return out
}

// withoutRights returns what is wrong with the controller, or, where that may be for want
// of rights and rights are wanting, which ones and how they are granted. The host cluster
// is asked only then.
func (s *Stage) withoutRights(ctx context.Context, functions []string, unbound []*unstructured.Unstructured, v verdict.Verdict) verdict.Verdict {
	if v.Complete() && len(unbound) == 0 || slices.Contains([]string{operatorv1alpha1.ReasonIsolated, operatorv1alpha1.ReasonRefused, operatorv1alpha1.ReasonInternalError, operatorv1alpha1.ReasonHostRefused}, v.Reason) && len(unbound) == 0 {
		return v
	}
	var roles, missing []string
	for _, r := range rights(s.Objects, functions) {
		allowed, err := s.may(ctx, r.attributes)
		if err != nil {
			// Then what could not be bound is all that is known.
			for _, binding := range unbound {
				roles = append(roles, roleOf(binding))
			}
			missing = []string{fmt.Sprintf("it is not known what it may do (%s)", err)}
			break
		}
		if !allowed {
			roles, missing = append(roles, r.role), append(missing, words(r.attributes))
		}
	}
	if len(roles) == 0 {
		return v
	}
	message := fmt.Sprintf("ServiceAccount %s lacks rights in the host cluster: %s", s.Name(contract.ControllerSuffix), strings.Join(missing, ", "))
	commands, incomplete := s.grants(roles, unbound)
	if len(commands) > 0 {
		message += ". An administrator of the cluster runs: " + strings.Join(commands, "; ")
	}
	if len(incomplete) > 0 {
		message += ". Missing or without all of its rules: ClusterRole " + strings.Join(incomplete, ", ") + "; install the operator's manifests of this release again, as you installed them"
	}
	return verdict.Waiting(operatorv1alpha1.ReasonRightsMissing, "%s", message).In(verdict.Vigil)
}

// may asks the host cluster whether the controller may do something.
func (s *Stage) may(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: account(s.Objects), Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + s.Registry.Namespace, "system:authenticated"}, ResourceAttributes: &attributes}}
	if err := s.Client.Create(ctx, review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// words says what is not allowed, as kubectl would.
func words(a authorizationv1.ResourceAttributes) string {
	what := a.Resource
	if a.Group != "" {
		what += "." + a.Group
	}
	if a.Subresource != "" {
		what += "/" + a.Subresource
	}
	if a.Name != "" {
		what += " " + a.Name
	}
	return a.Verb + " " + what
}

// grants returns the commands that give roles, and the roles that no command helps. What the operator does not bind, as an operator
// of some namespaces for an independent registry, an administrator does; what it could not
// bind, too. The names are others than the operator's, which takes over nothing that it has
// not made. A role that is bound and does not give what it should is incomplete: there is
// no one command to install it again, since the operator may be of OLM, of manifests for
// some namespaces or of a mirror.
func (s *Stage) grants(roles []string, unbound []*unstructured.Unstructured) (commands, incomplete []string) {
	gives := func(role string) func(*unstructured.Unstructured) bool {
		return func(u *unstructured.Unstructured) bool { return roleOf(u) == role }
	}
	bind := func(kind, name, role string) string {
		return fmt.Sprintf("kubectl create %s %s --clusterrole=%s --serviceaccount=%s:%s", kind, name, role, s.Registry.Namespace, s.Name(contract.ControllerSuffix))
	}
	for _, role := range slices.Compact(slices.Sorted(slices.Values(roles))) {
		refused := slices.IndexFunc(unbound, gives(role))
		switch bound := slices.ContainsFunc(s.Rendered.Stages[render.StageController], gives(role)); {
		case refused >= 0 && unbound[refused].GetNamespace() != "":
			commands = append(commands, bind("rolebinding --namespace="+unbound[refused].GetNamespace(), unbound[refused].GetName()+contract.ByAdministrator, role))
		case refused >= 0:
			commands = append(commands, bind("clusterrolebinding", unbound[refused].GetName()+contract.ByAdministrator, role))
		case !bound:
			name := clusterWide(s.Registry) + strings.ReplaceAll(strings.TrimPrefix(role, roleLease), ":", "-")
			commands = append(commands, bind("clusterrolebinding", name+contract.ByAdministrator, role))
		default:
			incomplete = append(incomplete, role)
		}
	}
	return commands, incomplete
}

// roleOf returns the role that a binding gives.
func roleOf(binding *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	return name
}
