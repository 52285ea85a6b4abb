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
	before(config, func(c *genericserver.Config) func(http.ResponseWriter, *http.Request) {
		stopping := c.ShutdownInitiatedNotify()
		return func(w http.ResponseWriter, _ *http.Request) {
			select {
			case <-stopping:
				w.Header().Set("Connection", "close")
			default:
			}
		}
	})
}

// before makes the server do something with each request before any other
// handler sees it. prepare is called once, when the handlers are built.
func before(config *genericserver.Config, prepare func(*genericserver.Config) func(http.ResponseWriter, *http.Request)) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericserver.Config) http.Handler {
		chain, do := build(handler, c), prepare(c)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			do(w, r)
			chain.ServeHTTP(w, r)
		})
	}
}
