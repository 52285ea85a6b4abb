package server

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"

	"github.com/clusterregistry/operator/apiserver/body"
)

// boundSelectors refuses selectors of a list, watch or deletion that have more requirements and
// values than a list in a body may have entries. Each object
// is compared with each of their requirements and values, of which a URL has room for half a
// million: a list of 10,000 clusters would take that many times.
func boundSelectors(config *genericserver.Config) {
	inside(config, func(handler http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			info, known := request.RequestInfoFrom(r.Context())
			if known && info.IsResourceRequest && len(r.URL.RawQuery) > body.MaxEntries {
				if err := selectsTooMuch(r); err != nil {
					refuse(w, r, info, err)
					return
				}
			}
			handler.ServeHTTP(w, r)
		})
	})
}

// selectsTooMuch returns what is wrong with the selectors of a request.
func selectsTooMuch(r *http.Request) error {
	query := r.URL.Query()
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		for _, selector := range query[name] {
			if n := strings.Count(selector, ",") + 1; n > body.MaxEntries {
				return apierrors.NewBadRequest(fmt.Sprintf("%s has %d requirements and values, and may have %d: ask in several requests, or select by a label that all of these objects have", name, n, body.MaxEntries))
			}
		}
	}
	return nil
}
