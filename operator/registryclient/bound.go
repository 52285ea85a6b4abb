package registryclient

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// group is the API group of registries.
const group = v1beta1.GroupName

// maxAnswer bounds what a registry answers to one request. Its servers run an
// image that whoever made the registry chose, and the operator serves others, too.
const maxAnswer = 32 << 20

// Bound limits how much is read of a registry's answers. What is asked of others on
// the same connection, such as a watch of the host's, is not limited.
func Bound(next http.RoundTripper) http.RoundTripper { return bounding{next} }

type bounding struct{ next http.RoundTripper }

// WrappedRoundTripper returns whom requests are passed on to, where they are canceled.
func (b bounding) WrappedRoundTripper() http.RoundTripper { return b.next }

// RoundTrip passes a request on.
func (b bounding) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err == nil && strings.HasPrefix(request.URL.Path, "/apis/"+group+"/") {
		response.Body = &bounded{response.Body, request.URL.Path, maxAnswer}
	}
	return response, err
}

// bounded fails when more is read than may be.
type bounded struct {
	io.ReadCloser
	path string
	left int
}

// Read reads what may still be read.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if n > b.left {
		return b.left, fmt.Errorf("the answer to %s is longer than %d MiB, and is not read further", b.path, maxAnswer>>20)
	}
	b.left -= n
	return n, err
}
