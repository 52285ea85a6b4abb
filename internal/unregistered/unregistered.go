// Package unregistered tells a registry that is not served at the moment from an object that
// is not there: both are answered with 404.
package unregistered

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	group   = "clusterregistry.k8s.io"
	message = "the API " + group + " is not served there at the moment"
)

// Wrap returns a transport for clients of a registry that is expected to be there. Requests for its
// objects fail with 503 (Service Unavailable) while its API is not served, as during an outage of all
// servers, or a recovery: with 404, each of them would seem to be deleted.
func Wrap(inner http.RoundTripper) http.RoundTripper { return transport{inner} }

type transport struct{ inner http.RoundTripper }

// RoundTrip is http.RoundTripper's.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.inner.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusNotFound || !ofObjects(request.URL.Path) || isStatus(response) {
		return response, err
	}
	body, err := json.Marshal(status())
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	response.StatusCode, response.Status = http.StatusServiceUnavailable, "503 "+http.StatusText(http.StatusServiceUnavailable)
	response.Header = response.Header.Clone()
	response.Header.Set("Content-Type", runtime.ContentTypeJSON)
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	response.Body, response.ContentLength, response.Uncompressed = io.NopCloser(bytes.NewReader(body)), int64(len(body)), false
	return response, nil
}

// WrappedRoundTripper returns the transport within, which client-go looks for.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.inner }

// ofObjects reports whether a path is that of objects, and not of discovery.
func ofObjects(path string) bool {
	_, rest, is := strings.Cut(path, "/apis/"+group+"/")
	_, resource, has := strings.Cut(rest, "/")
	return is && has && resource != ""
}

// isStatus reports whether an answer is a Status, by its media type: an API server whose handlers
// know no such path answers in plain text.
func isStatus(response *http.Response) bool {
	switch kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind {
	case runtime.ContentTypeJSON, runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR:
		return true
	}
	return false
}

func status() metav1.Status {
	out := apierrors.NewServiceUnavailable(message).ErrStatus
	out.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return out
}

// Is reports whether an error of client-go says that an API is not served, and not that an object
// of it isn't there.
func Is(err error) bool {
	var said apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &said) {
		return false
	}
	details := said.Status().Details
	return details == nil || details.Name == "" || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
