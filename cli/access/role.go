package access

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
)

const (
	// prefix begins the names of the ClusterRoles that the project ships, and of what is
	// printed here.
	prefix = "clusterregistry:"
	// managedBy is the label that says what has made an object.
	managedBy = "app.kubernetes.io/managed-by"
	// longest is how long a name may be.
	longest = 253
)

// level is how much someone gets.
type level struct {
	// name is the flag, and gate that of the shipped ClusterRole that is the gate.
	name, gate string
	// set is the name of the set's own role: two levels differ in the gate alone.
	set string
	// verbs are those of the decision, and join is whether clusters may be moved.
	verbs []string
	join  bool
}

// levels are those that can be given.
var levels = []level{
	{"viewer", prefix + "viewer", "viewer", []string{"get"}, false},
	{"editor", prefix + "editor", "editor", decided, true},
	{"endpoint-editor", prefix + "endpoint-editor", "editor", decided, true},
}

// objects returns what gives a level of a set to subjects: the set's role, and for each of
// them a binding to it and one to the gate. Each subject has bindings of their own, so that
// what is printed for one changes nothing of what others have.
func (l level) objects(set string, subjects []rbacv1.Subject) []any {
	labels := map[string]string{managedBy: command.FieldManager, v1beta1.ClusterSetLabel: set}
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: prefix + "set:" + set + ":" + l.set, Labels: labels},
		Rules:      []rbacv1.PolicyRule{rule(set, setClusters, l.verbs...), rule(set, sets, "get")},
	}
	if l.join {
		role.Rules = append(role.Rules, rule(set, setJoin, "create"))
	}
	out := []any{role}
	for _, subject := range subjects {
		out = append(out, binding(role.Name, role.Name, labels, subject))
	}
	for _, subject := range subjects {
		out = append(out, binding(prefix+"gate:"+strings.TrimPrefix(l.gate, prefix), l.gate, map[string]string{managedBy: command.FieldManager}, subject))
	}
	return out
}

func rule(set, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{v1beta1.GroupName}, Resources: []string{resource}, ResourceNames: []string{set}, Verbs: slices.Clone(verbs)}
}

// binding returns the binding of a subject to a role. Its name begins with a text that
// says what is given, and ends with the subject.
func binding(begins, role string, labels map[string]string, subject rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: bindingName(begins, subject), Labels: labels},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}
}

// bindingName returns the name of a subject's binding, always the same. A subject whose
// own name can't be part of one, or would make it too long, is shortened and told from
// others by a hash, behind a character that no other name has.
func bindingName(begins string, subject rbacv1.Subject) string {
	whole := strings.ToLower(subject.Kind) + ":" + subject.Name
	if subject.Kind == rbacv1.ServiceAccountKind {
		whole = strings.ToLower(subject.Kind) + ":" + subject.Namespace + ":" + subject.Name
	}
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:@", r) {
			return r
		}
		return '-'
	}, whole)
	if name := begins + ":" + plain; plain == whole && len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(whole))
	suffix := "~" + hex.EncodeToString(sum[:8])
	name := begins + ":" + plain
	return name[:min(len(name), longest-len(suffix))] + suffix
}
