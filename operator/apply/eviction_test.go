package apply

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAskOnce has a host refuse an eviction, which is said at once and asked once; a host
// with too many requests is asked again.
func TestAskOnce(t *testing.T) {
	named := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	for name, c := range map[string]struct {
		ask      func(*Applier) error
		requests int64
		refused  bool
	}{
		"eviction": {func(a *Applier) error { return a.Evict(t.Context(), named("fleet-etcd-0")) }, 1, true},
		"another":  {func(a *Applier) error { return a.Try(t.Context(), named("eviction")) }, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if asked.Add(1) > 1 {
					_ = json.NewEncoder(w).Encode(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}})
					return
				}
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				_ = json.NewEncoder(w).Encode(apierrors.NewTooManyRequests("the disruption budget fleet-etcd needs 2 healthy pods", 1).Status())
			}))
			defer host.Close()
			config := &rest.Config{Host: host.URL}
			config.Wrap(AskOnce)
			direct, err := client.New(config, client.Options{Mapper: mapper})
			if err != nil {
				t.Fatal(err)
			}
			err = c.ask(New(direct, direct))
			if got := apierrors.IsTooManyRequests(err); got != c.refused || !c.refused && err != nil || asked.Load() != c.requests {
				t.Errorf("after %d requests: %v", asked.Load(), err)
			}
		})
	}
}
