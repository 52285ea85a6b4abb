// Package feed watches clusters over plain HTTP, one watch at a time, so that those who check
// watches see each as it was: nothing is resumed or tried again.
package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/watch"
)

// watchSeconds is how long one watch takes, so that even short histories resume some.
const watchSeconds = 15

// Source is where the clusters are that are watched.
type Source struct {
	// URL has a query, which selects them.
	URL    string
	Client *http.Client
}

// Refused is an answer to a request, or an event of a watch, that was not wanted.
type Refused struct {
	Code int
	Text string
}

func (r Refused) Error() string { return fmt.Sprintf("status %d: %s", r.Code, r.Text) }

// Gone reports whether an error says that it is too late to watch from a version.
func Gone(err error) bool {
	var answer Refused
	return errors.As(err, &answer) && answer.Code == http.StatusGone
}

// Version finds out from where to watch: all later changes will be told.
func (s Source) Version(ctx context.Context) (string, error) {
	response, err := s.get(ctx, "&limit=1")
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return "", err
	}
	if list.Metadata.ResourceVersion == "" {
		return "", errors.New("the list of clusters has no version")
	}
	return list.Metadata.ResourceVersion, nil
}

// List reads all clusters, and returns the version from which to watch for later changes.
func (s Source) List(ctx context.Context, take func(json.RawMessage) error) (version string, err error) {
	response, err := s.get(ctx, "")
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return "", err
	}
	for _, item := range list.Items {
		if err := take(item); err != nil {
			return "", err
		}
	}
	return list.Metadata.ResourceVersion, nil
}

// Watch follows one watch to its end, whichever way it comes. The error is about one that
// was refused, or reported an error or what can't be taken.
func (s Source) Watch(ctx context.Context, from string, take func(watch.EventType, json.RawMessage) error) error {
	response, err := s.get(ctx, fmt.Sprintf("&watch=true&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%s", watchSeconds, from))
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	decoder := json.NewDecoder(response.Body)
	for {
		var event struct {
			Type   watch.EventType
			Object json.RawMessage
		}
		if err := decoder.Decode(&event); err != nil {
			return nil // it may be closed at any time, in the middle of an event, too
		}
		if event.Type == watch.Error {
			return failure(event.Object)
		}
		if err := take(event.Type, event.Object); err != nil {
			return err
		}
	}
}

// failure reads the error that a watch reports.
func failure(object []byte) error {
	var status struct {
		Code    int
		Message string
	}
	if err := json.Unmarshal(object, &status); err != nil {
		return err
	}
	return Refused{status.Code, status.Message}
}

func (s Source) get(ctx context.Context, query string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+query, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.Client.Do(request)
	if err != nil || response.StatusCode == http.StatusOK {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1000))
	if err != nil {
		return nil, err
	}
	return nil, Refused{response.StatusCode, strings.TrimSpace(string(body))}
}
