package server

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// pieces is an answer that knows its longest piece.
type pieces struct {
	*httptest.ResponseRecorder
	longest int
}

// Write adds a piece.
func (p *pieces) Write(data []byte) (int, error) {
	p.longest = max(p.longest, len(data))
	return p.ResponseRecorder.Write(data)
}

// TestListsArriveInPieces answers a large list without having all of it encoded at once.
func TestListsArriveInPieces(t *testing.T) {
	const size, most = 2000, 256 << 10
	o := newOffice(t, quick)
	for i := range size {
		name := fmt.Sprintf("c%d", i)
		c := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1", Annotations: map[string]string{"a": strings.Repeat("x", 1000)}}}
		o.stored.mu.Lock()
		err := o.stored.put("/clusters/"+name, c, nil)
		o.stored.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		for _, kind := range []string{plain, runtime.ContentTypeProtobuf} {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, apiGroup+version+"/clusters", nil)
			request.Header.Set("As", "root")
			request.Header.Set("Accept", kind)
			answer := &pieces{ResponseRecorder: httptest.NewRecorder()}
			o.servers[0].Config.Handler.ServeHTTP(answer, request)
			content := answer.Body.Bytes()
			if answer.Code != http.StatusOK || bytes.Count(content, []byte("xxx")) < size || len(content) < 1000*size {
				t.Fatalf("%s in %s: answered %d with %d bytes: %.300s", version, kind, answer.Code, len(content), content)
			}
			if answer.longest > most {
				t.Errorf("%s in %s: %d bytes at once, of %d", version, kind, answer.longest, len(content))
			}
		}
	}
}
