package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	applyv1beta1 "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	clustersv1beta1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

func heartbeatsOf(t *testing.T, config *rest.Config, encoding string) clustersv1beta1.ClusterHeartbeatInterface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = encoding, encoding
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients.ClusterregistryV1beta1().ClusterHeartbeats()
}

// TestHeartbeats has a reporter that may write its own heartbeat of one cluster do that again
// and again. The Cluster stays as it is, and takes the heartbeat with it.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	ctx, etcd := t.Context(), framework.StartEtcd(t, 1)
	registry, authority, admin := independentOn(t, etcd)
	clusters := betaOf(t, admin)
	alive, err := clusters.Create(ctx, identified("alive", ""), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	roles := clientset(t, admin).RbacV1()
	rule := rbacv1.PolicyRule{APIGroups: []string{v1beta1.GroupName}, Resources: []string{"clusterheartbeats"}, Verbs: []string{"get", "create", "update", "patch"}, ResourceNames: []string{"alive.agent"}}
	if _, err := roles.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := roles.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "agent"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "agent"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	agent := registry.Config(authority.Issue("agent", nil))
	options := metav1.ApplyOptions{FieldManager: "agent", Force: true}
	for _, encoding := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		beats, first := heartbeatsOf(t, agent, encoding), (*v1beta1.ClusterHeartbeat)(nil)
		framework.Eventually(t, "the heartbeat to be renewed", func(ctx context.Context) error {
			now, err := beats.Apply(ctx, applyv1beta1.ClusterHeartbeat("alive.agent"), options)
			switch {
			case err != nil:
				return err
			case first == nil:
				first = now
			}
			if now.ClusterName != "alive" || now.Reporter != "agent" || now.ClusterUID != alive.UID || !now.RenewTime.After(first.RenewTime.Time) {
				return fmt.Errorf("it is %+v", now)
			}
			return nil
		})
		for _, other := range []string{"alive.other", "other.agent"} {
			if _, err := beats.Apply(ctx, applyv1beta1.ClusterHeartbeat(other), options); !apierrors.IsForbidden(err) {
				t.Errorf("the heartbeat %s: %v", other, err)
			}
		}
		all, err := heartbeatsOf(t, admin, encoding).List(ctx, metav1.ListOptions{FieldSelector: "clusterName=alive"})
		if err != nil || len(all.Items) != 1 {
			t.Errorf("a list: %v, %+v", err, all)
		}
	}
	if now, err := clusters.Get(ctx, "alive", metav1.GetOptions{}); err != nil || now.ResourceVersion != alive.ResourceVersion {
		t.Errorf("the Cluster was written: %v, %+v", err, now)
	}
	if err := clusters.Delete(ctx, "alive", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// It looks for what is left as soon as it runs.
	framework.StartRegistry(t, append(etcd.Flags(), "--mode=independent", "--client-ca-file="+authority.File)...).WaitReady(t)
	framework.Eventually(t, "the heartbeat to go with its cluster", func(ctx context.Context) error {
		_, err := heartbeatsOf(t, admin, "application/json").Get(ctx, "alive.agent", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}
