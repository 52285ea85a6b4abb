package feed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
)

const (
	// maxAnswer is how long an answer may be.
	maxAnswer = 32 << 20
	// maxFlux is what Flux reads of one.
	maxFlux = 900 << 10
)

// form is a format of answers.
type form struct {
	name, contentType string
	// limit is how long an answer may be, in bytes.
	limit int
	// write writes entries.
	write func(s *Server, out *limited, entries iter.Seq[*entry]) error
}

// forms are the formats by their paths.
var forms = map[string]form{
	"/v1/clusters.json":  {"json", "application/json", maxAnswer, writeJSON},
	"/v1/clusters.csv":   {"csv", "text/csv; charset=utf-8; header=present", maxAnswer, writeCSV},
	"/v1/flux":           {"flux", "application/json", maxFlux, writeFlux},
	"/v1/prometheus":     {"prometheus", "application/json", maxAnswer, writePrometheus},
	"/v1/backstage.json": {"backstage", "application/json", maxAnswer, writeBackstage},
}

// errLong says that an answer is too long.
var errLong = errors.New("the answer is too long")

// limited is an answer that grows up to a limit: what is longer is an error, and never cut.
type limited struct {
	bytes.Buffer
	limit int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > l.limit {
		return 0, errLong
	}
	return l.Buffer.Write(p)
}

// list writes values as a list in JSON, one in a line, between two texts.
func list[T any](out *limited, before string, values iter.Seq[T], after string) error {
	if _, err := out.Write([]byte(before + "[")); err != nil {
		return err
	}
	separator := "\n"
	for value := range values {
		content, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s%s", separator, content); err != nil {
			return err
		}
		separator = ",\n"
	}
	_, err := out.Write([]byte("\n]" + after + "\n"))
	return err
}

// each returns what becomes of each entry, without those of which nothing does.
func each[T any](entries iter.Seq[*entry], of func(*entry) (T, bool)) iter.Seq[T] {
	return func(yield func(T) bool) {
		for e := range entries {
			if value, is := of(e); is && !yield(value) {
				return
			}
		}
	}
}

// record is a cluster, with all that is published of it. No field is left out where it is empty: the
// templates of Flux fail then.
type record struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	ClusterID  string            `json:"clusterID"`
	ClusterSet string            `json:"clusterSet"`
	Provider   string            `json:"provider"`
	Address    string            `json:"address"`
	CA         string            `json:"ca"`
	Verified   bool              `json:"verified"`
	Reason     string            `json:"reason"`
	Labels     map[string]string `json:"labels"`
}

func recordOf(e *entry) (record, bool) {
	return record{e.Name, e.Name, e.ID, e.Set, e.Provider, e.Address, e.CA(), e.Verified, e.Reason, e.Labels}, true
}

func writeJSON(_ *Server, out *limited, entries iter.Seq[*entry]) error {
	return list(out, `{"clusters":`, each(entries, recordOf), "}")
}

// writeFlux writes what a ResourceSetInputProvider of the type ExternalService reads.
func writeFlux(_ *Server, out *limited, entries iter.Seq[*entry]) error {
	return list(out, `{"inputs":`, each(entries, recordOf), "}")
}
