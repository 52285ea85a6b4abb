package server

import (
	"net/http"

	genericserver "k8s.io/apiserver/pkg/server"
)

// answerPlain makes the server answer without compression, whatever a client
// accepts. The host's proxy asks for gzip even when its own client does not, and
// unpacks the answer again: that costs both more than a fast network saves.
func answerPlain(config *genericserver.Config) {
	before(config, func(*genericserver.Config) func(http.ResponseWriter, *http.Request) {
		return func(_ http.ResponseWriter, r *http.Request) { r.Header.Del("Accept-Encoding") }
	})
}
