package visible

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apiserver/visibility"
)

// TestNameless names clusters that can't be decoded to those only who see all.
func TestNameless(t *testing.T) {
	const names = "corrupt object, Key: /registry/clusterregistry.k8s.io/clusters/hidden"
	for _, test := range []struct {
		reason string
		err    error
		code   int32
		same   bool
	}{
		{"a list", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonStoreReadError, Code: http.StatusInternalServerError, Message: names}}, http.StatusInternalServerError, false},
		{"a watch", apierrors.NewTooManyRequests("storage is (re)initializing: "+names, 3), http.StatusTooManyRequests, false},
		{"a queue", apierrors.NewTooManyRequests("too many requests", 3), http.StatusTooManyRequests, true},
		{"etcd", apierrors.NewTimeoutError("etcd does not answer", 2), http.StatusGatewayTimeout, true},
	} {
		got := nameless(visibility.View{}, test.err)
		var status *apierrors.StatusError
		if !errors.As(got, &status) || status.Status().Code != test.code || strings.Contains(got.Error(), "hidden") || errors.Is(got, test.err) != test.same {
			t.Errorf("%s: %v", test.reason, got)
		}
		before, was := apierrors.SuggestsClientDelay(test.err)
		if after, is := apierrors.SuggestsClientDelay(got); after != before || is != was {
			t.Errorf("%s: again after %d s", test.reason, after)
		}
		if all := nameless(visibility.View{All: true}, test.err); !errors.Is(all, test.err) {
			t.Errorf("%s, for who sees all: %v", test.reason, all)
		}
	}
}
