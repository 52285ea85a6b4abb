package apply

import (
	"net/http"
	"path"
)

// AskOnce is for rest.Config.Wrap: an eviction that the host cluster refuses for now, as a
// PodDisruptionBudget has it do, is reported at once. client-go would ask ten times, as far
// apart as Retry-After says, and the reconcile would see nothing else for 100 seconds.
// Other requests are repeated as they were: their Retry-After is that of a kube-apiserver
// with too many requests.
func AskOnce(next http.RoundTripper) http.RoundTripper { return askOnce{next} }

type askOnce struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a askOnce) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusTooManyRequests && request.Method == http.MethodPost && path.Base(request.URL.Path) == "eviction" {
		response.Header.Del("Retry-After")
	}
	return response, err
}
