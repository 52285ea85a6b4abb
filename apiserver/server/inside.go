package server

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"
)

// inside puts a handler around those of the API: it sees requests that are let through, after
// all others. wrap is called once, when the handlers are built.
func inside(config *genericserver.Config, wrap func(http.Handler) http.Handler) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericserver.Config) http.Handler {
		return build(wrap(handler), c)
	}
}

// refuse answers a request for a resource with an error, and counts it among those that were
// ended before they were handled.
func refuse(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, err error) {
	version := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
	code := responsewriters.ErrorNegotiated(err, codecs, version, w, r)
	metrics.RecordRequestTermination(r, info, metrics.APIServerComponent, code)
}
