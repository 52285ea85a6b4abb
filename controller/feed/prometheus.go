package feed

import (
	"iter"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
)

// targets are what http_sd_configs of Prometheus read.
type targets struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

const (
	metaPrefix  = "__meta_clusterregistry_"
	labelPrefix = metaPrefix + "label_"
)

// unnamed is what names of labels of Prometheus do not have.
var unnamed = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// writePrometheus writes the API servers of clusters that have an address.
func writePrometheus(_ *Server, out *limited, entries iter.Seq[*entry]) error {
	return list(out, "", each(entries, targetOf), "")
}

func targetOf(e *entry) (targets, bool) {
	at, err := url.Parse(e.Address)
	if err != nil || e.Address == "" {
		return targets{}, false
	}
	port := at.Port()
	if port == "" {
		port = "443"
	}
	labels := map[string]string{
		"__scheme__":              "https",
		metaPrefix + "name":       e.Name,
		metaPrefix + "id":         e.ID,
		metaPrefix + "clusterset": e.Set,
		metaPrefix + "provider":   e.Provider,
		metaPrefix + "address":    e.Address,
	}
	// Of two keys with one name, the first in order counts.
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(e.Labels))) {
		labels[labelPrefix+unnamed.ReplaceAllString(key, "_")] = e.Labels[key]
	}
	return targets{[]string{net.JoinHostPort(at.Hostname(), port)}, labels}, true
}
