package server

import (
	"bytes"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"

	"github.com/clusterregistry/operator/apiserver/body"
)

// boundBodies refuses what is too much in the body of a request before anything decodes
// it, whatever the request is for and however it is encoded. A body that is too long the
// handlers refuse themselves.
func boundBodies(config *genericserver.Config) {
	config.MaxRequestBodyBytes, config.JSONPatchMaxCopyBytes = body.MaxBytes, body.MaxCopied
	inside(config, func(handler http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			info, known := genericapirequest.RequestInfoFrom(r.Context())
			if !known || !info.IsResourceRequest || r.Body == nil || r.Body == http.NoBody {
				handler.ServeHTTP(w, r)
				return
			}
			// Why it can't be read on, the handler finds out again.
			data, err := io.ReadAll(io.LimitReader(r.Body, body.MaxBytes+1))
			if err == nil && len(data) <= body.MaxBytes {
				if fault := body.Check(data, r.Header.Get("Content-Type")); fault != nil {
					kind := schema.GroupKind{Group: info.APIGroup, Kind: info.Resource}
					refuse(w, r, info, apierrors.NewInvalid(kind, info.Name, field.ErrorList{fault}))
					return
				}
			}
			r = r.Clone(r.Context())
			r.Body = readBody{io.MultiReader(bytes.NewReader(data), r.Body), r.Body}
			handler.ServeHTTP(w, r)
		})
	})
}

// readBody is a body of which a part has been read.
type readBody struct {
	io.Reader
	io.Closer
}
