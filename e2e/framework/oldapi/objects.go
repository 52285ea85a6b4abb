package oldapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
)

// The forms that servers and clients of 2018 spoke. Servers knew YAML as well, which no
// client of today asks for.
const (
	JSON     = "application/json"
	Protobuf = "application/vnd.kubernetes.protobuf"
)

// first is the resourceVersion of the first cluster: a revision of etcd, as ever since.
const first = 17

// stored is a cluster as the server has it.
func (s *Server) stored(t *testing.T, i int, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("cluster %d is not valid JSON: %v", i, err)
	}
	about, is := out["metadata"].(map[string]any)
	if !is || about["name"] == nil || s.config.Namespaced == (about["namespace"] == nil) {
		t.Fatalf("cluster %d has not the metadata of one: %s", i, text)
	}
	in := ""
	if s.config.Namespaced {
		in = "/namespaces/" + about["namespace"].(string)
	}
	about["selfLink"] = root + in + "/clusters/" + about["name"].(string)
	about["uid"] = fmt.Sprintf("6e1c8a2f-4d2e-11e8-9c1f-%012d", i)
	about["resourceVersion"] = strconv.Itoa(first + i)
	about["creationTimestamp"] = "2018-05-01T10:20:30Z"
	if out["spec"] == nil {
		out["spec"] = map[string]any{}
	}
	if s.config.Namespaced {
		return out
	}
	// What its types always wrote.
	spec := out["spec"].(map[string]any)
	if spec["kubernetesApiEndpoints"] == nil {
		spec["kubernetesApiEndpoints"] = map[string]any{}
	}
	if spec["authInfo"] == nil {
		spec["authInfo"] = map[string]any{"providers": nil}
	}
	out["status"] = map[string]any{}
	return out
}

// key is where a cluster stands in a list.
func key(cluster map[string]any) string {
	about := cluster["metadata"].(map[string]any)
	in, _ := about["namespace"].(string)
	return in + "/" + about["name"].(string)
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, name string) {
	for _, cluster := range s.clusters {
		if key(cluster) == "/"+name {
			out := map[string]any{"kind": "Cluster", "apiVersion": group + "/" + version}
			for field, value := range cluster {
				out[field] = value
			}
			s.write(w, r, out, &v1alpha1.Cluster{})
			return
		}
	}
	answer(w, http.StatusNotFound, map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "message": fmt.Sprintf("clusters.%s %q not found", group, name),
		"reason": "NotFound", "code": http.StatusNotFound, "details": map[string]any{"name": name, "group": group, "kind": "clusters"},
	})
}

// from is where a chunk of a list begins.
type from struct {
	Version  string `json:"v"`
	Revision int    `json:"rv"`
	Start    string `json:"start"`
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	query, revision := r.URL.Query(), first+len(s.clusters)
	label, err := labels.Parse(query.Get("labelSelector"))
	field, err2 := fields.ParseSelector(query.Get("fieldSelector"))
	limit, err3 := strconv.Atoi("0" + query.Get("limit"))
	begin := from{}
	if token := query.Get("continue"); token != "" {
		text, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil || json.Unmarshal(text, &begin) != nil || begin.Revision != revision {
			refuse(w, http.StatusBadRequest, "BadRequest", "continue key is not valid")
			return
		}
	}
	if err != nil || err2 != nil || err3 != nil || query.Get("watch") != "" {
		refuse(w, http.StatusBadRequest, "BadRequest", "a selector or a limit is not valid, or a watch is asked for, which this server has none of")
		return
	}
	items, next := []any{}, ""
	for _, cluster := range s.clusters {
		about := cluster["metadata"].(map[string]any)
		if key(cluster) < begin.Start || !label.Matches(labelsOf(about)) || !field.Matches(fields.Set{"metadata.name": about["name"].(string)}) {
			continue
		}
		if limit > 0 && len(items) == limit {
			token, _ := json.Marshal(from{"meta.k8s.io/v1", revision, key(cluster)}) //nolint:errchkjson // strings and a number
			next = base64.RawURLEncoding.EncodeToString(token)
			break
		}
		items = append(items, cluster)
	}
	about := map[string]any{"selfLink": root + "/clusters", "resourceVersion": strconv.Itoa(revision)}
	if next != "" {
		about["continue"] = next
	}
	s.write(w, r, map[string]any{"kind": "ClusterList", "apiVersion": group + "/" + version, "metadata": about, "items": items}, &v1alpha1.ClusterList{})
}

func labelsOf(about map[string]any) labels.Set {
	out := labels.Set{}
	values, _ := about["labels"].(map[string]any)
	for name, value := range values {
		out[name], _ = value.(string)
	}
	return out
}

// write answers with an object in the form that the client wants; typed is one of its type.
func (s *Server) write(w http.ResponseWriter, r *http.Request, object map[string]any, typed runtime.Object) {
	forms := []string{JSON, Protobuf}
	if s.config.Namespaced {
		forms = forms[:1]
	}
	media := wanted(r, forms...)
	if media == "" {
		refuse(w, http.StatusNotAcceptable, "NotAcceptable", "only the following media types are accepted: "+strings.Join(forms, ", "))
		return
	}
	text, err := json.Marshal(object)
	if err == nil && media == Protobuf {
		text, err = inProtobuf(text, typed)
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, "InternalError", err.Error())
		return
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if s.config.CutAfter > 0 && object["items"] != nil {
		_, _ = w.Write(text[:min(s.config.CutAfter, len(text)-1)])
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(text) // a client that has left needs no answer
}

// inProtobuf is an object that is given in JSON. That the types' encoding is that of v0.0.4
// is what a test of theirs shows.
func inProtobuf(text []byte, typed runtime.Object) ([]byte, error) {
	if err := json.Unmarshal(text, typed); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err := protobuf.NewSerializer(nil, nil).Encode(typed, &out)
	return out.Bytes(), err
}

// wanted returns the first form that the client accepts of those that the server has, or "".
// What it would have to convert to, such as tables and aggregated discovery, is passed over.
func wanted(r *http.Request, forms ...string) string {
	header := r.Header.Get("Accept")
	if header == "" {
		return forms[0]
	}
	for clause := range strings.SplitSeq(header, ",") {
		media, parameters, err := mime.ParseMediaType(clause)
		switch {
		case err != nil || parameters["as"] != "":
		case media == "*/*" || media == "application/*":
			return forms[0]
		case slices.Contains(forms, media):
			return media
		}
	}
	return ""
}
