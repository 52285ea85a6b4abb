package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestABindingThatIsGoneForAMoment deletes what lets the server ask the host who may
// do what, and creates it again, as the operator does. Requests wait meanwhile.
func TestABindingThatIsGoneForAMoment(t *testing.T) {
	t.Parallel()
	host, _ := framework.StartAggregated(t, newest)
	admin, hosts := framework.HostClient(t, host.Config), clientset(t, host.Config)
	framework.Create(t, admin, role("reader", rbacv1.PolicyRule{APIGroups: []string{"clusterregistry.k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"get"}}, user("ann"), user("ben"))...)
	ann := clustersOf(t, as(t, host, "ann"))
	framework.Eventually(t, "ann to be let in", func(ctx context.Context) error {
		if _, err := ann.Get(ctx, "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	var binding client.Object
	for _, object := range framework.Delegation() {
		if _, ok := object.(*rbacv1.ClusterRoleBinding); ok {
			binding = object
		}
	}
	if err := admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	server := clientset(t, as(t, host, framework.ServerUser))
	framework.Eventually(t, "the host to refuse the server's questions", func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "ann", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/", Verb: "get"}}}
		if _, err := server.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	refused := func(ctx context.Context) string {
		metrics, err := hosts.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		if err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(string(metrics)) {
			if strings.HasPrefix(line, `authorization_attempts_total{result="no-opinion"}`) {
				return line
			}
		}
		return ""
	}
	before := refused(t.Context())
	// The server has not asked what this user may do.
	clusters := clustersOf(t, as(t, host, "ben"))
	var all sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		all.Go(func() { _, errs[i] = clusters.Get(t.Context(), "absent", metav1.GetOptions{}) })
	}
	framework.Eventually(t, "the server to be refused", func(ctx context.Context) error {
		if refused(ctx) == before {
			return errors.New("not yet")
		}
		return nil
	})
	binding.SetResourceVersion("")
	framework.Create(t, admin, binding)
	all.Wait()
	for _, err := range errs {
		if !apierrors.IsNotFound(err) {
			t.Errorf("a request that came while the binding was gone: %v", err)
		}
	}
}

// as returns the configuration of a user of the host.
func as(t *testing.T, host *framework.Host, user string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", host.Kubeconfig(user))
	if err != nil {
		t.Fatal(err)
	}
	return config
}
