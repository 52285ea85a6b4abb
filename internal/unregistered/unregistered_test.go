package unregistered

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const absent = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"clusters \"a\" not found","reason":"NotFound","details":{"name":"a","group":"clusterregistry.k8s.io","kind":"clusters"},"code":404}`

// TestUnregistered asks, with client-go, servers that know no registry, or no cluster.
func TestUnregistered(t *testing.T) {
	for _, test := range []struct {
		reason, kind, body string
		wrapped            bool
		get, list          func(error) bool
		is                 bool
	}{
		{"the API is not served", "text/plain; charset=utf-8", "404 page not found\n", false, apierrors.IsNotFound, apierrors.IsNotFound, true},
		{"the API is not served, as a client says that expects it", "text/plain; charset=utf-8", "404 page not found\n", true, apierrors.IsServiceUnavailable, apierrors.IsServiceUnavailable, false},
		{"no media type", "", "404 page not found\n", true, apierrors.IsServiceUnavailable, apierrors.IsServiceUnavailable, false},
		{"the cluster is not there", "application/json", absent, false, apierrors.IsNotFound, apierrors.IsNotFound, false},
		{"the cluster is not there, as a client says that expects the API", "application/json", absent, true, apierrors.IsNotFound, apierrors.IsNotFound, false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{test.kind}
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, test.body)
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL}
			if test.wrapped {
				config.Wrap(Wrap)
			}
			client, err := dynamic.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			clusters := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1beta1", Resource: "clusters"})
			_, got := clusters.Get(t.Context(), "a", metav1.GetOptions{})
			_, listed := clusters.List(t.Context(), metav1.ListOptions{})
			_, watched := clusters.Watch(t.Context(), metav1.ListOptions{})
			if !test.get(got) || !test.list(listed) || !test.list(watched) {
				t.Errorf("get: %v; list: %v; watch: %v", got, listed, watched)
			}
			if Is(got) != test.is {
				t.Errorf("%t of %v", !test.is, got)
			}
			// Discovery is to say what is served.
			if _, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerResourcesForGroupVersion(group + "/v1beta1"); !apierrors.IsNotFound(err) {
				t.Errorf("discovery: %v", err)
			}
		})
	}
}

// TestIs tells errors that were made without a request.
func TestIs(t *testing.T) {
	for _, test := range []struct {
		err error
		is  bool
	}{
		{nil, false},
		{errors.New("the server could not find the requested resource"), false},
		{apierrors.NewNotFound(schema.GroupResource{Resource: "clusters"}, "a"), false},
		{fmt.Errorf("get it: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "clusters"}, "a")), false},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}}, true},
		{fmt.Errorf("list: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}}), true},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "", nil), false},
	} {
		if Is(test.err) != test.is {
			t.Errorf("%v: %t", test.err, !test.is)
		}
	}
}
