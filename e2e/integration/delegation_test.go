package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestABindingThatIsGoneForAMoment deletes what lets the server ask the host who may
// do what, and creates it again, as the operator does. Requests wait meanwhile.
func TestABindingThatIsGoneForAMoment(t *testing.T) {
	t.Parallel()
	host, _ := framework.StartAggregated(t, newest, "--host-decision=Never") // so that each request needs a review
	everyone := rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:authenticated"}
	framework.Create(t, framework.HostClient(t, host.Config), role("reader", rbacv1.PolicyRule{APIGroups: []string{"clusterregistry.k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"get"}}, everyone)...)
	ann := clustersOf(t, as(t, host, "ann"))
	framework.Eventually(t, "ann to be let in", func(ctx context.Context) error {
		if _, err := ann.Get(ctx, "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	// The server waits for five seconds, of which the last pause may be one.
	const brief = 3 * time.Second
	for attempt, began := 0, time.Now(); time.Since(began) < framework.Bound; attempt++ {
		// The server has not asked what this user may do.
		gone, errs := withoutBinding(t, host, fmt.Sprint("user-", attempt))
		if gone > brief { // on a busy computer
			t.Logf("the binding was gone for %s", gone)
			continue
		}
		for _, err := range errs {
			if !apierrors.IsNotFound(err) {
				t.Errorf("a request that came while the binding was gone for %s: %v", gone, err)
			}
		}
		return
	}
	t.Errorf("the binding was never gone for less than %s", brief)
}

// withoutBinding has a user send requests while the server's binding is gone, and returns
// for how long of them the host refused the server's questions, and what the user was told.
func withoutBinding(t *testing.T, host *framework.Host, name string) (gone time.Duration, errs []error) {
	t.Helper()
	admin, hosts, server := framework.HostClient(t, host.Config), clientset(t, host.Config), clientset(t, as(t, host, framework.ServerUser))
	var binding client.Object
	for _, object := range framework.Delegation() {
		if _, ok := object.(*rbacv1.ClusterRoleBinding); ok {
			binding = object
		}
	}
	answered := func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "ann", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/", Verb: "get"}}}
		_, err := server.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err
	}
	if err := admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the host to refuse the server's questions", func(ctx context.Context) error {
		if err := answered(ctx); !apierrors.IsForbidden(err) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	before, since := refusals(t, hosts), time.Now()
	config := as(t, host, name)
	config.QPS = -1
	clusters := clustersOf(t, config)
	var all sync.WaitGroup
	errs = make([]error, 20)
	for i := range errs {
		all.Go(func() { _, errs[i] = clusters.Get(t.Context(), "absent", metav1.GetOptions{}) })
	}
	framework.Eventually(t, "the server to be refused", func(context.Context) error {
		if refusals(t, hosts) == before {
			return errors.New("not yet")
		}
		return nil
	})
	framework.Create(t, admin, binding)
	framework.Eventually(t, "the host to answer the server's questions", answered)
	gone = time.Since(since)
	all.Wait()
	// A server that was refused for too long does not wait again until it was answered.
	framework.Eventually(t, "the server to be answered", func(ctx context.Context) error {
		if _, err := clusters.Get(ctx, "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	return gone, errs
}

// refusals returns what the host says of how many requests it has refused.
func refusals(t *testing.T, hosts *kubernetes.Clientset) string {
	t.Helper()
	metrics, err := hosts.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, `authorization_attempts_total{result="no-opinion"}`) {
			return line
		}
	}
	return ""
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
