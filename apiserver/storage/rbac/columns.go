package rbac

import (
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apiserver/storage/table"
)

// The columns are those of kube-apiserver.
var (
	roleColumns = table.Convertor[*rbacv1.ClusterRole]{
		Columns: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "Name of the role"},
			{Name: "Created At", Type: "date", Description: "Time of creation"},
		},
		Row: func(role *rbacv1.ClusterRole, name, _ string) []any {
			return []any{name, role.CreationTimestamp.UTC().Format(time.RFC3339)}
		},
	}
	bindingColumns = table.Convertor[*rbacv1.ClusterRoleBinding]{
		Columns: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "Name of the binding"},
			{Name: "Role", Type: "string", Description: "The role that is granted"},
			{Name: "Age", Type: "string", Description: "Time since creation"},
			{Name: "Users", Type: "string", Priority: 1, Description: "Users who hold the role"},
			{Name: "Groups", Type: "string", Priority: 1, Description: "Groups whose members hold the role"},
			{Name: "ServiceAccounts", Type: "string", Priority: 1, Description: "Service accounts that hold the role"},
		},
		Row: func(binding *rbacv1.ClusterRoleBinding, name, age string) []any {
			holders := map[string][]string{}
			for _, subject := range binding.Subjects {
				holder := subject.Name
				if subject.Kind == rbacv1.ServiceAccountKind {
					holder = subject.Namespace + "/" + holder
				}
				holders[subject.Kind] = append(holders[subject.Kind], holder)
			}
			return []any{name, fmt.Sprintf("%s/%s", binding.RoleRef.Kind, binding.RoleRef.Name), age,
				strings.Join(holders[rbacv1.UserKind], ", "), strings.Join(holders[rbacv1.GroupKind], ", "), strings.Join(holders[rbacv1.ServiceAccountKind], ", ")}
		},
	}
)
