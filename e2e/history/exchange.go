package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// labelKey is the label that all clusters of a history have.
const labelKey = "history"

// answer is what a request got.
type answer struct {
	Result  Result
	Found   []Cluster
	Listed  uint64
	Failure string
}

// exchange sends one request, once, and reads the answer.
func exchange(client *http.Client, url, label string, o Operation, of Cluster) answer {
	request, err := newRequest(url, label, o, of)
	if err != nil {
		return answer{Result: Unanswered, Failure: err.Error()}
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{Result: Unanswered, Failure: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{Result: Unanswered, Failure: err.Error()}
	}
	got := answer{Result: result(o.Kind, response.StatusCode, body)}
	switch got.Result {
	case Unanswered:
		got.Failure = fmt.Sprintf("status %d: %.500s", response.StatusCode, strings.TrimSpace(string(body)))
	case Done:
		if err := got.read(o.Kind, body); err != nil {
			return answer{Result: Unanswered, Failure: fmt.Sprintf("status %d: %v: %.500s", response.StatusCode, err, body)}
		}
	default:
	}
	return got
}

// newRequest makes the request of an operation. A replacement has the UID of what was read, as
// that of a client that reads before it writes: without, it would create what is gone.
func newRequest(url, label string, o Operation, of Cluster) (*http.Request, error) {
	made := v1beta1.Endpoint{Name: o.Write, URL: "https://" + o.Write + ".example"}
	whole := &v1beta1.Cluster{TypeMeta: metav1.TypeMeta{APIVersion: "clusterregistry.k8s.io/v1beta1", Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Name: o.Key, UID: types.UID(of.UID), Labels: map[string]string{labelKey: label}}, Spec: v1beta1.ClusterSpec{ID: of.ID, Endpoints: []v1beta1.Endpoint{made}}}
	method, target, contentType := http.MethodGet, url+"/"+o.Key, "application/json"
	var content any
	switch o.Kind {
	case Create:
		method, target, content = http.MethodPost, url, whole
	case Replace:
		whole.ResourceVersion = strconv.FormatUint(o.From, 10)
		method, content = http.MethodPut, whole
	case Append:
		method, contentType = http.MethodPatch, string(types.JSONPatchType)
		content = []any{map[string]any{"op": "add", "path": "/spec/endpoints/-", "value": made}}
	case Delete:
		method = http.MethodDelete
	case List:
		target = url + "?labelSelector=" + labelKey + "%3D" + label
	default:
	}
	var body []byte
	if content != nil {
		var err error
		if body, err = json.Marshal(content); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(context.Background(), method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	return request, nil
}

// result says what a status means for a request.
func result(kind Kind, code int, body []byte) Result {
	var status metav1.Status
	if code == http.StatusConflict || code == http.StatusUnprocessableEntity {
		if err := json.Unmarshal(body, &status); err != nil {
			return Unanswered
		}
	}
	duplicate := status.Details != nil && len(status.Details.Causes) == 1 && status.Details.Causes[0].Type == metav1.CauseTypeFieldValueDuplicate && status.Details.Causes[0].Field == "spec.id"
	switch {
	case code == http.StatusOK || code == http.StatusCreated && kind == Create:
		return Done
	case code == http.StatusNotFound && kind != Create && kind != List:
		return Missing
	case kind == Create && status.Reason == metav1.StatusReasonAlreadyExists:
		return Exists
	case kind == Replace && status.Reason == metav1.StatusReasonConflict:
		return Conflict
	case kind == Create && (duplicate || status.Reason == metav1.StatusReasonConflict):
		return Taken
	}
	return Unanswered
}

// read takes the clusters from the answer to a request that was done.
func (a *answer) read(kind Kind, body []byte) error {
	switch kind {
	case Delete:
		var status metav1.Status
		if err := json.Unmarshal(body, &status); err != nil {
			return err
		}
		if status.Details == nil || status.Details.UID == "" {
			return errors.New("it does not say what was deleted")
		}
		a.Found = []Cluster{{UID: string(status.Details.UID)}}
		return nil
	case List:
		var list v1beta1.ClusterList
		if err := json.Unmarshal(body, &list); err != nil {
			return err
		}
		for i := range list.Items {
			c, err := clusterOf(&list.Items[i])
			if err != nil {
				return err
			}
			a.Found = append(a.Found, c)
		}
		var err error
		a.Listed, err = strconv.ParseUint(list.ResourceVersion, 10, 64)
		return err
	default:
		var got v1beta1.Cluster
		if err := json.Unmarshal(body, &got); err != nil {
			return err
		}
		c, err := clusterOf(&got)
		a.Found = []Cluster{c}
		return err
	}
}

// clusterOf returns of a cluster what is checked.
func clusterOf(c *v1beta1.Cluster) (Cluster, error) {
	version, err := strconv.ParseUint(c.ResourceVersion, 10, 64)
	if err != nil {
		return Cluster{}, fmt.Errorf("%s has no version: %w", c.Name, err)
	}
	var trail []string
	for _, endpoint := range c.Spec.Endpoints {
		trail = append(trail, endpoint.Name)
	}
	return Cluster{Key: c.Name, Version: version, UID: string(c.UID), ID: c.Spec.ID, Trail: strings.Join(trail, " ")}, nil
}
