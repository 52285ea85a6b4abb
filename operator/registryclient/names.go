package registryclient

import (
	"fmt"
	"net/http"

	"github.com/clusterregistry/operator/internal/lookup"
)

// named says of a request that fails since the registry's name is not resolved what to do, also
// where DNS is silent until the time of the request is up.
type named struct{ next http.RoundTripper }

// WrappedRoundTripper returns whom requests are passed on to, where they are canceled.
func (n named) WrappedRoundTripper() http.RoundTripper { return n.next }

// RoundTrip passes a request on.
func (n named) RoundTrip(request *http.Request) (*http.Response, error) {
	names := &lookup.Lookup{}
	response, err := n.next.RoundTrip(request.WithContext(names.Trace(request.Context())))
	if err = names.Explain(err, request.URL.Hostname()); lookup.Failed(err) {
		return response, fmt.Errorf("%w: %s", err, lookup.Advice)
	}
	return response, err
}
