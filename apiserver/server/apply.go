package server

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// refuseApply refuses server-side apply in v1alpha1. Who manages a field is kept by its name in
// the version that was applied: a field that v1alpha1 has under another name would be changed
// without a conflict with those who manage it in v1beta1.
func refuseApply(config *genericserver.Config) {
	inside(config, func(handler http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			info, known := request.RequestInfoFrom(r.Context())
			if !known || info.Verb != "patch" || info.APIGroup != clusterregistry.GroupName || info.APIVersion != v1alpha1.SchemeGroupVersion.Version || !isApply(r) {
				handler.ServeHTTP(w, r)
				return
			}
			refuse(w, r, info, &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
				Message: fmt.Sprintf("server-side apply is not supported in %s, where it would change what others manage in %s without a conflict: apply the object in %s, or send an update or another patch (kubectl apply without --server-side)",
					v1alpha1.SchemeGroupVersion, v1beta1.SchemeGroupVersion, v1beta1.SchemeGroupVersion),
			}})
		})
	})
}

// isApply reports whether a patch is a server-side apply, in whichever encoding.
func isApply(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(kind)), "application/apply-patch+")
}
