package server

import (
	"net/http"

	genericserver "k8s.io/apiserver/pkg/server"
)

// drainConnections makes the server end each connection with a response of its
// own accord once it was told to stop. The proxy in front then never sends a
// request on a connection that is about to be closed, which it could not
// repeat when the request has a body.
func drainConnections(config *genericserver.Config) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericserver.Config) http.Handler {
		stopping := c.ShutdownInitiatedNotify()
		chain := build(handler, c)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-stopping:
				w.Header().Set("Connection", "close")
			default:
			}
			chain.ServeHTTP(w, r)
		})
	}
}
