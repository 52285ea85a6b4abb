package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/ui/page"
)

// About is what the page says of the command that serves it.
type About struct {
	Context   string `json:"context"`
	Namespace string `json:"namespace,omitempty"`
}

const (
	// batch is how many entries one message has at most.
	batch = 500
	// gather is how long changes are gathered before they are sent.
	gather = 250 * time.Millisecond
	// pulse is how often the page hears of the command when nothing changes, so that it
	// notices when the command is gone.
	pulse = 5 * time.Second
	// patience is how long a browser may take to read a message.
	patience = 30 * time.Second
	// streams is how many pages may be open at once. A browser opens about six connections to a
	// host, and a page needs another one to read a cluster.
	streams = 5
	// answer is how long the registry may take for one cluster.
	answer = 15 * time.Second
)

// handler answers the requests of the page.
type handler struct {
	feed     *feed
	clusters interface {
		Get(ctx context.Context, name string, options metav1.GetOptions) (*v1beta1.Cluster, error)
	}
	explain func(action, side string, err error) error
	about   About
	now     func() time.Time
	open    chan struct{}
}

// routes returns all that can be asked for.
func (h *handler) routes() http.Handler {
	h.open = make(chan struct{}, streams)
	mux := http.NewServeMux()
	files := http.FileServerFS(page.Files)
	for _, path := range []string{"/{$}", "/app.js", "/app.css", "/icon.svg"} {
		mux.Handle("GET "+path, files)
	}
	mux.HandleFunc("GET /api/stream", h.stream)
	mux.HandleFunc("GET /api/clusters/{name}", h.cluster)
	return mux
}

// cluster answers with all that the page shows of a cluster, as the registry has it.
func (h *handler) cluster(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), answer)
	defer cancel()
	cluster, err := h.clusters.Get(ctx, r.PathValue("name"), metav1.GetOptions{})
	if err != nil {
		code := http.StatusBadGateway
		if apierrors.IsNotFound(err) {
			code = http.StatusNotFound
		}
		http.Error(w, command.Plain(h.explain("read the cluster", command.OfRegistry, err).Error()), code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(detailOf(cluster)) // a browser that is gone has no one to tell
}

// stream sends all entries, and then each change, as server-sent events, until the browser or
// the command ends.
func (h *handler) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case h.open <- struct{}{}:
		defer func() { <-h.open }()
	default:
		http.Error(w, fmt.Sprintf("%d pages are open already: close one", streams), http.StatusServiceUnavailable)
		return
	}
	reader := h.feed.read()
	defer reader.close()
	w.Header().Set("Content-Type", "text/event-stream")
	out := events{w, http.NewResponseController(w), json.NewEncoder(w)}
	if out.send("about", h.about) != nil {
		return
	}
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
			if out.send("pulse", h.now()) != nil {
				return
			}
			continue
		case <-reader.wake:
		}
		for more := true; more; {
			change := reader.next(batch)
			if out.send("change", change) != nil {
				return
			}
			more = change.More
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(gather):
		}
	}
}

// events writes server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	encode  *json.Encoder
}

// send sends an event. JSON has no line feeds but the one at its end.
func (e events) send(name string, data any) error {
	if err := e.control.SetWriteDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := fmt.Fprintf(e.w, "event: %s\ndata: ", name); err != nil {
		return err
	}
	if err := e.encode.Encode(data); err != nil {
		return err
	}
	if _, err := fmt.Fprint(e.w, "\n"); err != nil {
		return err
	}
	return e.control.Flush()
}
